"""A dose linear in the context, or the same for all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import InvalidArgument
from titrant.learn.classes.base import FittedClass, PolicyClass, places_of, sizes, used_columns
from titrant.policies import Constant, Linear
from titrant.scaling import Held

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.evaluation.survey import Survey


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
        coef, level = self.scaled(params)
        return Linear(coef, level, features=self.names)

    def scaled(self, params: Array) -> tuple[Array, Array | float]:
        """Return coefficients and intercept on the user's scale."""
        coef = (params[int(self.intercept) :].T / self.size).T
        return coef, params[0] - self.center @ coef if self.intercept else 0.0

    def slope(self, context: str) -> int | None:
        """Return the place of a context's coefficient."""
        return self.names.index(context) + self.intercept if context in self.names else None

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


def _constant(dose: Array | float) -> Constant:
    return Constant(dose if np.ndim(dose) else float(dose))
