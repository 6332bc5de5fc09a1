"""Room 9, optimize: the best policy of a class, by an objective made of the same terms."""

import numpy as np

from titrant.optimize.constraints import Ball, Box, Constraint, Free, Scaled, mean_box
from titrant.optimize.exact_line import exact_line
from titrant.optimize.lbfgs import LBFGS, Checkpoint, Solution, Status
from titrant.optimize.objective import Objective, PolicyObjective
from titrant.optimize.sums import (
    AffineSearch,
    SearchStatistics,
    SearchSums,
    Second,
    TermSearch,
    search_statistics,
    stacked,
)

CONSTRAINTS: tuple[Constraint, ...] = (
    Free(),
    Box(np.array([-1.0, 0.0, -np.inf]), np.array([1.0, 0.5, 2.0])),
    Ball(1.5),
    Ball(0.5, np.array([False, True, True])),
)
"""Every kind of constraint, on three parameters; the law tests run over this list."""

__all__ = [
    "CONSTRAINTS",
    "LBFGS",
    "AffineSearch",
    "Ball",
    "Box",
    "Checkpoint",
    "Constraint",
    "Free",
    "Objective",
    "PolicyObjective",
    "Scaled",
    "SearchStatistics",
    "SearchSums",
    "Second",
    "Solution",
    "Status",
    "TermSearch",
    "exact_line",
    "mean_box",
    "search_statistics",
    "stacked",
]
