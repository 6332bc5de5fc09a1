"""Whether an outcome is seen at all: P(Δ = 1 | x), cross-fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from titrant import _check
from titrant.outcome.base import mean_of, row_weights, some
from titrant.outcome.context import ContextMap
from titrant.outcome.crossfit import Folded, Folds, need_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array

PENALTIES = (1e0, 1e1, 1e2, 1e3, 1e5)
"""1/C of the logistic regressions; the last leaves the share of rows seen."""
LEAST = 0.02
"""No outcome counts as less likely to be seen: none counts more than fifty rows."""


class SeenModel(Folded, BaseEstimator):
    """p̂(x) = P(Δ = 1 | x), Δ = 1 where the outcome is seen: logistic on φ(x), cross-fitted.

    Contexts may hold what else the chance depends on, such as the dose. φ are the splines, levels
    and products of `ContextMap`. The penalty is that of the greatest likelihood of rows which the
    regressions have not seen: few missing outcomes say little of many features.

    Parameters
    ----------
    folds, seed : as those of the `CrossFit` beside it.

    Fitted: `penalty_`, `coef_` (folds, 1 + F).
    """

    def __init__(self, *, folds: int = 5, seed: int = 0) -> None:
        self.folds = folds
        self.seed = seed

    def fit(
        self,
        X: ArrayLike,
        seen: ArrayLike,
        *,
        first_row: int = 0,
        numbers: NDArray[np.int64] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit on contexts X (n, p) and Δ (n,), 0 or 1; the rest as in `CrossFit.fit`."""
        _check.count(self.folds, "folds", "SeenModel", at_least=2)
        x, delta = np.asarray(X, dtype=np.float64), np.asarray(seen, dtype=np.float64)
        need_rows(len(x), self.folds, "SeenModel")
        w = row_weights(sample_weight, len(x), "SeenModel")
        fold = self.fold(first_row, len(x), numbers)
        self.map_ = ContextMap.of(x)
        phi = self.map_(x)
        self.center_, sd = phi.mean(axis=0), phi.std(axis=0)
        self.inverse_ = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0.0)
        z = (phi - self.center_) * self.inverse_
        best = -np.inf
        for penalty in PENALTIES:
            parts = [fold != k for k in range(self.folds)]
            coef = np.array(
                [_logistic(z[rows], delta[rows], penalty, some(w, rows)) for rows in parts]
            )
            p = np.clip(_probability(coef, fold, z), LEAST, 1.0 - 1e-9)
            likelihood = float(mean_of(np.where(delta > 0.0, np.log(p), np.log1p(-p)), w))
            if likelihood > best:
                best, self.penalty_, self.coef_ = likelihood, penalty, coef
        return self

    def probability(self, fold: Folds, X: ArrayLike) -> Array:
        """Return p̂ (n,) of contexts X (n, p), each by the rows of other folds, at least .02."""
        check_is_fitted(self)
        z = (self.map_(np.asarray(X, dtype=np.float64)) - self.center_) * self.inverse_
        return np.maximum(_probability(self.coef_, fold, z), LEAST)


def _probability(coef: Array, fold: Folds, z: Array) -> Array:
    """Return P(Δ = 1) (n,) at features z (n, F), each row by the coefficients of its fold."""
    score = coef[fold, 0] + np.einsum("ij,ij->i", z, coef[fold, 1:])
    return np.asarray(expit(score))


def _logistic(z: Array, delta: Array, penalty: float, weights: Array | None = None) -> Array:
    """Return intercept and coefficients (1 + F,) of P(Δ = 1) on features z (n, F)."""
    if delta.min(initial=1.0) == delta.max(initial=0.0):  # all seen, or none
        share = np.clip(delta.mean() if len(delta) else 1.0, LEAST, 1.0 - 1e-9)
        return np.append(np.log(share / (1.0 - share)), np.zeros(z.shape[1]))
    fitted = LogisticRegression(C=1.0 / penalty, max_iter=500).fit(z, delta, sample_weight=weights)
    return np.append(fitted.intercept_, fitted.coef_[0])
