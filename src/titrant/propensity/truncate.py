"""Propensities truncated to bounds.

Truncating renormalizes a law that was fitted as if it had no bounds. When the logged treatments
were themselves cut off, least squares sees the cut mean and spread, so the fitted law is biased
where much mass lies beyond a bound; `calibration` with the same bounds shows by how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import DataError, InvalidArgument
from titrant.propensity.base import doses, treatments
from titrant.propensity.laws import laws_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.propensity.base import FittedPropensity
    from titrant.propensity.laws import Laws


def truncated_density(
    model: FittedPropensity, X: ArrayLike, t: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> Array:
    """Return f(t|x) / (F(upper|x) − F(lower|x)) in the bounds and 0 outside, (n,).

    X is (n, p); t, `lower` and `upper` are one number a row or one for all; ±inf is no bound.
    For models that know logarithms (`PreciseTails`) the quotient is taken of these, so it holds
    its digits where the bounds lie far in a tail.
    """
    return Truncated.of(model, X, lower, upper).density(t)


def truncated_cdf(
    model: FittedPropensity, X: ArrayLike, t: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> Array:
    """Return (F(t|x) − F(lower|x)) / (F(upper|x) − F(lower|x)), clipped to [0, 1], (n,)."""
    return Truncated.of(model, X, lower, upper).cdf(t)


@dataclass(frozen=True, slots=True)
class Truncated:
    """The laws of the dose in n rows, truncated to bounds, one a row or one for all."""

    n: int
    laws: Laws
    lower: ArrayLike
    upper: ArrayLike

    @classmethod
    def of(
        cls, model: FittedPropensity, X: ArrayLike, lower: ArrayLike, upper: ArrayLike
    ) -> Truncated:
        """Return the laws of a model at contexts X (n, p)."""
        return cls(len(np.asarray(X)), laws_of(model, X), lower, upper)

    def density(self, t: ArrayLike) -> Array:
        """Return f(t|x) / (F(upper|x) − F(lower|x)) in the bounds and 0 outside, (n,)."""
        if self._unbounded:
            return self.laws.density(treatments(t, self.n))
        t, lower, upper = self._rows(t)
        log_mass = self._log_mass(lower, upper)
        inside = (t >= lower) & (t <= upper)
        return np.where(inside, np.exp(self.laws.log_density(t) - log_mass), 0.0)

    def cdf(self, t: ArrayLike) -> Array:
        """Return (F(t|x) − F(lower|x)) / (F(upper|x) − F(lower|x)), clipped to [0, 1], (n,)."""
        if self._unbounded:
            return self.laws.cdf(treatments(t, self.n))
        t, lower, upper = self._rows(t)
        log_mass = self._log_mass(lower, upper)
        below = self.laws.log_probability(lower, np.clip(t, lower, upper))
        return np.minimum(np.exp(below - log_mass), 1.0)

    def between(self, low: Array, high: Array) -> Array:
        """Return P(low < T ≤ high | x) (n,) between edges (n,)."""
        return np.maximum(self.cdf(high) - self.cdf(low), 0.0)

    @property
    def _unbounded(self) -> bool:
        low, high = (
            np.asarray(self.lower, dtype=np.float64),
            np.asarray(self.upper, dtype=np.float64),
        )
        return bool(np.all(np.isneginf(low)) and np.all(np.isposinf(high)))

    def _rows(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        if np.ndim(t) > 1 and np.shape(t)[1] > 1:
            raise InvalidArgument(
                "Truncation of vector propensities is not supported yet. Log the propensity as a "
                "column, or evaluate without bounds."
            )
        n = self.n
        t, lower, upper = doses(t, n), doses(self.lower, n), doses(self.upper, n)
        if empty := int(np.sum(lower >= upper)):
            raise DataError(
                f"The lower bound must be below the upper one; it is not in {empty:,} of {n:,} "
                "rows."
            )
        return t, lower, upper

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        mass = self.laws.log_probability(lower, upper)
        if empty := int(np.sum(np.isneginf(mass))):
            raise DataError(
                f"The propensity puts no probability inside the bounds in {empty:,} of "
                f"{len(mass):,} rows. Check that bounds and treatments share a unit."
            )
        return mass
