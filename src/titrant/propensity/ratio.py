"""How much more often contexts come in one population than in another, cross-fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from titrant import _check
from titrant.outcome.context import ContextMap
from titrant.outcome.crossfit import Folded, Folds, fold_of, need_rows
from titrant.propensity.observed import PENALTIES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array

_LARGEST = 30.0
"""Of |log ratio|: e³⁰ is beyond any weight that is kept."""


class DensityRatio(Folded, BaseEstimator):
    """ρ(x) = g(x)/f(x), g the contexts of a population, f those of a log: odds of a logistic on φ.

    Rows of both count as much in all, so that the odds are the ratio. φ are the splines, levels and
    products of `ContextMap`; the penalty is that of the greatest likelihood of rows which the
    regressions have not seen.

    Fitted: `penalty_`, `coef_` (folds, 1 + F).
    """

    def __init__(self, *, folds: int = 5, seed: int = 0) -> None:
        self.folds = folds
        self.seed = seed

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
        both, of_population = np.vstack([x, other]), np.repeat([0.0, 1.0], [n, m])
        self.map_ = ContextMap.of(both)
        phi = self.map_(both)
        self.center_, sd = phi.mean(axis=0), phi.std(axis=0)
        self.inverse_ = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0.0)
        z = (phi - self.center_) * self.inverse_
        own = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
        w = np.append(own * ((n + m) / 2 / own.sum()), np.full(m, (n + m) / 2 / m))
        best = -np.inf
        for penalty in PENALTIES:
            coef = np.array(
                [
                    _logistic(z[some], of_population[some], w[some], penalty)
                    for some in (fold != k for k in range(self.folds))
                ]
            )
            score = _scores(coef, fold, z)
            sign = np.where(of_population > 0.0, 1.0, -1.0)
            likelihood = -float(w @ np.logaddexp(0.0, -sign * score))
            if likelihood > best:
                best, self.penalty_, self.coef_ = likelihood, penalty, coef
        return self

    def ratio(self, fold: Folds, X: ArrayLike) -> Array:
        """Return ρ (n,) of contexts X (n, p), each by the rows of other folds."""
        check_is_fitted(self)
        z = (self.map_(np.asarray(X, dtype=np.float64)) - self.center_) * self.inverse_
        return np.asarray(np.exp(np.clip(_scores(self.coef_, fold, z), -_LARGEST, _LARGEST)))


def _scores(coef: Array, fold: Folds, z: Array) -> Array:
    """Return the log-odds (n,) at features z (n, F), each row by the coefficients of its fold."""
    return np.asarray(coef[fold, 0] + np.einsum("ij,ij->i", z, coef[fold, 1:]))


def _logistic(z: Array, label: Array, weights: Array, penalty: float) -> Array:
    """Return intercept and coefficients (1 + F,) on features z (n, F)."""
    fitted = LogisticRegression(C=1.0 / penalty, max_iter=500)
    fitted.fit(z, label, sample_weight=weights)
    return np.append(fitted.intercept_, fitted.coef_[0])
