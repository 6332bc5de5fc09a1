"""Policies: a rule that turns a context into a dose, τ(x)."""

from titrant.policies.base import ParametricPolicy, Policy
from titrant.policies.bent import Additive, Products
from titrant.policies.calling import doses
from titrant.policies.clipped import Clipped, Rounded
from titrant.policies.constant import Constant, Function, StatusQuo, as_policy
from titrant.policies.exporting import to_excel, to_python, to_sql
from titrant.policies.linear import Linear
from titrant.policies.loading import (
    POLICIES,
    TrainingRange,
    load_policy,
    load_training,
    policy_from_dict,
    save_learned,
)
from titrant.policies.personal import Personal
from titrant.policies.rbf import RBF
from titrant.policies.tree import Tree

__all__ = [
    "POLICIES",
    "RBF",
    "Additive",
    "Clipped",
    "Constant",
    "Function",
    "Linear",
    "ParametricPolicy",
    "Personal",
    "Policy",
    "Products",
    "Rounded",
    "StatusQuo",
    "TrainingRange",
    "Tree",
    "as_policy",
    "doses",
    "load_policy",
    "load_training",
    "policy_from_dict",
    "save_learned",
    "to_excel",
    "to_python",
    "to_sql",
]
