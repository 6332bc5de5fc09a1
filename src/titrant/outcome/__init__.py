"""Room 3, outcome models: r̂(t, x), what happens to context x under dose t."""

from titrant.outcome.base import Bounded, OfRegressor, OutcomeModel, as_outcome_model
from titrant.outcome.context import ContextFeatures, ContextsOnly, SmoothContext, Varying
from titrant.outcome.crossfit import CrossFit, fold_of
from titrant.outcome.forest import FoldForests, Forest
from titrant.outcome.landmarks import Landmarks
from titrant.outcome.ridge import Jumps, RidgeModel, SecondOrder, Spline
from titrant.outcome.stack import Stack, bent_ridges, library, ridge_pair, smooth_library
from titrant.outcome.table import DoseTable
from titrant.outcome.trees import Trees
from titrant.outcome.well import Well

OUTCOMES: tuple[OutcomeModel, ...] = (
    RidgeModel(SecondOrder()),
    RidgeModel(SecondOrder(products_up_to=1)),
    RidgeModel(Spline()),
    RidgeModel(SmoothContext()),
    Well(),
    Trees(),
    Bounded(RidgeModel(SecondOrder())),
    Bounded(RidgeModel(Varying())),  # two contexts far out and a dose: never without bounds
    ContextsOnly(RidgeModel(SmoothContext()), extra=0),
    Stack(ridge_pair()),
)
"""Every outcome model, in each of its forms; the law tests run over this list."""

__all__ = [
    "OUTCOMES",
    "Bounded",
    "ContextFeatures",
    "ContextsOnly",
    "CrossFit",
    "DoseTable",
    "FoldForests",
    "Forest",
    "Jumps",
    "Landmarks",
    "OfRegressor",
    "OutcomeModel",
    "RidgeModel",
    "SecondOrder",
    "SmoothContext",
    "Spline",
    "Stack",
    "Trees",
    "Varying",
    "Well",
    "as_outcome_model",
    "bent_ridges",
    "fold_of",
    "library",
    "ridge_pair",
    "smooth_library",
]
