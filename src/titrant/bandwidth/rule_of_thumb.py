"""The rule of thumb: h = c·sd(T)·n^(−1/(d+4)), blind to the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from titrant import _check
from titrant.bandwidth.base import Bandwidth, BandwidthSelector, as_bandwidth

if TYPE_CHECKING:
    from titrant.estimators import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOfThumb(BandwidthSelector):
    """h = constant·sd(T)·n^(−1/(d+4)): the right rate, a constant for doses that look normal."""

    constant: float = 1.0

    def __post_init__(self) -> None:
        _check.positive(self.constant, "constant", "RuleOfThumb")

    def factor(self, problem: Problem) -> float:
        """Return h/sd(T)."""
        return self.constant * float(problem.n ** (-1 / (len(problem.spread) + 4)))

    def select(self, problem: Problem) -> Bandwidth:
        """Return the rule's bandwidth."""
        d = len(problem.spread)
        reason = f"{self.constant:g} × sd(T) × n^(−1/{d + 4}) with n = {problem.n:,}."
        h = as_bandwidth(self.factor(problem), problem)
        return Bandwidth(h=h, selector="RuleOfThumb", reason=reason)
