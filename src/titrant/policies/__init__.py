"""Policies: a rule that turns a context into a dose, τ(x)."""

from titrant.policies.base import ParametricPolicy, Policy
from titrant.policies.bent import Additive, Products
from titrant.policies.calling import doses
from titrant.policies.clipped import Clipped, InLimits, Rounded
from titrant.policies.constant import Constant, Function, StatusQuo, as_policy
from titrant.policies.formats.exporting import to_excel, to_python, to_sql
from titrant.policies.formats.loading import (
    POLICIES,
    TrainingRange,
    load_policy,
    load_training,
    policy_from_dict,
    save_learned,
)
from titrant.policies.given import TablePolicy
from titrant.policies.linear import Linear
from titrant.policies.lookup import Personal
from titrant.policies.moves import MOVES, Limited, Move, Moved, Multiply, Randomized, Shift, Tilt
from titrant.policies.rbf import RBF
from titrant.policies.trees import LinearTree, Tree

__all__ = [
    "MOVES",
    "POLICIES",
    "RBF",
    "Additive",
    "Clipped",
    "Constant",
    "Function",
    "InLimits",
    "Limited",
    "Linear",
    "LinearTree",
    "Move",
    "Moved",
    "Multiply",
    "ParametricPolicy",
    "Personal",
    "Policy",
    "Products",
    "Randomized",
    "Rounded",
    "Shift",
    "StatusQuo",
    "TablePolicy",
    "Tilt",
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
