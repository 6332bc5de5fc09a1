"""A weighted average of outcome models, weighted by how well each predicts rows it has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import clone

from titrant import _check
from titrant.outcome.adapter import as_outcome_model
from titrant.outcome.base import OutcomeModel, training
from titrant.outcome.folds import fold_of, need_rows
from titrant.outcome.library import library
from titrant.outcome.simplex import bounded_nnls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from titrant._types import Array
    from titrant.outcome.adapter import Regressor
    from titrant.outcome.folds import Folds


class Stack(OutcomeModel):
    """r̂ = ȳ + Σₘ wₘ(r̂ₘ − ȳ), w ≥ 0, Σw ≤ 1: what is left of the weight is on the mean outcome.

    The weights are those of least squares on out-of-fold predictions. In a doubly robust estimate
    no weight at all is centered inverse propensity weighting and a perfect model is the direct
    method; the stack sets the place between them by what the models have shown.

    Parameters
    ----------
    models : name → outcome model or scikit-learn regressor; None is `library()`.
    folds : of the out-of-fold predictions.
    seed : draws the folds and goes to the models of the library.
    """

    def __init__(
        self,
        models: Mapping[str, OutcomeModel | Regressor] | None = None,
        *,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.models = models
        self.folds = folds
        self.seed = seed

    def fit(self, X: Array, t: Array, y: Array) -> Self:
        """Learn from contexts X (n, p), doses t (n,) or (n, d) and outcomes y (n,)."""
        _check.count(self.folds, "folds", "Stack", at_least=2)
        _check.count(self.seed, "seed", "Stack", at_least=0)
        x, doses, outcome = training(X, t, y, "Stack")
        need_rows(len(x), self.folds, "Stack")
        models = self._members(doses.shape[1])
        fold = fold_of(0, len(x), self.folds, self.seed)
        mean = _mean_outside(outcome, fold, self.folds)
        held_out = [model.out_of_fold(x, doses, outcome, fold) for model in models.values()]
        self.names_ = tuple(models)
        self.weights_ = bounded_nnls(np.column_stack(held_out) - mean[:, None], outcome - mean)
        self.mean_ = float(outcome.mean())
        self.models_ = {
            name: clone(models[name]).fit(x, doses, outcome)
            for name, weight in zip(self.names_, self.weights_, strict=True)
            if weight > 0.0
        }
        return self

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        return self._average({name: m.predict(X, t) for name, m in self.models_.items()}, (len(X),))

    def curve(self, X: Array, doses: Array) -> Array:
        """Return r̂(doses[j], xᵢ) (n, G) for a grid of scalar doses (G,)."""
        curves = {name: model.curve(X, doses) for name, model in self.models_.items()}
        return self._average(curves, (len(X), len(doses)))

    def _members(self, dimension: int) -> dict[str, OutcomeModel]:
        if self.models is None:
            return library(dimension, seed=self.seed)
        if not self.models:
            raise _check.invalid(
                "models", "Stack", "a mapping with at least one model", self.models
            )
        return {name: as_outcome_model(model) for name, model in self.models.items()}

    def _average(self, predictions: dict[str, Array], shape: tuple[int, ...]) -> Array:
        weight = dict(zip(self.names_, self.weights_, strict=True))
        total = np.full(shape, self.mean_)
        for name, prediction in predictions.items():
            total += weight[name] * (prediction - self.mean_)
        return total


def _mean_outside(y: Array, fold: Folds, folds: int) -> Array:
    """Return for each row the mean outcome of the other folds (n,)."""
    means = np.array([y[fold != k].mean() for k in range(folds)])
    return means[fold]
