"""Colangelo and Lee's plug-in: the bias constant from the estimates at two bandwidths.

The bias of v(b) is B·b², so the difference of the estimates at b and b/2 shows it,

    B = (v(b) − v(b/2))/(b² − b²/4),  V̂ = n·b·SE(b)²,  h = [V̂/(4n(B² + Var B))]^{1/5}.

Var B keeps a B that is small by chance from asking for a bandwidth without end. A first b is 1.26
times the rule 2.34·sd(T)·n^(−1/5); the second is 1.6 times the h that it gives. For d doses b is
in units of sd_j, V̂ = n·bᵈ·SE(b)² and h^{d+4} = d·V̂/(4n(B² + Var B)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.bandwidth.base import Bandwidth, BandwidthSelector, as_bandwidth
from titrant.bandwidth.path import path_of
from titrant.bandwidth.tradeoff import best_factor, rate
from titrant.bandwidth.usable import fall_back, moved_inside, usable

if TYPE_CHECKING:
    from titrant.estimators import Problem

RULE = 2.34
"""The normal reference constant of the Epanechnikov kernel."""
FIRST, SECOND, CAP = 1.26, 1.6, 1.6
"""The first pilot in rules, the second in first choices, and the largest choice in rules."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """What the estimates at b and b/2 say, in units of sd(T): bias √slope2·g², variance v/gᵈ."""

    slope2: float
    """B² + Var B."""
    variance: float
    """V̂/n = bᵈ·SE(b)²."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoBandwidth(BandwidthSelector):
    """The two-bandwidth plug-in, regularized."""

    ess_floor: float = 15.0
    """No estimate is taken, and no choice made, at a smaller effective sample size."""

    def __post_init__(self) -> None:
        _check.positive(self.ess_floor, "ess_floor", "TwoBandwidth")

    def select(self, problem: Problem) -> Bandwidth:
        """Return the second of two plug-in choices."""
        path, rule = path_of(problem), RULE * rate(problem)
        some = usable(path, ess_floor=self.ess_floor, widest=CAP * rule)
        if not len(some):
            why = f"an effective sample size under {self.ess_floor:g} up to 1.6 × the rule"
            return fall_back(path, problem, "TwoBandwidth", why, ess_floor=self.ess_floor)
        low, high = float(path.factors[some[0]]), CAP * rule
        first, _, _ = _choice(FIRST * rule, low, high, problem)
        g, pilot, flag = _choice(SECOND * first, low, high, problem)
        return _explained(g, pilot, problem, flag)


def _choice(b: float, low: float, high: float, problem: Problem) -> tuple[float, Pilot, str | None]:
    """Return the choice that the pilot bandwidth b leads to, what it rests on, and a flag."""
    # Half of the pilot bandwidth has to bear an estimate too.
    pilot = pilot_at(max(b, 2.0 * low), problem)
    wanted = best_factor(pilot.slope2, pilot.variance, len(problem.spread))
    g, flag = moved_inside(wanted, low, high)
    return g, pilot, flag


def pilot_at(b: float, problem: Problem) -> Pilot:
    """Return the bias and variance constants from the estimates at b/2 and b (in sd(T))."""
    path = path_of(problem, np.array([b / 2, b]))
    c = path.covariance
    step = b**2 - b**2 / 4
    slope = (path.values[1] - path.values[0]) / step
    variance = (c[0, 0] + c[1, 1] - 2 * c[0, 1]) / step**2
    return Pilot(float(slope**2 + max(variance, 0.0)), float(b ** len(path.spread) * c[1, 1]))


def _explained(g: float, pilot: Pilot, problem: Problem, flag: str | None) -> Bandwidth:
    bias = float(np.sqrt(pilot.slope2) * g**2)
    se = float(np.sqrt(pilot.variance / g ** len(problem.spread)))
    return Bandwidth(
        h=as_bandwidth(g, problem),
        selector="TwoBandwidth",
        reason=(
            f"The estimates at two pilot bandwidths put the least error at {g:.3g} sd(T): "
            f"bias {bias:.3g}, standard error {se:.3g}."
        ),
        bias=bias,
        se=se,
        flag=flag,
    )
