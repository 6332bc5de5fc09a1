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
    from collections.abc import Iterator, Mapping

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


def unseen(
    models: Mapping[str, OutcomeModel],
    log: LoggedData,
    fold: Folds,
    grid: Array,
    progress: Progress,
) -> Iterator[Predictions]:
    """Yield predictions of all rows by models without their fold, then those for scoring each fold.

    For scoring fold k they are of the rows of other folds, by models without their own and without
    k. The curves of one fold are held until they are complete and handed over, never those of all.
    """
    folds = int(fold.max()) + 1
    tasks = [*combinations(range(folds), 1), *combinations(range(folds), 2)]

    def left_out(done: int) -> tuple[NDArray[np.intp], Predictions]:
        out = np.isin(fold, tasks[done])
        rows = np.flatnonzero(out)
        part = fit_and_predict(models, log, np.flatnonzero(~out), rows, grid)
        progress("outcome models", done + 1, len(tasks))
        return rows, part

    yield _joined([left_out(k) for k in range(folds)], np.arange(len(log)))
    waiting: dict[int, list[tuple[NDArray[np.intp], Predictions]]] = {k: [] for k in range(folds)}
    for done, (j, k) in enumerate(tasks[folds:], start=folds):
        rows, part = left_out(done)
        for scored, other in ((j, k), (k, j)):
            own = np.flatnonzero(fold[rows] == other)
            waiting[scored].append((rows[own], part.only(own)))
        del part
        if k == folds - 1:
            yield _joined(waiting.pop(j), np.flatnonzero(fold != j))
    yield _joined(waiting.pop(folds - 1), np.flatnonzero(fold != folds - 1))


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
    logged = np.empty((len(models), len(rows)))
    curves = np.empty((*logged.shape, len(grid)))
    for j, model in enumerate(models.values()):
        fitted = clone(model).fit(x[train], t[train], y[train])
        curves[j] = curve_of(fitted, x[rows], grid)
        logged[j] = fitted.predict(x[rows], t[rows])
    return Predictions(grid, curves, logged, np.full(len(rows), y[train].mean()))


def _joined(
    parts: list[tuple[NDArray[np.intp], Predictions]], rows: NDArray[np.intp]
) -> Predictions:
    """Return the predictions of ascending rows from parts, each of which is let go when copied."""
    first = parts[0][1]
    shape = (len(first.logged), len(rows), len(first.grid))
    found = Predictions(first.grid, np.empty(shape), np.empty(shape[:2]), np.empty(len(rows)))
    del first
    while parts:
        of, part = parts.pop()
        at = np.searchsorted(rows, of)
        found.curves[:, at], found.logged[:, at] = part.curves, part.logged
        found.mean[at] = part.mean
    return found
