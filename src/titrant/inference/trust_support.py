"""The support of a log: which doses were given to contexts like these, often enough to be seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.estimators import Rows
    from titrant.propensity import PropensityModel

THINNEST = 0.01
"""The least density, in units of 1/∏sd(T), at which a dose counts as logged; also the default
floor under propensities, so that a lower floor of the user's does not widen the support."""


@dataclass(frozen=True, slots=True)
class Support:
    """Doses t with f(t | x) ≥ ``level`` that lie in the range of all logged doses.

    Doses on a bound are never logged when they are continuous, and the boundary kernel needs none:
    toward a bound the range extends by ``reach``.
    """

    model: PropensityModel
    """A fitted model of f(t | x)."""
    level: float
    lowest: Array
    """The least logged dose (d,)."""
    highest: Array
    reach: Array
    """One bandwidth of the usual size, sd(T)·n^(−1/(d+4)), (d,)."""
    surrogate: bool
    """Whether the model was fitted for this purpose alone, beside a column of propensities."""

    @classmethod
    def of(cls, log: LoggedData, model: PropensityModel | None, floor: float) -> Self | None:
        """Return the support by ``model``, or by a linear-Gaussian one; None if none can be fitted.

        A column of propensities says nothing of doses that were not logged: hence the surrogate.
        """
        level = max(floor, THINNEST / float(np.prod(log.doses.std(axis=0))))
        lowest, highest = log.doses.min(axis=0), log.doses.max(axis=0)
        try:
            fitted = _linear_gaussian(log) if model is None else model
        except DataError:
            return None
        reach = log.doses.std(axis=0) * len(log) ** (-1 / (log.dimension + 4))
        return cls(fitted, level, lowest, highest, reach, surrogate=model is None)

    def outside(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which rows (n,) have a policy dose outside the support."""
        below = rows.tau < self.lowest - self._toward(rows.lower)
        above = rows.tau > self.highest + self._toward(rows.upper)
        return np.asarray((below | above).any(axis=1) | (self._density(rows) < self.level))

    def _toward(self, bound: Array | None) -> Array:
        """Return how far the range extends toward a bound (n, d), or (d,) if there is none."""
        nowhere = np.zeros_like(self.reach)
        return nowhere if bound is None else np.where(np.isfinite(bound), self.reach, nowhere)

    def _density(self, rows: Rows) -> Array:
        """Return f(τ(x) | x) (n,), within the bounds as the weights have it."""
        from titrant.propensity import Known, truncated_density  # noqa: PLC0415

        x = _columns(rows.need("x", "Support"))
        tau = rows.tau[:, 0] if rows.tau.shape[1] == 1 else rows.tau
        free = self.surrogate or isinstance(self.model, Known)
        if free or rows.lower is None or rows.upper is None:
            return self.model.density(x, tau)
        return truncated_density(self.model, x, tau, rows.lower[:, 0], rows.upper[:, 0])


def _linear_gaussian(log: LoggedData) -> PropensityModel:
    from titrant.propensity import LinearGaussian, MultivariateGaussian  # noqa: PLC0415

    model = LinearGaussian() if log.dimension == 1 else MultivariateGaussian()
    return model.fit(_columns(log.context), log.treatment)


def _columns(x: Array) -> Array:
    """Return contexts (n, p), or one constant column when there are none."""
    return x if x.shape[1] else np.ones((len(x), 1))
