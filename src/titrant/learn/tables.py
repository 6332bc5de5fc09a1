"""Outcome curves r̂(·, xᵢ) of every row, by models that have not seen the row.

For learning on all rows, row i is predicted by models fitted without its fold. For scoring on
fold k, learning uses the other folds only, so there row i is predicted by models fitted without
its fold and without k. Both come from models that leave out one or two folds: with five folds
5 + 10 fits of each model, instead of 5 + 5·5.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.setting import Progress
    from titrant.outcome import DoseTable, OutcomeModel
    from titrant.outcome.crossfit import Folds

DOSES = 81
"""Doses of a table."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """What models fitted without the outcomes of some folds say of n rows."""

    grid: Array
    """Doses (G,)."""
    curves: Array
    """r̂ of each model on the grid (models, n, G)."""
    logged: Array
    """r̂ of each model at the logged dose (models, n)."""
    mean: Array
    """The mean outcome of the rows the models were fitted on (n,)."""

    def only(self, rows: NDArray[np.intp]) -> Predictions:
        """Return the predictions of some rows."""
        return Predictions(self.grid, self.curves[:, rows], self.logged[:, rows], self.mean[rows])

    def stacked(self, weights: Array) -> Curves:
        """Return ȳ + Σ weight·(r̂ − ȳ)."""
        from titrant.outcome import DoseTable  # noqa: PLC0415

        rest = 1.0 - weights.sum()
        values = np.tensordot(weights, self.curves, axes=1) + rest * self.mean[:, None]
        table = DoseTable(float(self.grid[0]), float(self.grid[-1]), values)
        return Curves(table, weights @ self.logged + rest * self.mean)

    def weights(self, y: Array) -> Array:
        """Return the stack's weights: least squares with w ≥ 0, Σw ≤ 1 (models,)."""
        from titrant.outcome.stack import bounded_nnls  # noqa: PLC0415

        return bounded_nnls((self.logged - self.mean).T, y - self.mean)


@dataclass(frozen=True, slots=True)
class Curves:
    """One outcome model on n rows."""

    table: DoseTable
    """r̂(·, xᵢ) of each row."""
    logged: Array
    """r̂ at the logged dose (n,)."""


@dataclass(frozen=True, slots=True)
class CrossTables:
    """Predictions for learning on all rows and for learning without each fold."""

    fold: Folds
    without_own: Predictions
    """Each row by models without its own fold."""
    without_both: tuple[Predictions, ...]
    """For each fold k: each row by models without its own fold and without k."""

    @classmethod
    def of(
        cls,
        models: Mapping[str, OutcomeModel],
        log: LoggedData,
        fold: Folds,
        grid: Array,
        progress: Progress,
    ) -> CrossTables:
        """Fit every model without each fold and each pair of folds."""
        folds = int(fold.max()) + 1
        tasks = [*combinations(range(folds), 1), *combinations(range(folds), 2)]
        own = _empty(len(models), len(log), grid)
        both = [_empty(len(models), len(log), grid) for _ in range(folds)]
        for done, left_out in enumerate(tasks):
            out = np.isin(fold, left_out)
            rows = np.flatnonzero(out)
            part = fit_and_predict(models, log, np.flatnonzero(~out), rows, grid)
            progress("outcome models", done + 1, len(tasks))
            if len(left_out) == 1:
                _store(own, part, rows, np.ones(len(rows), dtype=bool))
                continue
            for k, other in (left_out, left_out[::-1]):
                _store(both[k], part, rows, fold[rows] == other)
        return cls(fold, own, tuple(both))


def fit_and_predict(
    models: Mapping[str, OutcomeModel],
    log: LoggedData,
    train: NDArray[np.intp],
    rows: NDArray[np.intp],
    grid: Array,
) -> Predictions:
    """Fit the models on rows ``train`` and predict ``rows``."""
    from sklearn.base import clone  # noqa: PLC0415

    from titrant.outcome.base import curve_of  # noqa: PLC0415

    x, t, y = log.context, log.treatment, log.outcome
    curves, logged = [], []
    for model in models.values():
        fitted = clone(model).fit(x[train], t[train], y[train])
        curves.append(curve_of(fitted, x[rows], grid))
        logged.append(fitted.predict(x[rows], t[rows]))
    mean = np.full(len(rows), y[train].mean())
    return Predictions(grid, np.stack(curves), np.stack(logged), mean)


def _empty(models: int, n: int, grid: Array) -> Predictions:
    shape = (models, n, len(grid))
    return Predictions(grid, np.zeros(shape), np.zeros(shape[:2]), np.zeros(n))


def _store(
    into: Predictions, part: Predictions, rows: NDArray[np.intp], mask: NDArray[np.bool_]
) -> None:
    into.curves[:, rows[mask]] = part.curves[:, mask]
    into.logged[:, rows[mask]] = part.logged[:, mask]
    into.mean[rows[mask]] = part.mean[mask]
