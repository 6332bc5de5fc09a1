"""Policy classes as a learner sees them: affine in their parameters, τ = φ(x)'β, clipped.

A class turns contexts into features φ and parameters into a policy on the user's scale. For d
doses at once the parameters are a matrix (P, d), one column a dose. A policy of a user's own is
searched as it is, by its own parameters and gradient; a `CurveClass` has a search of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant._own import written_anew
from titrant._types import Array
from titrant.data.columns import places
from titrant.errors import InvalidArgument
from titrant.optimize.sums import FeaturePolicy
from titrant.scaling import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from titrant.data import LoggedData
    from titrant.evaluation.survey import Survey
    from titrant.learn.limits import Limits
    from titrant.policies import ParametricPolicy, Policy

DoseLimits = tuple[float | Array, float | Array]
"""The smallest and the largest dose of a policy, each a number or (d,)."""


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

    @property
    def kept(self) -> Limits | None:
        """What its policies keep to besides, in each row and on average."""
        return None

    @property
    def name(self) -> str:
        """What a table calls it."""
        return type(self).__name__.removesuffix("Class").lower()

    def competing(self, log: LoggedData) -> tuple[PolicyClass, ...]:  # noqa: ARG002
        """Return the classes that compete for a log, simplest first: this one alone."""
        return (self,)


@dataclass(frozen=True, slots=True)
class DoseCurves:
    """What is known of n rows at each dose of a grid: estimates of their losses."""

    grid: Array
    """Doses (G,), evenly spaced; of several doses at once points (G, d)."""
    model: Array
    """The outcome model, smoothed over the bandwidth (n, G)."""
    robust: Array
    """D = r̂(g, x) + K_h(t − g)/q·(y − r̂(t, x)), doubly robust (n, G)."""


class CurveClass(PolicyClass):
    """A class whose policies are found from the rows' curves, by a search of its own."""

    @property
    @abstractmethod
    def candidates(self) -> Mapping[str, int | None]:
        """The names of the policies that `found` returns, with their sizes, if they have one."""

    @abstractmethod
    def found(self, log: LoggedData, curves: DoseCurves) -> tuple[Policy, ...]:
        """Return the policies with the least mean curve over the rows of a log."""

    def on(self, log: LoggedData) -> FittedClass:  # noqa: ARG002
        """Refuse: there are no features to be weighed."""
        raise InvalidArgument(
            f"`{type(self).__name__}` is learned from outcome curves, which the default procedures "
            "make; others weigh features, of which it has none. Leave the procedure out, or learn "
            "a class such as `LinearClass`."
        )


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
    def narrowest(self) -> float:
        """The narrowest bandwidth at which the default procedure searches, in residual sds.

        With many parameters a narrow kernel has kinks enough that rounding decides at which of them
        a search ends.
        """
        return 0.0

    def slope(self, context: str) -> int | None:
        """Return which parameter is the slope in a context; None if the context is not used."""
        raise InvalidArgument(
            f"`{type(self).__name__}` has no single slope in `{context}`. Learn a linear rule, or "
            "leave `increasing` and `decreasing` out."
        )

    @property
    def affine(self) -> bool:
        """Whether the dose is φ'β, before it is clipped."""
        return True

    def searched(self, unit: Array) -> ParametricPolicy:
        """Return any policy of the features, its parameters in units of ``unit`` (d,)."""
        size, d = len(self.penalized), len(unit)
        return FeaturePolicy(np.zeros(size if d == 1 else (size, d)), unit)


RULE = ("features", "policy", "scaled", "basis", "bent")
"""What makes a rule of parameters: whoever says where its slopes are relies on these."""


def slope_of(fitted: FittedClass, context: str) -> int | None:
    """Return what `slope` does; refuse where the rule was written anew and its slopes were not."""
    anew = written_anew(fitted, RULE, since="slope")
    return FittedClass.slope(fitted, context) if anew else fitted.slope(context)


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
    def name(self) -> str:
        """That of the class inside."""
        return self.inside.name

    def competing(self, log: LoggedData) -> tuple[PolicyClass, ...]:
        """Return those of the class inside; the limits are applied by their user."""
        return self.inside.competing(log)

    @property
    def limits(self) -> DoseLimits:
        """The narrower of these and of those inside."""
        lower, upper = self.inside.limits
        return np.maximum(lower, self.lower), np.minimum(upper, self.upper)


def places_of(wanted: tuple[str, ...] | None, log: LoggedData) -> tuple[int, ...]:
    """Return where the contexts that a template names are among those of the log; all for None.

    But codes of texts: they are no amounts, and a rule of them would follow the alphabet. And but
    the running time of dates, unless it is named: all whom a rule will serve come after the log.
    """
    codes = () if log.flow is None else log.flow.codes
    if wanted is None:
        aside = () if log.flow is None else (*codes, *log.flow.running)
        return tuple(j for j, name in enumerate(log.names) if name not in aside)
    if coded := [name for name in wanted if name in codes]:
        raise InvalidArgument(
            f"The context `{coded[0]}` is a code of many texts, not an amount: a policy cannot be "
            "learned of it. Leave it out, or group its texts to at most 50."
        )
    return places(wanted, log.names, "policy to learn")


def varying(wanted: tuple[str, ...] | None, log: LoggedData, kind: str) -> tuple[int, ...]:
    """Return the same for a class that is nothing without contexts."""
    if found := places_of(wanted, log):
        return found
    raise InvalidArgument(
        f"{kind} varies with the context, and this log has none. "
        "Learn a constant policy, or name contexts."
    )


def used_columns(X: Array, used: tuple[int, ...]) -> Array:
    """Return the columns of contexts X (n, p) at these places; X if that is all of it."""
    return X if used == tuple(range(X.shape[1])) else np.take(X, used, axis=1)


def sizes(x: Array, center: Array) -> Array:
    """Return √mean(x − center)² of each column of x (n, p), 0 where that is rounding.

    Around the mean it is the sd. Without an intercept the center is 0: a constant context takes the
    intercept's place, and the size of a context is its distance from 0.
    """
    size = np.sqrt(np.mean((x - center) ** 2, axis=0))
    return np.where(size > ROUNDING * np.abs(x).max(axis=0, initial=0.0), size, 0.0)
