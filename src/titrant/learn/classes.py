"""Policy classes as a learner sees them: all are affine in their parameters, τ = φ(x)'β, clipped.

A class turns contexts into features φ and parameters into a policy on the user's scale. For d
doses at once the parameters are a matrix (P, d), one column a dose.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant import _check
from titrant.errors import DataError, InvalidArgument
from titrant.policies import RBF, Clipped, Constant, Linear
from titrant.policies.base import is_exactly

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.policies import Policy

    Limits = tuple[float | Array, float | Array]

CONSTANT = 1e-10
"""A context whose spread is below this share of its size holds one value up to rounding."""


class PolicyClass(ABC):
    """What kind of policy to learn; `on` fits its scales to the rows learned from."""

    @abstractmethod
    def on(self, log: LoggedData) -> FittedClass:
        """Return the class with the scales of a log."""

    @property
    def limits(self) -> Limits:
        """Between which doses its policies stay, each a number or (d,); infinite if anywhere."""
        return -np.inf, np.inf


class FittedClass(ABC):
    """A policy class with its scales."""

    @abstractmethod
    def features(self, X: Array) -> Array:
        """Return φ (n, P)."""

    @abstractmethod
    def policy(self, params: Array) -> Policy:
        """Return the policy with parameters β (P,) or (P, d), on the user's scale."""

    @property
    @abstractmethod
    def penalized(self) -> Array:
        """Which parameters (P,) a ridge or a norm counts: 1 or 0. Intercepts are not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearClass(PolicyClass):
    """τ(x) = intercept + coef'x; contexts standardized inside unless told otherwise.

    ``features``, if given, are the names that the contexts of the log must have.
    """

    intercept: bool = True
    standardize: bool = True
    features: tuple[str, ...] | None = None

    def on(self, log: LoggedData) -> FittedLinear:
        """Return the class with centers and sizes of the contexts."""
        check_names(self.features, log)
        if not self.intercept and not log.names:
            raise InvalidArgument(
                "A linear policy without an intercept has nothing to learn from a log without "
                "contexts. Keep the intercept, or name contexts."
            )
        x = log.context
        center = x.mean(axis=0) if self.intercept and self.standardize else np.zeros(x.shape[1])
        # Around the mean the sd; without an intercept a constant context takes its place, and the
        # size of a context is its distance from 0.
        size = np.sqrt(np.mean((x - center) ** 2, axis=0))
        moving = size > CONSTANT * np.abs(x).max(axis=0, initial=0.0)
        if not self.standardize:
            return FittedLinear(center, np.ones_like(size), self.intercept, log.names)
        # A constant context has nothing to say: its feature and coefficient are 0.
        return FittedLinear(center, np.where(moving, size, np.inf), self.intercept, log.names)


@dataclass(frozen=True, slots=True)
class FittedLinear(FittedClass):
    """φ = (1, (x − center)/size), or without the 1."""

    center: Array
    size: Array
    intercept: bool
    names: tuple[str, ...]

    def features(self, X: Array) -> Array:
        """Return φ (n, P)."""
        z = (X - self.center) / self.size
        return np.column_stack([np.ones(len(X)), z]) if self.intercept else z

    def policy(self, params: Array) -> Linear | Constant:
        """Return the linear policy on the user's scale; a constant one if there is no context."""
        if not self.names:
            return _constant(params[0])
        coef = (params[int(self.intercept) :].T / self.size).T
        level = params[0] - self.center @ coef if self.intercept else 0.0
        return Linear(coef, level, features=self.names)

    @property
    def penalized(self) -> Array:
        """All but the intercept."""
        counted = np.ones(len(self.center) + self.intercept)
        counted[: int(self.intercept)] = 0.0
        return counted


