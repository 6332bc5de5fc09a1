"""Room 3, outcome models: r̂(t, x), what happens to context x under dose t."""

from titrant.outcome.adapter import OfRegressor, as_outcome_model
from titrant.outcome.base import OutcomeModel
from titrant.outcome.crossfit import CrossFit
from titrant.outcome.folds import fold_of

__all__ = [
    "CrossFit",
    "OfRegressor",
    "OutcomeModel",
    "as_outcome_model",
    "fold_of",
]
