"""Cross-fitting: each row is predicted by a model that has not seen it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from titrant import _check
from titrant.outcome.adapter import as_outcome_model
from titrant.outcome.base import training
from titrant.outcome.folds import fold_at, fold_of, need_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.outcome.adapter import Regressor
    from titrant.outcome.base import OutcomeModel
    from titrant.outcome.folds import Folds

    Rows = NDArray[np.intp]


class CrossFit(BaseEstimator):
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
    ) -> Self:
        """Fit on contexts X (n, p), doses t (n,) or (n, d), outcomes y (n,).

        `first_row` is the number of their first row in the whole log; `numbers` (n,) are the
        numbers of all of them, if they are not consecutive. `extended` are the contexts of the
        rows outside each fold that its model learns from instead of X (`FoldForests.fit_extend`);
        predictions then take contexts that were extended likewise (`FoldForests.extend`).
        """
        _check.count(self.folds, "folds", "CrossFit")
        _check.count(self.seed, "seed", "CrossFit", at_least=0)
        x, doses, outcome = training(X, t, y, "CrossFit")
        need_rows(len(x), self.folds, "CrossFit")
        fold = self.fold(first_row, len(x)) if numbers is None else self.fold_at(numbers)
        self.extended_ = extended is not None
        model = as_outcome_model(self.model)
        self.models_: tuple[OutcomeModel, ...] = tuple(
            clone(model).fit(
                x[rows] if extended is None else extended[k], doses[rows], outcome[rows]
            )
            for k, rows in enumerate(self._training_rows(fold))
        )
        return self

    def fold(self, first_row: int, n: int) -> Folds:
        """Return the folds of rows first_row … first_row + n − 1 of the whole log (n,)."""
        return fold_of(first_row, n, self.folds, self.seed)

    def fold_at(self, numbers: NDArray[np.int64]) -> Folds:
        """Return the folds of rows with these numbers in the whole log (n,)."""
        return fold_at(numbers, self.folds, self.seed)

    def predict(self, fold: Folds, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,), each by the model that did not see the row's fold."""
        prediction = np.empty(len(X))
        for model, rows in self._by_fold(fold):
            prediction[rows] = model.predict(X[rows], t[rows])
        return prediction

    def curve(self, fold: Folds, X: Array, doses: Array) -> Array:
        """Return r̂(doses[j], xᵢ) (n, G), each row by the model that did not see its fold."""
        curves = np.empty((len(X), len(doses)))
        for model, rows in self._by_fold(fold):
            curves[rows] = model.curve(X[rows], doses)
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
