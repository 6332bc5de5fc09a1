"""Policy classes as a learner sees them: all are affine in their parameters, τ = φ(x)'β, clipped.

A class turns contexts into features φ and parameters into a policy on the user's scale.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant._check import invalid
from titrant.policies import RBF, Clipped, Constant, Linear

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.policies import Policy


class PolicyClass(ABC):
    """What kind of policy to learn; `on` fits its scales to the rows learned from."""

    @abstractmethod
    def on(self, log: LoggedData) -> FittedClass:
        """Return the class with the scales of a log."""


class FittedClass(ABC):
    """A policy class with its scales."""

    @abstractmethod
    def features(self, X: Array) -> Array:
        """Return φ (n, P)."""

    @abstractmethod
    def policy(self, params: Array) -> Policy:
        """Return the policy with parameters β (P,), on the user's scale."""

    @property
    @abstractmethod
    def penalized(self) -> Array:
        """Which parameters (P,) a ridge or a norm counts: 1 or 0. Intercepts are not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearClass(PolicyClass):
    """τ(x) = intercept + coef'x; contexts standardized inside unless told otherwise."""

    intercept: bool = True
    standardize: bool = True

    def on(self, log: LoggedData) -> FittedLinear:
        """Return the class with means and sds of the contexts."""
        mean, sd = log.context.mean(axis=0), log.context.std(axis=0)
        if not self.standardize:
            mean, sd = np.zeros_like(mean), np.ones_like(sd)
        elif not self.intercept:
            mean = np.zeros_like(mean)
        # A constant context has nothing to say: its feature and coefficient are 0.
        return FittedLinear(mean, np.where(sd > 0, sd, np.inf), self.intercept, log.names)


@dataclass(frozen=True, slots=True)
class FittedLinear(FittedClass):
    """φ = (1, (x − mean)/sd), or without the 1."""

    mean: Array
    sd: Array
    intercept: bool
    names: tuple[str, ...]

    def features(self, X: Array) -> Array:
        """Return φ (n, P)."""
        z = (X - self.mean) / self.sd
        return np.column_stack([np.ones(len(X)), z]) if self.intercept else z

    def policy(self, params: Array) -> Linear:
        """Return the linear policy on the user's scale."""
        coef = params[int(self.intercept) :] / self.sd
        level = params[0] - coef @ self.mean if self.intercept else 0.0
        return Linear(coef, level, features=self.names)

    @property
    def penalized(self) -> Array:
        """All but the intercept."""
        counted = np.ones(len(self.mean) + self.intercept)
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
        return Constant(float(params[0]))

    @property
    def penalized(self) -> Array:
        """Nothing."""
        return np.zeros(1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RBFClass(PolicyClass):
    """Sums of Gaussian bumps: a ball of the RKHS with kernel exp(−‖x − z‖²/2·scale²).

    ``centers`` are as many contexts drawn by ``seed`` unless given as an array (m, p); ``scale``
    is the median distance between contexts unless given.
    """

    centers: int | Array = 50
    scale: float | None = None
    seed: int = 0

    def on(self, log: LoggedData) -> FittedRBF:
        """Return the class with its centers and scale."""
        x = log.context
        rng = np.random.default_rng(self.seed)
        if isinstance(self.centers, int):
            chosen = np.sort(rng.choice(len(x), min(self.centers, len(x)), replace=False))
            centers = np.unique(x[chosen], axis=0)
        else:
            centers = np.asarray(self.centers, dtype=np.float64)
        scale = self.scale if self.scale is not None else _median_distance(x, rng)
        return FittedRBF(centers, scale, log.names)


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
        distance = np.sum((X[:, None, :] - self.centers) ** 2, axis=2)
        return np.asarray(np.exp(-distance / (2 * self.scale**2)))

    def _root(self) -> Array:
        # A little on the diagonal: centers that almost coincide would make L singular.
        gram = self._kernel(self.centers) + 1e-8 * np.eye(len(self.centers))
        return np.asarray(np.linalg.cholesky(gram))


def class_of(policy: Policy | PolicyClass | None) -> PolicyClass:
    """Return the class that a template policy stands for; None is `Linear()`."""
    if policy is None or isinstance(policy, Linear):
        return LinearClass()
    if isinstance(policy, PolicyClass):
        return policy
    if isinstance(policy, Constant):
        return ConstantClass()
    if isinstance(policy, RBF):
        return RBFClass(centers=policy.centers, scale=policy.scale)
    if isinstance(policy, Clipped):
        return class_of(policy.policy)
    rule = "Linear(), Constant(0), an RBF, or a policy class"
    raise invalid("policy", "PolicyLearner", rule, policy)


def _median_distance(x: Array, rng: np.random.Generator) -> float:
    """Return the median distance between contexts, from up to 500 of them."""
    some = x[rng.choice(len(x), min(500, len(x)), replace=False)]
    distance = np.sqrt(np.sum((some[:, None, :] - some) ** 2, axis=2))
    median = float(np.median(distance[np.triu_indices(len(some), 1)]))
    return median if median > 0 else 1.0
