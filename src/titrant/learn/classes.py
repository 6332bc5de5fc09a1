"""Policy classes as a learner sees them: affine in their parameters, τ = φ(x)'β, clipped.

A class turns contexts into features φ and parameters into a policy on the user's scale. For d
doses at once the parameters are a matrix (P, d), one column a dose. Only a policy of a user's own
is searched as it is, by its own parameters and gradient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant import _check
from titrant.data.columns import places
from titrant.errors import InvalidArgument
from titrant.optimize.sums import FeaturePolicy
from titrant.policies import RBF, Clipped, Constant, Linear, ParametricPolicy
from titrant.policies.base import is_exactly
from titrant.policies.rbf import scales_of
from titrant.scaling import ROUNDING, Held, spread_of

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.evaluation.survey import Survey
    from titrant.policies import Policy

    DoseLimits = tuple[float | Array, float | Array]


RBF_RIDGE = 0.03
"""The ridge of bumps over that of lines. On four simulated designs, 400 and 1,500 rows, .1 and .01
were alike (a line, 1,500 rows: excess .005 and .002) and better than 1 (.034)."""


class PolicyClass(ABC):
    """What kind of policy to learn; `on` fits its scales to the rows learned from."""

    @abstractmethod
    def on(self, log: LoggedData) -> FittedClass:
        """Return the class with the scales of a log."""

    def fitted(self, survey: Survey) -> FittedClass:
        """Return the class with the scales of all rows of a log, as far as its survey knows them.

        Unless a class says more, with those of the rows in memory: all, or a sample.
        """
        return self.on(survey.sample.log)

    @property
    def limits(self) -> DoseLimits:
        """Between which doses its policies stay, each a number or (d,); infinite if anywhere."""
        return -np.inf, np.inf


class FittedClass(ABC):
    """A policy class with its scales."""

    @abstractmethod
    def features(self, X: Array) -> Array:
        """Return φ (n, P) for contexts X with all columns of the log, in its order."""

    @abstractmethod
    def policy(self, params: Array) -> Policy:
        """Return the policy with parameters β (P,) or (P, d), on the user's scale."""

    @property
    @abstractmethod
    def penalized(self) -> Array:
        """Which parameters (P,) a ridge or a norm counts: 1 or 0. Intercepts are not counted."""

    @property
    def roughness(self) -> Array:
        """How much the default procedure's ridges count each parameter (P,).

        Its ridges are set for coefficients of standardized contexts, whose squares are variances of
        the dose. A class whose norm is of another size says so here.
        """
        return self.penalized

    @property
    def affine(self) -> bool:
        """Whether the dose is φ'β, before it is clipped."""
        return True

    def searched(self, unit: Array) -> ParametricPolicy:
        """Return any policy of the features, its parameters in units of ``unit`` (d,)."""
        size, d = len(self.penalized), len(unit)
        return FeaturePolicy(np.zeros(size if d == 1 else (size, d)), unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearClass(PolicyClass):
    """τ(x) = intercept + coef'x; contexts standardized inside unless told otherwise.

    ``features`` are the contexts of the log that the policy uses, in its order; all unless given.
    """

    intercept: bool = True
    standardize: bool = True
    features: tuple[str, ...] | None = None

    def on(self, log: LoggedData) -> FittedLinear:
        """Return the class with centers and sizes of the contexts."""
        used = places_of(self.features, log)
        names = tuple(log.names[j] for j in used)
        if not self.intercept and not names:
            raise InvalidArgument(
                "A linear policy without an intercept has nothing to learn from a log without "
                "contexts. Keep the intercept, or name contexts."
            )
        x = used_columns(log.context, used)
        if not self.standardize:
            zero, one = np.zeros(x.shape[1]), np.ones(x.shape[1])
            return FittedLinear(zero, one, self.intercept, names, used, None)
        hold = Held.of(x)
        held = hold.columns(x)
        center = held.mean(axis=0) if self.intercept else np.zeros(x.shape[1])
        size = sizes(held, center)
        # A constant context has nothing to say: its feature and coefficient are 0.
        unit = np.where(size > 0.0, size, np.inf)
        return FittedLinear(center, unit, self.intercept, names, used, hold)

    def fitted(self, survey: Survey) -> FittedClass:
        """Return the class with centers and sizes by sums over all rows.

        Where values are held, only the rows in memory tell what is left, and where a subclass has
        scales of its own, only it can find them.
        """
        found = self.on(survey.sample.log)
        own = type(self).on is not LinearClass.on
        if own or survey.sample.whole or not self.standardize or not survey.as_they_are:
            return found
        contexts, used = survey.contexts, list(found.places)
        mean, spread = contexts.center[used], contexts.spread[used]
        center = mean if self.intercept else np.zeros_like(mean)
        size = np.sqrt(spread**2 + (mean - center) ** 2)
        return replace(found, center=center, size=np.where(size > 0.0, size, np.inf))


@dataclass(frozen=True, slots=True)
class FittedLinear(FittedClass):
    """φ = (1, (x − center)/size), or without the 1."""

    center: Array
    size: Array
    intercept: bool
    names: tuple[str, ...]
    places: tuple[int, ...]
    """Where the contexts it uses are among those of the log."""
    hold: Held | None
    """How far values are held while learning; the policy is linear in the contexts as they are."""

    def features(self, X: Array) -> Array:
        """Return φ (n, P)."""
        x = used_columns(X, self.places)
        z = ((x if self.hold is None else self.hold.columns(x)) - self.center) / self.size
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
class ConstantClass(PolicyClass):
    """τ(x) = dose: linear in no context."""

    def on(self, log: LoggedData) -> FittedLinear:
        """Return the class for a log; it has no scales."""
        return LinearClass(features=(), standardize=False).on(log)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RBFClass(PolicyClass):
    """Sums of Gaussian bumps: a ball of the RKHS with kernel exp(−Σⱼ((xⱼ − zⱼ)/scaleⱼ)²/2).

    ``centers`` are as many contexts drawn by ``seed`` unless given as an array (m, p). ``scale`` is
    a number or one a context; unless given, the sd of each context times the median distance
    between contexts in these units, so that no context counts for its unit. ``names`` are the
    contexts of the log that the policy uses, in the order of the centers; all unless given.
    """

    centers: int | Array = 50
    scale: float | Array | None = None
    seed: int = 0
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if np.ndim(self.centers):
            _check.finite_array(self.centers, "centers", "RBFClass", ndim=2)
        else:
            _check.count(self.centers, "centers", "RBFClass")
        if self.scale is not None:
            scales_of(self.scale, None, "RBFClass")
        _check.count(self.seed, "seed", "RBFClass", at_least=0)

    def on(self, log: LoggedData) -> FittedRBF:
        """Return the class with its centers and scale."""
        used = places_of(self.names, log)
        if not used:
            raise InvalidArgument(
                "An RBF policy varies with the context, and this log has none. "
                "Learn a constant policy, or name contexts."
            )
        rng = np.random.default_rng(self.seed)
        x = used_columns(log.context, used)
        centers = self._centers(x, rng)
        scale = _usual_scale(x, rng) if self.scale is None else self.scale
        return FittedRBF(centers, scale, tuple(log.names[j] for j in used), used)

    def _centers(self, x: Array, rng: np.random.Generator) -> Array:
        """Return the centers (m, p) for contexts x (n, p)."""
        if np.ndim(self.centers) == 0:
            number = min(int(self.centers), len(x))
            held = Held.of(x).columns(x)  # a bump around an absurd value would serve one row
            return np.unique(held[np.sort(rng.choice(len(x), number, replace=False))], axis=0)
        given = np.asarray(self.centers, dtype=np.float64)
        if given.shape[1] != x.shape[1]:
            rule = f"as wide as the context, which has {x.shape[1]} columns"
            raise _check.invalid("centers", "RBFClass", rule, f"shape {given.shape}")
        return given


@dataclass(frozen=True, slots=True)
class FittedRBF(FittedClass):
    """φ = (1, k(x, C)·L⁻ᵀ) with k(C, C) = LLᵀ, so that ‖β‖ is the norm in the RKHS."""

    centers: Array
    scale: float | Array
    names: tuple[str, ...]
    places: tuple[int, ...]
    """Where the contexts it uses are among those of the log."""

    def features(self, X: Array) -> Array:
        """Return φ (n, 1 + m)."""
        bumps = np.linalg.solve(self._root(), self._kernel(used_columns(X, self.places)).T).T
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

    @property
    def roughness(self) -> Array:
        """A part of the norm: that of a line is many times the variance of its doses."""
        return RBF_RIDGE * self.penalized

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

    def fitted(self, survey: Survey) -> FittedClass:
        """Return the class inside with the scales of all rows."""
        return self.inside.fitted(survey)

    @property
    def limits(self) -> DoseLimits:
        """The narrower of these and of those inside."""
        lower, upper = self.inside.limits
        return np.maximum(lower, self.lower), np.minimum(upper, self.upper)


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
    if is_exactly(policy, Linear):
        return LinearClass(features=policy.features)
    if is_exactly(policy, Constant):
        return ConstantClass()
    if is_exactly(policy, RBF):
        return RBFClass(centers=policy.centers, scale=policy.scale, names=policy.features)
    if is_exactly(policy, Clipped):
        return ClippedClass(class_of(policy.policy), policy.lower, policy.upper)
    known = isinstance(policy, (Linear, Constant, RBF, Clipped))
    if isinstance(policy, ParametricPolicy) and policy.parametric and not known:
        return OwnClass(policy)
    rule = (
        "Linear(), Constant(0), an RBF, one of them Clipped, a policy class (not a subclass of "
        "theirs, whose doses may differ), or a policy of your own with parameters"
    )
    raise _check.invalid("policy", "PolicyLearner", rule, policy)


def places_of(wanted: tuple[str, ...] | None, log: LoggedData) -> tuple[int, ...]:
    """Return where the contexts that a template names are among those of the log; all for None.

    But codes of texts: they are no amounts, and a rule of them would follow the alphabet.
    """
    codes = () if log.flow is None else log.flow.codes
    if wanted is None:
        return tuple(j for j, name in enumerate(log.names) if name not in codes)
    if coded := [name for name in wanted if name in codes]:
        raise InvalidArgument(
            f"The context `{coded[0]}` is a code of many texts, not an amount: a policy cannot be "
            "learned of it. Leave it out, or group its texts to at most 50."
        )
    return places(wanted, log.names, "policy to learn")


def used_columns(X: Array, used: tuple[int, ...]) -> Array:
    """Return the columns of contexts X (n, p) at these places; X if that is all of it."""
    return X if used == tuple(range(X.shape[1])) else np.take(X, used, axis=1)


def _constant(dose: Array | float) -> Constant:
    return Constant(dose if np.ndim(dose) else float(dose))


def sizes(x: Array, center: Array) -> Array:
    """Return √mean(x − center)² of each column of x (n, p), 0 where that is rounding.

    Around the mean it is the sd. Without an intercept the center is 0: a constant context takes the
    intercept's place, and the size of a context is its distance from 0.
    """
    size = np.sqrt(np.mean((x - center) ** 2, axis=0))
    return np.where(size > ROUNDING * np.abs(x).max(axis=0, initial=0.0), size, 0.0)


def _usual_scale(x: Array, rng: np.random.Generator) -> Array:
    """Return the sd of each context (p,) times their median distance in sds, from up to 500 rows.

    A constant context keeps apart nothing, whatever its scale.
    """
    held = Held.of(x).columns(x)
    spread = spread_of(held)
    unit = np.where(spread > 0.0, spread, 1.0)
    some = held[rng.choice(len(x), min(500, len(x)), replace=False)] / unit
    distance = np.sqrt(np.sum((some[:, None, :] - some) ** 2, axis=2))
    median = float(np.median(distance[np.triu_indices(len(some), 1)]))
    return unit * (median if median > 0 else 1.0)
