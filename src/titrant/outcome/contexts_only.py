"""An outcome model that does not see the columns that a forest appended to the context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from sklearn.base import clone

from titrant.outcome.base import OutcomeModel, inputs, training
from titrant.outcome.context import extra_columns

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.outcome.folds import Folds


class ContextsOnly(OutcomeModel):
    """r̂ of the contexts without their last `extra` columns.

    Parameters
    ----------
    model : the outcome model; it is cloned, never changed.
    extra : columns at the end of the contexts that the model does not see.
    """

    def __init__(self, model: OutcomeModel, *, extra: int) -> None:
        self.model = model
        self.extra = extra

    def fit(self, X: Array, t: Array, y: Array) -> Self:
        """Learn from contexts X (n, p + extra), doses t (n,) or (n, d) and outcomes y (n,)."""
        x, doses, outcome = training(X, t, y, "ContextsOnly")
        self.model_ = clone(self.model).fit(self._seen(x), doses, outcome)
        return self

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        x, doses = inputs(X, t, "ContextsOnly")
        prediction: Array = self.model_.predict(self._seen(x), doses)
        return prediction

    def out_of_fold(self, X: Array, t: Array, y: Array, fold: Folds) -> Array:
        """Return predictions (n,) that saw no outcome of the row's fold."""
        x, doses, outcome = training(X, t, y, "ContextsOnly")
        return self.model.out_of_fold(self._seen(x), doses, outcome, fold)

    def curve(self, X: Array, doses: Array) -> Array:
        """Return r̂(doses[j], xᵢ) (n, G) for a grid of scalar doses (G,)."""
        curves: Array = self.model_.curve(self._seen(X), doses)
        return curves

    def _seen(self, x: Array) -> Array:
        return x[:, : x.shape[1] - extra_columns(self.extra, x, "ContextsOnly")]
