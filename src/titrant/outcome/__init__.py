"""Room 3, outcome models: r̂(t, x), what happens to context x under dose t."""

from titrant.outcome.adapter import OfRegressor, as_outcome_model
from titrant.outcome.base import OutcomeModel
from titrant.outcome.bounded import Bounded
from titrant.outcome.context import ContextFeatures
from titrant.outcome.contexts_only import ContextsOnly
from titrant.outcome.crossfit import CrossFit
from titrant.outcome.folds import fold_of
from titrant.outcome.forest import FoldForests, Forest
from titrant.outcome.library import library, ridge_pair, smooth_library
from titrant.outcome.quadratic import Quadratic
from titrant.outcome.ridge import RidgeModel
from titrant.outcome.smooth import SmoothContext
from titrant.outcome.spline import Spline
from titrant.outcome.stack import Stack
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
