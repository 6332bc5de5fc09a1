"""Bias against variance: the bandwidth at which a squared bias B²g⁴ and a variance V/gᵈ balance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from titrant.estimators import Problem


def rate(problem: Problem) -> float:
    """Return n^(−1/(d+4)), the rate of the best bandwidth in units of sd(T)."""
    return float(problem.n ** (-1 / (len(problem.spread) + 4)))


def best_factor(squared_slope: float, variance: float, d: int) -> float:
    """Return argmin_g B²g⁴ + V/gᵈ = (d·V/(4B²))^{1/(d+4)}; infinite when there is no bias."""
    if squared_slope <= 0.0:
        return math.inf
    return float((d * variance / (4.0 * squared_slope)) ** (1.0 / (d + 4)))
