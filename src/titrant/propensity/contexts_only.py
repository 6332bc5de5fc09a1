"""A propensity that does not see the columns that a forest appended to the context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from sklearn.base import clone

from titrant.outcome.context import extra_columns
from titrant.propensity.base import NormalModel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.propensity.normal import NormalMixture


class ContextsOnly(NormalModel):
    """f(t|x) of the contexts without their last `extra` columns.

    Parameters
    ----------
    model : the propensity; it is cloned, never changed.
    extra : columns at the end of X that the model does not see.
    """

    def __init__(self, model: NormalModel, *, extra: int) -> None:
        self.model = model
        self.extra = extra

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to contexts X (n, p + extra) and treatments y (n,)."""
        X, t = self._training_rows(X, y)
        extra_columns(self.extra, X, "ContextsOnly")
        self.model_ = clone(self.model).fit(self._seen(X), t)
        self.components_ = self.model_.components_
        return self

    def _law(self, X: Array) -> NormalMixture:
        law: NormalMixture = self.model_.law(self._seen(X))
        return law

    def _seen(self, X: Array) -> Array:
        return X[:, : X.shape[1] - self.extra]
