"""The rule of thumb: h = c·sd(T)·n^(−1/(d+4)), blind to the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.bandwidth.base import Bandwidth, BandwidthSelector, as_bandwidth, rate
from titrant.bandwidth.path import path_search
from titrant.bandwidth.usable import fall_back, reached

if TYPE_CHECKING:
    from titrant.estimators import Problem
    from titrant.estimators.joint import Search


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOfThumb(BandwidthSelector):
    """h = constant·sd(T)·n^(−1/(d+4)): the right rate, a constant for doses that look normal.

    Only where that reaches no two rows is it moved, and flagged.
    """

    constant: float = 1.0

    def __post_init__(self) -> None:
        _check.positive(self.constant, "constant", "RuleOfThumb")

    def factor(self, problem: Problem) -> float:
        """Return h/sd(T)."""
        return self.constant * rate(problem)

    def search(self, problem: Problem) -> Search[Bandwidth]:
        """Return the rule's bandwidth."""
        g, d = self.factor(problem), len(problem.spread)
        path = yield from path_search(problem, np.array([g]))
        if not len(reached(path)):
            why = "no two rows in reach of it"
            return fall_back((yield from path_search(problem)), problem, "RuleOfThumb", why)
        return Bandwidth(
            h=as_bandwidth(g, problem),
            selector="RuleOfThumb",
            reason=f"{self.constant:g} × sd(T) × n^(−1/{d + 4}) with n = {problem.n:,}.",
            se=float(path.se[0]),
        )
