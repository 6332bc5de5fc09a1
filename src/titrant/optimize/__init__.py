"""Room 9, optimize: the best policy of a class, by an objective made of the same terms."""

from titrant.optimize.constraints import Ball, Box, Constraint, Free
from titrant.optimize.fused import AffineSearch
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
    "Solution",
    "Status",
    "search_statistics",
    "stacked",
]
