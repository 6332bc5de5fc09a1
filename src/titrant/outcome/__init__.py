"""Room 3, outcome models: r̂(t, x), what happens to context x under dose t."""

from titrant.outcome.base import OfRegressor, OutcomeModel, as_outcome_model
from titrant.outcome.bounded import Bounded
from titrant.outcome.context import ContextFeatures, ContextsOnly
from titrant.outcome.crossfit import CrossFit, fold_of
from titrant.outcome.forest import FoldForests, Forest
from titrant.outcome.ridge import Quadratic, RidgeModel, Spline
from titrant.outcome.smooth import SmoothContext
from titrant.outcome.stack import Stack, library, ridge_pair, smooth_library
from titrant.outcome.table import DoseTable
from titrant.outcome.trees import Trees
from titrant.outcome.well import Well

__all__ = [
    "Bounded",
    "ContextFeatures",
    "ContextsOnly",
    "CrossFit",
    "DoseTable",
    "FoldForests",
    "Forest",
    "OfRegressor",
    "OutcomeModel",
    "Quadratic",
    "RidgeModel",
    "SmoothContext",
    "Spline",
    "Stack",
    "Trees",
    "Well",
    "as_outcome_model",
    "fold_of",
    "library",
    "ridge_pair",
    "smooth_library",
]
