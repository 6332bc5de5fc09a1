"""Outcome models that are linear in features of (x, t), fitted by ridge regression."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant.moments import Moments
from titrant.outcome.base import OutcomeModel, blocks, inputs, training
from titrant.outcome.gcv import Ridge, ridge_gcv

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.outcome.folds import Folds

BLOCK = 8192
"""Rows whose features are held in memory at a time."""


class Features(ABC):
    """Functions of (x, t), each a product of a function of x and one of t."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, x: Array, t: Array) -> Array:
        """Return the features (n, F) of x (n, p) and t (n, d)."""

    @abstractmethod
    def curve(self, x: Array, t: Array, coef: Array) -> Array:
        """Return b'f(xᵢ, tⱼ) (n, G) of coefficients b (F,), contexts x (n, p), doses t (G, 1).

        Products of what each row and each dose gives alone: no feature of a pair is computed.
        """


class Basis(ABC):
    """A recipe for features; its units and knots come from contexts and doses, never outcomes."""

    __slots__ = ()

    @abstractmethod
    def on(self, x: Array, t: Array) -> Features:
        """Return the features, laid out over contexts x (n, p) and doses t (n, d) of a log."""


class RidgeModel(OutcomeModel):
    """r̂(t, x) = b₀ + b'f(x, t), the penalty on b by generalized cross-validation.

    Parameters
    ----------
    basis : the features f, `Quadratic()` or `Spline()`.
    """

    def __init__(self, basis: Basis) -> None:
        self.basis = basis

    def fit(self, X: Array, t: Array, y: Array) -> Self:
        """Learn from contexts X (n, p), doses t (n,) or (n, d) and outcomes y (n,)."""
        x, doses, outcome = training(X, t, y, "RidgeModel")
        self.features_ = self.basis.on(x, doses)
        self.ridge_ = ridge_gcv(_moments(self.features_, x, doses, outcome))
        return self

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        return _predict(self.ridge_, self.features_, *inputs(X, t, "RidgeModel"))

    def curve(self, X: Array, doses: Array) -> Array:
        """Return r̂(doses[j], xᵢ) (n, G) for a grid of scalar doses (G,)."""
        return self.features_.curve(X, doses[:, None], self.ridge_.coef) + self.ridge_.intercept

    def out_of_fold(self, X: Array, t: Array, y: Array, fold: Folds) -> Array:
        """Return predictions (n,) by fits that saw no outcome of the row's fold.

        Features are laid out once, over all rows: they know no outcomes. Each fit is that of the
        summed moments of the other folds.
        """
        x, doses, outcome = training(X, t, y, "RidgeModel")
        features = self.basis.on(x, doses)
        rows = [np.flatnonzero(fold == k) for k in np.unique(fold)]
        parts = [_moments(features, x[i], doses[i], outcome[i]) for i in rows]
        prediction = np.empty(len(outcome))
        for k, i in enumerate(rows):
            ridge = ridge_gcv(_total(parts[:k] + parts[k + 1 :]))
            prediction[i] = _predict(ridge, features, x[i], doses[i])
        return prediction


def _moments(features: Features, x: Array, t: Array, y: Array) -> Moments:
    """Return the moments of the columns [features, y], in blocks so that memory stays flat."""
    return _total(
        [
            Moments.of(np.column_stack([features(x[rows], t[rows]), y[rows]]))
            for rows in blocks(len(y), BLOCK)
        ]
    )


def _total(parts: list[Moments]) -> Moments:
    return sum(parts[1:], start=parts[0])


def _predict(ridge: Ridge, features: Features, x: Array, t: Array) -> Array:
    parts = [ridge.predict(features(x[rows], t[rows])) for rows in blocks(len(x), BLOCK)]
    return np.concatenate([np.empty(0), *parts])