@dataclass(frozen=True, slots=True)
class ConstantClass(PolicyClass, FittedClass):
    """τ(x) = dose."""

    def on(self, log: LoggedData) -> Self:  # noqa: ARG002
        """Return the class itself: it has no scales."""
        return self

    def features(self, X: Array) -> Array:
        """Return 1 (n, 1)."""
        return np.ones((len(X), 1))

    def policy(self, params: Array) -> Constant:
        """Return the constant policy."""
        return _constant(params[0])

    @property
    def penalized(self) -> Array:
        """Nothing."""
        return np.zeros(1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RBFClass(PolicyClass):
    """Sums of Gaussian bumps: a ball of the RKHS with kernel exp(−‖x − z‖²/2·scale²).

    ``centers`` are as many contexts drawn by ``seed`` unless given as an array (m, p); ``scale``
    is the median distance between contexts unless given. One scale serves all contexts, so give
    them in comparable units.
    """

    centers: int | Array = 50
    scale: float | None = None
    seed: int = 0
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if np.ndim(self.centers):
            _check.finite_array(self.centers, "centers", "RBFClass", ndim=2)
        else:
            _check.count(self.centers, "centers", "RBFClass")
        if self.scale is not None:
            _check.positive(self.scale, "scale", "RBFClass")
        _check.count(self.seed, "seed", "RBFClass", at_least=0)

    def on(self, log: LoggedData) -> FittedRBF:
        """Return the class with its centers and scale."""
        check_names(self.names, log)
        if not log.names:
            raise InvalidArgument(
                "An RBF policy varies with the context, and this log has none. "
                "Learn a constant policy, or name contexts."
            )
        rng = np.random.default_rng(self.seed)
        centers = self._centers(log, rng)
        scale = self.scale if self.scale is not None else _median_distance(log.context, rng)
        return FittedRBF(centers, scale, log.names)

    def _centers(self, log: LoggedData, rng: np.random.Generator) -> Array:
        """Return the centers (m, p)."""
        x = log.context
        if np.ndim(self.centers) == 0:
            number = min(int(self.centers), len(x))
            return np.unique(x[np.sort(rng.choice(len(x), number, replace=False))], axis=0)
        given = np.asarray(self.centers, dtype=np.float64)
        if given.shape[1] != x.shape[1]:
            rule = f"as wide as the context, which has {x.shape[1]} columns"
            raise _check.invalid("centers", "RBFClass", rule, f"shape {given.shape}")
        return given


@dataclass(frozen=True, slots=True)
class FittedRBF(FittedClass):
    """φ = (1, k(x, C)·L⁻ᵀ) with k(C, C) = LLᵀ, so that ‖β‖ is the norm in the RKHS."""

    centers: Array
    scale: float
    names: tuple[str, ...]

    def features(self, X: Array) -> Array:
        """Return φ (n, 1 + m)."""
        bumps = np.linalg.solve(self._root(), self._kernel(X).T).T
        return np.column_stack([np.ones(len(X)), bumps])

    def policy(self, params: Array) -> RBF:
        """Return the policy as a sum of bumps."""
        coef = np.linalg.solve(self._root().T, params[1:])
        return RBF(self.centers, coef, scale=self.scale, intercept=params[0], features=self.names)

    @property
    def penalized(self) -> Array:
        """All but the intercept."""
        counted = np.ones(1 + len(self.centers))
        counted[0] = 0.0
        return counted

    def _kernel(self, X: Array) -> Array:
        """Return k(x, C) (n, m): one dose for each center, with a coefficient of 1."""
        return RBF(self.centers, np.eye(len(self.centers)), scale=self.scale)(X)

    def _root(self) -> Array:
        # A little on the diagonal: centers that almost coincide would make L singular.
        gram = self._kernel(self.centers) + 1e-8 * np.eye(len(self.centers))
        return np.asarray(np.linalg.cholesky(gram))


@dataclass(frozen=True, slots=True, eq=False)
class ClippedClass(PolicyClass):
    """The policies of a class, cut to limits of their own: a number or (d,) on each side."""

    inside: PolicyClass
    lower: float | Array
    upper: float | Array

    def on(self, log: LoggedData) -> FittedClass:
        """Return the class inside with the scales of a log; the limits are applied by its user."""
        return self.inside.on(log)

    @property
    def limits(self) -> Limits:
        """The narrower of these and of those inside."""
        lower, upper = self.inside.limits
        return np.maximum(lower, self.lower), np.minimum(upper, self.upper)


def class_of(policy: Policy | PolicyClass | None) -> PolicyClass:
    """Return the class that a template policy stands for; None is `Linear()`.

    Of a policy that already has coefficients only the kind counts, and its limits if it is clipped.
    """
    if policy is None:
        return LinearClass()
    if isinstance(policy, PolicyClass):
        return policy
    if is_exactly(policy, Linear):
        return LinearClass(features=policy.features)
    if is_exactly(policy, Constant):
        return ConstantClass()
    if is_exactly(policy, RBF):
        return RBFClass(centers=policy.centers, scale=policy.scale, names=policy.features)
    if is_exactly(policy, Clipped):
        return ClippedClass(class_of(policy.policy), policy.lower, policy.upper)
    rule = (
        "Linear(), Constant(0), an RBF, one of them Clipped, or a policy class (not a subclass of "
        "theirs, whose doses may differ)"
    )
    raise _check.invalid("policy", "PolicyLearner", rule, policy)


def check_names(wanted: tuple[str, ...] | None, log: LoggedData) -> None:
    """Refuse a log whose contexts are not those that the template names."""
    if wanted is not None and tuple(wanted) != log.names:
        raise DataError(
            f"The policy to learn names the contexts {', '.join(wanted)}; the log has "
            f"{', '.join(log.names) or 'none'}. Give the same ones in the same order, or no names."
        )


def _constant(dose: Array | float) -> Constant:
    return Constant(dose if np.ndim(dose) else float(dose))


def _median_distance(x: Array, rng: np.random.Generator) -> float:
    """Return the median distance between contexts, from up to 500 of them."""
    some = x[rng.choice(len(x), min(500, len(x)), replace=False)]
    distance = np.sqrt(np.sum((some[:, None, :] - some) ** 2, axis=2))
    median = float(np.median(distance[np.triu_indices(len(some), 1)]))
    return median if median > 0 else 1.0
