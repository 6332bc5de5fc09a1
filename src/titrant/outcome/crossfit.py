"""Folds of rows, and cross-fitting: each row is predicted by a model that has not seen it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from titrant import _check
from titrant.data.keys import GOLDEN, splitmix64
from titrant.errors import DataError
from titrant.outcome.base import (
    as_outcome_model,
    curve_of,
    given_of,
    scaled_weights,
    some,
    training,
    weighed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.outcome.base import Curves, OutcomeModel, Regressor

    Rows = NDArray[np.intp]

# Which fold a row belongs to: a pure function of its number, however the log is cut up.


Folds = NDArray[np.int64]
"""The fold 0, 1, … of each row (n,)."""


def fold_of(first_row: int, n: int, folds: int, seed: int) -> Folds:
    """Return the folds 0 … folds−1 of rows first_row … first_row + n − 1 (n,).

    Each block of `folds` consecutive rows of the whole log holds every fold once, in an order
    drawn by a hash of (seed, row number). So folds are balanced to within one row, and the
    batches of a stream get the folds that the whole log would get.
    """
    start = first_row - first_row % folds
    stop = -(-(first_row + n) // folds) * folds
    ranks = _ranks(np.arange(start, stop).reshape(-1, folds), seed).ravel()
    return ranks[first_row - start : first_row - start + n]


def fold_at(rows: NDArray[np.int64], folds: int, seed: int) -> Folds:
    """Return the folds of rows with these numbers in the whole log (n,)."""
    place = rows % folds
    ranks = _ranks((rows - place)[:, None] + np.arange(folds), seed)
    return ranks[np.arange(len(rows)), place]


def inner_folds(n: int, folds: int, seed: int, units: NDArray[np.int64] | None) -> Folds:
    """Return folds of n training rows; rows of one unit (n,), such as a patient, share one."""
    if units is None:
        return fold_of(0, n, folds, seed)
    return fold_at(np.unique(units, return_inverse=True)[1], folds, seed)


class Folded:
    """A model fitted in `folds` folds, drawn by `seed`."""

    folds: int
    seed: int

    def fold(self, first_row: int, n: int, numbers: NDArray[np.int64] | None = None) -> Folds:
        """Return the folds of n rows of the whole log, from `first_row` on or numbered (n,)."""
        if numbers is None:
            return fold_of(first_row, n, self.folds, self.seed)
        return fold_at(numbers, self.folds, self.seed)


def _ranks(rows: NDArray[np.int64], seed: int) -> Folds:
    """Return the order of the keys within each line of row numbers (m, folds)."""
    state = splitmix64(np.array([seed % 2**64], dtype=np.uint64))
    order = splitmix64(state + rows.astype(np.uint64) * np.uint64(GOLDEN)).argsort(
        axis=1, kind="stable"
    )
    return order.argsort(axis=1, kind="stable")


def need_rows(n: int, folds: int, owner: str) -> None:
    """Raise unless every fold has at least two rows."""
    if n < 2 * folds:
        raise DataError(
            f"`{owner}` with {folds} folds needs at least {2 * folds} rows to learn from; got {n}. "
            "Use fewer folds or more rows."
        )


# Cross-fitting: each row is predicted by a model that has not seen it.


class CrossFit(Folded, BaseEstimator):
    """One outcome model for each fold, fitted on the rows of all other folds.

    Parameters
    ----------
    model : the outcome model or scikit-learn regressor to fit; it is cloned, never changed.
    folds : how many; 1 fits one model on all rows and predicts the same rows with it, which is
        biased for flexible models and meant for comparison.
    seed : draws the folds, see `fold_of`.
    """

    def __init__(self, model: OutcomeModel | Regressor, *, folds: int = 5, seed: int = 0) -> None:
        self.model = model
        self.folds = folds
        self.seed = seed

    def fit(
        self,
        X: Array,
        t: Array,
        y: Array,
        *,
        first_row: int = 0,
        numbers: NDArray[np.int64] | None = None,
        extended: Sequence[Array] | None = None,
        units: NDArray[np.int64] | None = None,
        sample_weight: Array | None = None,
    ) -> Self:
        """Fit on contexts X (n, p), doses t (n,) or (n, d), outcomes y (n,).

        `first_row` is the number of their first row in the whole log; `numbers` (n,) are the
        numbers of all of them, if they are not consecutive. `extended` are the contexts of the
        rows outside each fold that its model learns from instead of X (`FoldForests.fit_extend`);
        predictions then take contexts that were extended likewise (`FoldForests.extend`). `units`
        (n,) are equal in rows that belong together: see `OutcomeModel.fit_units`. `sample_weight`
        (n,) goes to models whose `fit` takes it.
        """
        _check.count(self.folds, "folds", "CrossFit")
        _check.count(self.seed, "seed", "CrossFit", at_least=0)
        x, doses, outcome = training(X, t, y, "CrossFit")
        need_rows(len(x), self.folds, "CrossFit")
        weights = scaled_weights(sample_weight, len(x), "CrossFit")
        fold = self.fold(first_row, len(x), numbers)
        self.extended_ = extended is not None
        model = as_outcome_model(self.model)
        self.models_: tuple[OutcomeModel, ...] = tuple(
            weighed(
                clone(model).fit_units,
                x[rows] if extended is None else extended[k],
                doses[rows],
                outcome[rows],
                None if units is None else units[rows],
                weights=some(weights, rows),
            )
            for k, rows in enumerate(self._training_rows(fold))
        )
        return self

    def predict(self, fold: Folds, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,), each by the model that did not see the row's fold."""
        return self.given(fold, X)(t)

    def given(self, fold: Folds, X: Array) -> Curves:
        """Return t ↦ r̂(tᵢ, xᵢ) (n,), what depends on contexts X (n, p) alone computed once."""
        parts = [(given_of(model, X[rows]), rows) for model, rows in self._by_fold(fold)]

        def by_fold(t: Array) -> Array:
            prediction = np.empty(len(X))
            for own, rows in parts:
                prediction[rows] = own(t[rows])
            return prediction

        return by_fold

    def curve(self, fold: Folds, X: Array, doses: Array) -> Array:
        """Return r̂(doses[j], xᵢ) (n, G), each row by the model that did not see its fold."""
        curves = np.empty((len(X), len(doses)))
        for model, rows in self._by_fold(fold):
            curves[rows] = curve_of(model, X[rows], doses)
        return curves

    def _training_rows(self, fold: Folds) -> list[Rows]:
        """Return the numbers of the rows outside each fold; of all rows if there is one fold."""
        left_out = range(self.folds) if self.folds > 1 else [-1]
        return [np.flatnonzero(fold != k) for k in left_out]

    def _by_fold(self, fold: Folds) -> list[tuple[OutcomeModel, Rows]]:
        """Return each model that is needed beside the numbers of its rows."""
        rows = [np.flatnonzero(fold == k) for k in range(self.folds)]
        if sum(map(len, rows)) < len(fold):
            raise _check.invalid("fold", "CrossFit", f"between 0 and {self.folds - 1}", fold)
        return [(model, rows[k]) for k, model in enumerate(self.models_) if len(rows[k])]
