"""Room 9, optimize: the best policy of a class, by an objective made of the same terms."""

from titrant.optimize.affine import affine_search, dose_limits, features
from titrant.optimize.constraints import Ball, Box, Constraint, Free, paper_box
from titrant.optimize.fused import AffineSearch, Second
from titrant.optimize.lbfgs import LBFGS
from titrant.optimize.objective import NumericalObjective, Objective, PolicyObjective
from titrant.optimize.solution import Solution, Status
from titrant.optimize.statistics import SearchStatistics, search_statistics, stacked

__all__ = [
    "LBFGS",
    "AffineSearch",
    "Ball",
    "Box",
    "Constraint",
    "Free",
    "NumericalObjective",
    "Objective",
    "PolicyObjective",
    "SearchStatistics",
    "Second",
    "Solution",
    "Status",
    "affine_search",
    "dose_limits",
    "features",
    "paper_box",
    "search_statistics",
    "stacked",
]
