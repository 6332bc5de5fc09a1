"""Room 3, outcome models: r̂(t, x), what happens to context x under dose t."""

from titrant.outcome.adapter import OfRegressor, as_outcome_model
from titrant.outcome.base import OutcomeModel
from titrant.outcome.bounded import Bounded
from titrant.outcome.crossfit import CrossFit
from titrant.outcome.folds import fold_of
from titrant.outcome.library import library, ridge_pair
from titrant.outcome.quadratic import Quadratic
from titrant.outcome.ridge import RidgeModel
from titrant.outcome.spline import Spline
from titrant.outcome.stack import Stack
from titrant.outcome.table import DoseTable
from titrant.outcome.trees import Trees
from titrant.outcome.well import Well

__all__ = [
    "Bounded",
    "CrossFit",
    "DoseTable",
    "OfRegressor",
    "OutcomeModel",
    "Quadratic",
    "RidgeModel",
    "Spline",
    "Stack",
    "Trees",
    "Well",
    "as_outcome_model",
    "fold_of",
    "library",
    "ridge_pair",
]
