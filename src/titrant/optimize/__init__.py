"""Room 9, optimize: the best policy of a class, by an objective made of the same terms."""

from titrant.optimize.affine import affine_search, dose_limits, features
from titrant.optimize.cccp import CCCP
from titrant.optimize.checkpoint import Checkpoint
from titrant.optimize.constraints import Ball, Box, Constraint, Free, Scaled, paper_box
from titrant.optimize.exact_line import exact_line
from titrant.optimize.fused import AffineSearch, Second
from titrant.optimize.lbfgs import LBFGS
from titrant.optimize.objective import NumericalObjective, Objective, PolicyObjective
from titrant.optimize.solution import Solution, Status
from titrant.optimize.starts import nearest_params, starts_around, usual_starts
from titrant.optimize.statistics import SearchStatistics, search_statistics, stacked

__all__ = [
    "CCCP",
    "LBFGS",
    "AffineSearch",
    "Ball",
    "Box",
    "Checkpoint",
    "Constraint",
    "Free",
    "NumericalObjective",
    "Objective",
    "PolicyObjective",
    "Scaled",
    "SearchStatistics",
    "Second",
    "Solution",
    "Status",
    "affine_search",
    "dose_limits",
    "exact_line",
    "features",
    "nearest_params",
    "paper_box",
    "search_statistics",
    "stacked",
    "starts_around",
    "usual_starts",
]
