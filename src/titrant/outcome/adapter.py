"""Any scikit-learn regressor of the columns [x, t] as an outcome model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

import numpy as np
from sklearn.base import clone, is_classifier

from titrant.errors import DataError, InvalidArgument
from titrant.outcome.base import OutcomeModel, inputs, training

if TYPE_CHECKING:
    from titrant._types import Array


@runtime_checkable
class Regressor(Protocol):
    """What scikit-learn calls a regressor."""

    def fit(self, X: Array, y: Array) -> object:
        """Learn."""

    def predict(self, X: Array) -> Array:
        """Predict."""

    def get_params(self, *, deep: bool = True) -> dict[str, object]:
        """Return the parameters, so that `clone` can copy it unfitted."""


class OfRegressor(OutcomeModel):
    """r̂(t, x) = regressor.predict([x, t]): the doses are the last columns.

    Parameters
    ----------
    regressor : a scikit-learn regressor or pipeline; it is cloned, never changed.
    """

    def __init__(self, regressor: Regressor) -> None:
        self.regressor = regressor

    def fit(self, X: Array, t: Array, y: Array) -> Self:
        """Fit a clone of the regressor on the columns [x, t]."""
        x, doses, outcome = training(X, t, y, "OfRegressor")
        self.regressor_ = clone(self.regressor)
        self.regressor_.fit(np.hstack([x, doses]), outcome)
        return self

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        columns = np.hstack(inputs(X, t, "OfRegressor"))
        prediction = np.asarray(self.regressor_.predict(columns), dtype=np.float64)
        bad = len(columns) - np.isfinite(prediction).sum()
        if prediction.size != len(columns) or bad:
            raise DataError(
                f"`{type(self.regressor).__name__}` must predict one finite number per row; got "
                f"shape {prediction.shape} for {len(columns)} rows, {bad} of them not finite."
            )
        return prediction.reshape(len(columns))


def as_outcome_model(model: OutcomeModel | Regressor) -> OutcomeModel:
    """Return an outcome model as it is, and a scikit-learn regressor wrapped as one."""
    if isinstance(model, OutcomeModel):
        return model
    if isinstance(model, type) or not isinstance(model, Regressor) or is_classifier(model):
        raise InvalidArgument(
            "An outcome model must be an `OutcomeModel` or a scikit-learn regressor (an instance, "
            f"not a class; no classifier); got {model!r}. For a yes/no outcome use a regressor: it "
            "predicts the probability."
        )
    return OfRegressor(model)
