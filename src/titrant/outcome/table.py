"""r̂(·, xᵢ) of every row, tabulated once, so that each later evaluation costs O(n) for any model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.outcome.crossfit import CrossFit, Folds

SIZE = 81
"""Doses in a table unless said otherwise."""


@dataclass(frozen=True, slots=True)
class DoseTable:
    """Outcome curves of n rows over a uniform grid of scalar doses, and their derivatives.

    Between grid points it is the cubic Hermite interpolant with central-difference slopes: once
    continuously differentiable, and exact for curves that are quadratic in the dose. Beyond the
    grid a curve stays at its end value with derivative 0: a model knows nothing out there, and a
    search must not be rewarded for leaving.
    """

    lower: float
    """The first dose of the grid."""
    upper: float
    """The last dose of the grid."""
    values: Array
    """r̂ at the doses of the grid (n, G)."""

    def __post_init__(self) -> None:
        lower = _check.number(self.lower, "lower", "DoseTable")
        upper = _check.number(self.upper, "upper", "DoseTable")
        values = _check.finite_array(self.values, "values", "DoseTable", ndim=2)
        if upper <= lower:
            raise _check.invalid("upper", "DoseTable", f"above `lower` = {lower}", upper)
        if values.shape[1] < 3:  # noqa: PLR2004  (a slope at the end needs three points)
            raise _check.invalid("values", "DoseTable", "at least 3 doses wide", values.shape)
        object.__setattr__(self, "values", values)

    @classmethod
    def of(
        cls,
        model: CrossFit,
        fold: Folds,
        X: Array,
        *,
        bounds: tuple[float, float],
        size: int = SIZE,
    ) -> DoseTable:
        """Tabulate a cross-fitted model for contexts X (n, p), whose folds are `fold` (n,)."""
        _check.count(size, "size", "DoseTable", at_least=3)
        return cls(*bounds, model.curve(fold, X, np.linspace(*bounds, size)))

    @property
    def slopes(self) -> Array:
        """∂r̂/∂t at the doses of the grid, times the grid's step (n, G): made anew, not kept."""
        return np.asarray(np.gradient(self.values, axis=1, edge_order=2))

    @property
    def grid(self) -> Array:
        """The tabulated doses (G,)."""
        return np.linspace(self.lower, self.upper, self.values.shape[1])

    def __call__(self, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) for doses t (n,), or (n, R) for R doses of each row; shaped like t."""
        n, size = self.values.shape
        if t.shape[:1] != (n,):
            raise _check.invalid("t", "DoseTable", f"an array with {n} rows", t.shape)
        step = (self.upper - self.lower) / (size - 1)
        place = np.clip((t - self.lower) / step, 0.0, size - 1.0)
        cell = np.minimum(place.astype(np.intp), size - 2)
        at = cell + (np.arange(n) * size).reshape(-1, *[1] * (t.ndim - 1))
        values, u = self.values.ravel(), place - cell
        m0, m1 = self._slopes_at(cell, at), self._slopes_at(cell + 1, at + 1)
        y0, y1, v = values[at], values[at + 1], 1.0 - u
        value: Array = v * v * ((1.0 + 2.0 * u) * y0 + u * m0) + u * u * (
            (3.0 - 2.0 * u) * y1 - v * m1
        )
        return value

    def _slopes_at(self, cell: NDArray[np.intp], at: NDArray[np.intp]) -> Array:
        """Return the slopes at doses of the grid, numbered in their rows and in all rows."""
        values, first, last = self.values.ravel(), cell == 0, cell == self.values.shape[1] - 1
        inner = at + first - last
        slopes: Array = (values[inner + 1] - values[inner - 1]) / 2.0
        for end, inward in ((first, 1), (last, -1)):
            a = at[end]
            ahead = 2.0 * values[a + inward] - 1.5 * values[a] - 0.5 * values[a + 2 * inward]
            slopes[end] = inward * ahead
        return slopes
