"""Which class a policy stands for, and a policy of a user's own as a class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from titrant import _check
from titrant.learn.classes.base import (
    ClippedClass,
    FittedClass,
    PolicyClass,
    places_of,
    used_columns,
)
from titrant.learn.classes.bent import AdditiveClass, ProductsClass
from titrant.learn.classes.linear import ConstantClass, LinearClass
from titrant.learn.classes.linear_tree import LinearTreeClass
from titrant.learn.classes.personal import PersonalClass
from titrant.learn.classes.rbf import RBFClass
from titrant.learn.classes.tree import TreeClass
from titrant.policies import (
    RBF,
    Additive,
    Clipped,
    Constant,
    Linear,
    LinearTree,
    ParametricPolicy,
    Personal,
    Policy,
    Products,
    Tree,
)
from titrant.policies.base import is_exactly

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant._types import Array
    from titrant.data import LoggedData


@dataclass(frozen=True, slots=True, eq=False)
class OwnClass(PolicyClass, FittedClass):
    """A policy of a user's own with other parameters, from where it is; ridges count them all."""

    own: ParametricPolicy
    places: tuple[int, ...] | None = None
    """Where the contexts it uses are among those of the log."""

    def on(self, log: LoggedData) -> Self:
        """Return the class for the contexts of a log."""
        places = places_of(self.own.features, log)
        beta = self.own.params
        row = used_columns(log.context[:1], places)
        slope = self.own.vjp(row, np.ones_like(self.own(row)))
        again = self.own.with_params(beta)
        if np.shape(slope) != np.shape(beta) or not np.array_equal(again.params, beta):
            rule = "with `params` (P,) that `with_params` gives back and a `vjp` of the same shape"
            raise _check.invalid("policy", "PolicyLearner", rule, self.own)
        return replace(self, places=places)

    def features(self, X: Array) -> Array:
        """Return the contexts that the policy uses (n, p)."""
        return X if self.places is None else used_columns(X, self.places)

    def policy(self, params: Array) -> Policy:
        """Return the policy with other parameters."""
        return self.own.with_params(params)

    @property
    def penalized(self) -> Array:
        """All parameters."""
        return np.ones(len(self.own.params))

    @property
    def affine(self) -> bool:
        """Not known to be."""
        return False

    def searched(self, unit: Array) -> ParametricPolicy:  # noqa: ARG002
        """Return the policy itself: its parameters are in units of its own."""
        return self.own


def class_of(policy: Policy | PolicyClass | None) -> PolicyClass:
    """Return the class that a template policy stands for; None is `Linear()`.

    Of a policy that already has coefficients only the kind counts, and its limits if it is clipped.
    """
    if isinstance(policy, PolicyClass):
        return policy
    policy = Linear() if policy is None else policy
    for kind, made in KINDS.items():
        if is_exactly(policy, kind):
            return made(policy)
    known = isinstance(policy, tuple(KINDS))
    if isinstance(policy, ParametricPolicy) and policy.parametric and not known:
        return OwnClass(policy)
    rule = (
        "Linear(), Constant(0), an RBF or one of them Clipped (not a subclass of theirs, whose "
        "doses may differ), a policy class such as AdditiveClass(), or a policy of your own with "
        "parameters"
    )
    raise _check.invalid("policy", "PolicyLearner", rule, policy)


KINDS: dict[type[Policy], Callable[[Any], PolicyClass]] = {
    Constant: lambda _: ConstantClass(),
    Linear: lambda policy: LinearClass(features=policy.features),
    Additive: lambda policy: AdditiveClass(features=policy.features),
    Products: lambda policy: ProductsClass(features=policy.features),
    Tree: lambda policy: TreeClass(features=policy.features),
    LinearTree: lambda policy: LinearTreeClass(features=policy.features),
    RBF: lambda policy: RBFClass(centers=policy.centers, scale=policy.scale, names=policy.features),
    Personal: lambda policy: PersonalClass(features=policy.features),
    Clipped: lambda policy: ClippedClass(class_of(policy.policy), policy.lower, policy.upper),
}
"""Policies and the classes that they stand for."""
