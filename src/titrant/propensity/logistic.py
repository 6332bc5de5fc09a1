"""Cross-fitted logistic regressions: whether an outcome is seen; of which population a row is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from titrant import _check
from titrant.outcome.base import mean_of, scaled_weights, some
from titrant.outcome.context import ContextMap
from titrant.outcome.crossfit import Folded, Folds, fold_of, need_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array

PENALTIES = (1e0, 1e1, 1e2, 1e3, 1e5)
"""1/C of the logistic regressions; the last leaves the share of rows with the label 1."""
LEAST = 0.02
"""No outcome counts as less likely to be seen: none counts more than fifty rows."""
_ALMOST = 1.0 - 1e-9
"""No probability counts as larger."""
_LARGEST = 30.0
"""Of |log ratio|: e³⁰ is beyond any weight that is kept."""


class FoldedLogistic(Folded, BaseEstimator, ABC):
    """P(label = 1 | x): logistic on φ(x), each row by the rows of other folds.

    φ are the splines, levels and products of `ContextMap`. The penalty is that of the greatest
    likelihood of rows which the regressions have not seen: few rows say little of many features.

    Fitted: `penalty_`, `coef_` (folds, 1 + F).
    """

    def __init__(self, *, folds: int = 5, seed: int = 0) -> None:
        self.folds = folds
        self.seed = seed

    @abstractmethod
    def _likelihood(self, score: Array, label: Array, weights: Array | None) -> float:
        """Return the log-likelihood of labels (n,) at log-odds (n,), up to a factor."""

    def _fit(self, x: Array, label: Array, fold: Folds, weights: Array | None) -> Self:
        """Fit on contexts x (n, p) and labels (n,), 0 or 1, in these folds (n,)."""
        self.map_ = ContextMap.of(x)
        phi = self.map_(x)
        self.center_, sd = phi.mean(axis=0), phi.std(axis=0)
        self.inverse_ = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0.0)
        z = (phi - self.center_) * self.inverse_
        parts = [fold != k for k in range(self.folds)]
        best = -np.inf
        for penalty in PENALTIES:
            coef = np.array(
                [_logistic(z[rows], label[rows], penalty, some(weights, rows)) for rows in parts]
            )
            likelihood = self._likelihood(_scores(coef, fold, z), label, weights)
            if likelihood > best:
                best, self.penalty_, self.coef_ = likelihood, penalty, coef
        return self

    def _log_odds(self, fold: Folds, X: ArrayLike) -> Array:
        """Return the log-odds (n,) of contexts X (n, p), each by the rows of other folds."""
        check_is_fitted(self)
        z = (self.map_(np.asarray(X, dtype=np.float64)) - self.center_) * self.inverse_
        return _scores(self.coef_, fold, z)


class SeenModel(FoldedLogistic):
    """p̂(x) = P(Δ = 1 | x), Δ = 1 where the outcome is seen.

    Contexts may hold what else the chance depends on, such as the dose.

    Parameters
    ----------
    folds, seed : as those of the `CrossFit` beside it.
    """

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
        w = scaled_weights(sample_weight, len(x), "SeenModel")
        return self._fit(x, delta, self.fold(first_row, len(x), numbers), w)

    def _likelihood(self, score: Array, label: Array, weights: Array | None) -> float:
        p = np.clip(expit(score), LEAST, _ALMOST)
        return float(mean_of(np.where(label > 0.0, np.log(p), np.log1p(-p)), weights))

    def probability(self, fold: Folds, X: ArrayLike) -> Array:
        """Return p̂ (n,) of contexts X (n, p), each by the rows of other folds, at least .02."""
        return np.maximum(expit(self._log_odds(fold, X)), LEAST)


class DensityRatio(FoldedLogistic):
    """ρ(x) = g(x)/f(x), g the contexts of a population, f those of a log: the odds.

    Rows of both count as much in all, so that the odds are the ratio.
    """

    def fit(
        self,
        X: ArrayLike,
        population: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        first_row: int = 0,
        numbers: NDArray[np.int64] | None = None,
    ) -> Self:
        """Fit on contexts X (n, p) of a log, of these weights, and of a population (m, p)."""
        _check.count(self.folds, "folds", "DensityRatio", at_least=2)
        x, other = np.asarray(X, dtype=np.float64), np.asarray(population, dtype=np.float64)
        n, m = len(x), len(other)
        need_rows(min(n, m), self.folds, "DensityRatio")
        fold = np.append(self.fold(first_row, n, numbers), fold_of(0, m, self.folds, self.seed))
        own = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
        w = np.append(own * ((n + m) / 2 / own.sum()), np.full(m, (n + m) / 2 / m))
        return self._fit(np.vstack([x, other]), np.repeat([0.0, 1.0], [n, m]), fold, w)

    def _likelihood(self, score: Array, label: Array, weights: Array | None) -> float:
        sign = np.where(label > 0.0, 1.0, -1.0)
        return -float(mean_of(np.logaddexp(0.0, -sign * score), weights))

    def ratio(self, fold: Folds, X: ArrayLike) -> Array:
        """Return ρ (n,) of contexts X (n, p), each by the rows of other folds."""
        return np.exp(np.clip(self._log_odds(fold, X), -_LARGEST, _LARGEST))


def _scores(coef: Array, fold: Folds, z: Array) -> Array:
    """Return the log-odds (n,) at features z (n, F), each row by the coefficients of its fold."""
    return np.asarray(coef[fold, 0] + np.einsum("ij,ij->i", z, coef[fold, 1:]))


def _logistic(z: Array, label: Array, penalty: float, weights: Array | None) -> Array:
    """Return intercept and coefficients (1 + F,) of P(label = 1) on features z (n, F)."""
    if label.min(initial=1.0) == label.max(initial=0.0):  # all of one kind, or none
        share = np.clip(label.mean() if len(label) else 1.0, LEAST, _ALMOST)
        return np.append(np.log(share / (1.0 - share)), np.zeros(z.shape[1]))
    fitted = LogisticRegression(C=1.0 / penalty, max_iter=500).fit(z, label, sample_weight=weights)
    return np.append(fitted.intercept_, fitted.coef_[0])
