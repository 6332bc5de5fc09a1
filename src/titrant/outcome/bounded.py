"""An outcome model that never predicts beyond the outcomes it has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import clone

from titrant import _check
from titrant.outcome.base import OutcomeModel, curve_of, given_of, weighed

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.outcome.base import Curves
    from titrant.outcome.crossfit import Folds


class Bounded(OutcomeModel):
    """r̂ held between the quantiles `share` and 1 − `share` of the outcomes it was trained on.

    Far from the logged doses a polynomial says anything; one such prediction can decide a policy.

    Parameters
    ----------
    model : the outcome model; it is cloned, never changed.
    share : of the outcomes cut off at each end.
    margin : how far beyond them predictions may go, as a multiple of the distance between them.
    """

    def __init__(self, model: OutcomeModel, *, share: float = 0.01, margin: float = 0.0) -> None:
        self.model = model
        self.share = share
        self.margin = margin

    def fit(self, X: Array, t: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Learn from contexts X (n, p), doses t (n,) or (n, d) and outcomes y (n,)."""
        self.model_ = weighed(clone(self.model).fit, X, t, y, weights=sample_weight)
        self.limits_ = self._limits(y)
        return self

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        return self.given(X)(t)

    def given(self, X: Array) -> Curves:
        """Return t ↦ r̂(tᵢ, xᵢ) (n,) for contexts X (n, p)."""
        free = given_of(self.model_, X)

        def held(t: Array) -> Array:
            return np.asarray(np.clip(free(t), *self.limits_))

        return held

    def out_of_fold(
        self, X: Array, t: Array, y: Array, fold: Folds, *, sample_weight: Array | None = None
    ) -> Array:
        """Return predictions (n,) that saw no outcome of the row's fold, also in their limits."""
        free = weighed(self.model.out_of_fold, X, t, y, fold, weights=sample_weight)
        return self._cut(free, y, fold)

    def fit_out_of_fold(
        self, X: Array, t: Array, y: Array, fold: Folds, *, sample_weight: Array | None = None
    ) -> Array:
        """Fit, and return what `out_of_fold` does."""
        self.model_, self.limits_ = clone(self.model), self._limits(y)
        free = weighed(self.model_.fit_out_of_fold, X, t, y, fold, weights=sample_weight)
        return self._cut(free, y, fold)

    def _cut(self, prediction: Array, y: Array, fold: Folds) -> Array:
        for k in np.unique(fold):
            held = fold == k
            prediction[held] = np.clip(prediction[held], *self._limits(y[~held]))
        return prediction

    def curve(self, X: Array, doses: Array) -> Array:
        """Return r̂(doses[j], xᵢ) (n, G) for a grid of scalar doses (G,)."""
        curves: Array = np.clip(curve_of(self.model_, X, doses), *self.limits_)
        return curves

    def _limits(self, y: Array) -> tuple[float, float]:
        share = _check.probability(self.share, "share", "Bounded")
        low, high = np.quantile(y, [share, 1.0 - share])
        beyond = _check.nonnegative(self.margin, "margin", "Bounded") * (high - low)
        return float(low - beyond), float(high + beyond)
