"""Stacking: outcome models weighted by how well they predict rows they have not seen."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.optimize import nnls
from sklearn.base import clone

from titrant import _check
from titrant.outcome.base import (
    Bounded,
    OutcomeModel,
    as_outcome_model,
    curve_of,
    given_of,
    mean_of,
    scaled_weights,
    some,
    training,
    weighed,
)
from titrant.outcome.context import ContextsOnly, SmoothContext, Varying
from titrant.outcome.crossfit import inner_folds, need_rows
from titrant.outcome.ridge import Jumps, RidgeModel, SecondOrder, Spline
from titrant.outcome.trees import Trees
from titrant.outcome.well import Well

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.outcome.base import Curves, Regressor
    from titrant.outcome.crossfit import CrossFit, Folds
    from titrant.outcome.ridge import Basis

# Non-negative least squares with weights that sum to at most one.


NEGLIGIBLE = 1e-9
"""Smaller weights are rounding."""


def bounded_nnls(a: Array, b: Array) -> Array:
    """Return the w ≥ 0 with Σw ≤ 1 that minimizes ‖aw − b‖², a (n, m), b (n,); w (m,).

    If plain non-negative least squares stays within the limit it is the answer; else the limit
    binds and, with Σw = 1, aw − b = (a − b1')w: the point of a simplex nearest the origin.
    """
    unit = float(np.linalg.norm(b))
    if unit == 0.0:
        return np.zeros(a.shape[1])
    # The triangular factor has the same products as the data, and m + 1 rows.
    r = np.asarray(np.linalg.qr(np.column_stack([a, b]) / unit)[1], dtype=np.float64)
    weights, _ = nnls(r[:, :-1], r[:, -1])
    if weights.sum() > 1.0:
        weights = _nearest_on_simplex(r[:, :-1] - r[:, [-1]])
    return np.where(weights > NEGLIGIBLE, weights, 0.0)


def _nearest_on_simplex(a: Array) -> Array:
    """Return the w ≥ 0 with Σw = 1 that minimizes ‖aw‖².

    Let u ≥ 0 minimize ‖au‖² + (Σu − 1)², and u = s·w. For a given w the best s leaves
    q/(1 + q) with q = ‖aw‖², which grows with q: w is the answer.
    """
    extended = np.vstack([a, np.ones(a.shape[1])])
    weights, _ = nnls(extended, np.append(np.zeros(len(a)), 1.0))
    total: Array = weights / weights.sum()
    return total


# A weighted average of outcome models, weighted by how well each predicts rows it has not seen.


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

    def fit(
        self,
        X: Array,
        t: Array,
        y: Array,
        sample_weight: Array | None = None,
        *,
        units: NDArray[np.int64] | None = None,
    ) -> Self:
        """Learn from contexts X (n, p), doses t (n,) or (n, d) and outcomes y (n,).

        Rows with equal `units` (n,) belong together, and are in one fold.
        """
        _check.count(self.folds, "folds", "Stack", at_least=2)
        _check.count(self.seed, "seed", "Stack", at_least=0)
        x, doses, outcome = training(X, t, y, "Stack")
        need_rows(len(x), self.folds, "Stack")
        members = self._members(doses.shape[1])
        models = {name: clone(model) for name, model in members.items()}
        w = scaled_weights(sample_weight, len(x), "Stack")
        fold = inner_folds(len(x), self.folds, self.seed, units)
        mean = _mean_outside(outcome, fold, self.folds, w)
        held_out = [
            weighed(model.fit_out_of_fold, x, doses, outcome, fold, weights=w)
            for model in models.values()
        ]
        self.names_ = tuple(models)
        apart, left = np.column_stack(held_out) - mean[:, None], outcome - mean
        root = None if w is None else np.sqrt(w)
        self.weights_ = (
            bounded_nnls(apart, left)
            if root is None
            else bounded_nnls(apart * root[:, None], left * root)
        )
        self.mean_ = float(mean_of(outcome, w))
        self.models_ = {
            name: models[name]
            for name, weight in zip(self.names_, self.weights_, strict=True)
            if weight > 0.0
        }
        return self

    def fit_units(
        self,
        X: Array,
        t: Array,
        y: Array,
        units: NDArray[np.int64] | None,
        *,
        sample_weight: Array | None = None,
    ) -> Self:
        """Learn as `fit` does, rows with equal units (n,) in one fold."""
        return self.fit(X, t, y, sample_weight, units=units)

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        return self.given(X)(t)

    def given(self, X: Array) -> Curves:
        """Return t ↦ r̂(tᵢ, xᵢ) (n,) for contexts X (n, p)."""
        members = {name: given_of(model, X) for name, model in self.models_.items()}

        def average(t: Array) -> Array:
            return self._average({name: own(t) for name, own in members.items()}, (len(X),))

        return average

    def curve(self, X: Array, doses: Array) -> Array:
        """Return r̂(doses[j], xᵢ) (n, G) for a grid of scalar doses (G,)."""
        curves = {name: curve_of(model, X, doses) for name, model in self.models_.items()}
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


def _mean_outside(y: Array, fold: Folds, folds: int, weights: Array | None = None) -> Array:
    """Return for each row the mean outcome of the other folds (n,)."""
    means = np.array([mean_of(y[fold != k], some(weights, fold != k)) for k in range(folds)])
    return means[fold]


# The outcome models that titrant tries when the user names none.

MARGIN = 1.0
"""How far beyond the middle 98 % of the outcomes smooth models may predict, in their range.

Without a margin the value of a policy well inside the doses would be off where outcomes have long
tails that contexts foresee: by 4 SE at 100,000 rows of a product of two normal contexts."""


def ridge_pair(*, margin: float = 0.0, jumps: tuple[float, ...] = ()) -> dict[str, OutcomeModel]:
    """Return the two ridge models: the fast variant of the library."""
    return {
        "quadratic": _ridge(SecondOrder(), margin, jumps),
        "spline": _ridge(Spline(), margin, jumps),
    }


def bent_ridges() -> dict[str, OutcomeModel]:
    """Return the two ridge models and one whose effect of the dose bends with the context."""
    return {**ridge_pair(), "varying": _ridge(Varying(), 0.0, ())}


def _ridge(basis: Basis, margin: float, jumps: tuple[float, ...]) -> Bounded:
    """Return the ridge model of a basis, which may jump at some doses."""
    features = Jumps(basis, jumps) if jumps else basis
    return Bounded(RidgeModel(features), margin=margin)


def library(dimension: int = 1, *, seed: int = 0) -> dict[str, OutcomeModel]:
    """Return all models that apply to a treatment of `dimension` doses, by name."""
    well = {"well": Bounded(Well(seed=seed))} if dimension == 1 else {}
    return {**bent_ridges(), **well, "trees": Bounded(Trees(seed=seed))}


def smooth_library(*, extra: int = 0, jumps: tuple[float, ...] = ()) -> dict[str, OutcomeModel]:
    """Return ridge models that follow contexts which act nonlinearly, by name.

    The last `extra` columns of the contexts are those that `FoldForests` appends; a fourth model
    sees them. All are smooth in the dose, the bandwidth and the interval being calibrated on that,
    but at the point masses `jumps`.
    """
    smooth = _ridge(SmoothContext(), MARGIN, jumps)
    plain = {**ridge_pair(margin=MARGIN, jumps=jumps), "smooth": smooth}
    if not extra:
        return plain
    return {
        **{name: ContextsOnly(model, extra=extra) for name, model in plain.items()},
        "forest": _ridge(SmoothContext(extra=extra), MARGIN, jumps),
    }


# Fitted outcome models as they would predict if nothing held them to the outcomes seen.


def is_held(fitted: CrossFit) -> bool:
    """Whether any `Bounded` inside holds predictions."""
    return any(_is_held(model) for model in fitted.models_)


def without_bounds(fitted: CrossFit) -> CrossFit:
    """Return the same models, weighted as they are, with no prediction held; no fit is repeated."""
    free = copy(fitted)
    free.models_ = tuple(_free(model) for model in fitted.models_)
    return free


def _is_held(model: OutcomeModel) -> bool:
    if isinstance(model, ContextsOnly):
        return _is_held(model.model_)
    if isinstance(model, Stack):
        return any(_is_held(member) for member in model.models_.values())
    return isinstance(model, Bounded)


def _free(model: OutcomeModel) -> OutcomeModel:
    if isinstance(model, Bounded):
        return _free(model.model_)
    free = copy(model)
    if isinstance(free, ContextsOnly):
        free.model_ = _free(free.model_)
    elif isinstance(free, Stack):
        free.models_ = {name: _free(member) for name, member in free.models_.items()}
    return free
