"""Selectors that fit the bandwidth path: a parabola, SLOPE, and two bandwidths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.bandwidth.base import Bandwidth, BandwidthSelector, as_bandwidth, best_factor, rate
from titrant.bandwidth.path import (
    FEWEST,
    BandwidthPath,
    edge_flag,
    fall_back,
    moved_inside,
    path_search,
    usable,
)

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators import Problem
    from titrant.estimators.joint import Search

# Path fit: one parabola through the bandwidth path gives the bias.
#
#     v(g) = a + b·g², by least squares with weights 1/SE(g)²;  h minimizes (b·g²)² + SE(g)².
#
# The simple ancestor of the averaged bias path: it does not know that the estimates share their
# rows, nor that a kink bends the path in another shape.


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFit(BandwidthSelector):
    """The least squared bias plus variance, the bias from a weighted parabola."""

    widest: float = 1.2
    """Bandwidths beyond this many sd(T) are neither fitted nor chosen."""

    def __post_init__(self) -> None:
        _check.positive(self.widest, "widest", "PathFit")

    def search(self, problem: Problem) -> Search[Bandwidth]:
        """Return the bandwidth of least estimated error."""
        return self.select_from((yield from path_search(problem)), problem)

    def select_from(self, path: BandwidthPath, problem: Problem) -> Bandwidth:
        """Return the same from a path already computed."""
        some = usable(path, widest=self.widest)
        g, values, s2 = path.factors[some], path.values[some], path.se[some] ** 2
        if len(some) < FEWEST:
            return fall_back(path, problem, "PathFit", "fewer than 5 usable bandwidths")
        if not (s2 > 0.0).all():
            return fall_back(path, problem, "PathFit", "an estimate without variance")
        bias = parabola_slope(g, values, s2) * g**2
        best = int(np.argmin(bias**2 + s2))
        se = float(np.sqrt(s2[best]))
        return Bandwidth(
            h=as_bandwidth(float(g[best]), problem),
            selector="PathFit",
            reason=(
                f"A parabola through {len(g)} estimates puts the least error at "
                f"{g[best]:.3g} sd(T): bias {bias[best]:.3g}, standard error {se:.3g}."
            ),
            bias=float(bias[best]),
            se=se,
            flag=edge_flag(best, len(g)),
        )


def parabola_slope(g: Array, values: Array, s2: Array) -> float:
    """Return b of v = a + b·g² by least squares with weights 1/s2; all arrays (K,)."""
    weights = 1.0 / s2
    shape = g**2 - np.average(g**2, weights=weights)
    return float((weights * shape) @ (values - values.mean()) / ((weights * shape) @ shape))


# SLOPE: widen the bandwidth as long as all intervals so far have a point in common.
#
# From the smallest usable bandwidth up, h is the last one at which the intervals v(g) ± 2SE(g) of
# all bandwidths up to it still intersect (Su, Srinath & Krishnamurthy 2020, after Lepski).
#
# For comparison only: it balances a bias against *twice* a standard error, and estimates that share
# their rows agree longer than independent ones would, so it smooths too much. Over the test designs
# its error is two and a half times that of the best bandwidth.


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope(BandwidthSelector):
    """The widest bandwidth whose interval meets those of all smaller ones."""

    width: float = 2.0
    """Half width of the intervals in standard errors."""

    def __post_init__(self) -> None:
        _check.positive(self.width, "width", "Slope")

    def search(self, problem: Problem) -> Search[Bandwidth]:
        """Return the last bandwidth in agreement with all smaller ones."""
        return self.select_from((yield from path_search(problem)), problem)

    def select_from(self, path: BandwidthPath, problem: Problem) -> Bandwidth:
        """Return the same from a path already computed."""
        some = usable(path)
        if not len(some):
            return fall_back(path, problem, "Slope", "no usable bandwidth")
        best = last_in_agreement(path.values[some], self.width * path.se[some])
        g, se = float(path.factors[some[best]]), float(path.se[some[best]])
        return Bandwidth(
            h=as_bandwidth(g, problem),
            selector="Slope",
            reason=(
                f"{g:.3g} sd(T) is the widest of {len(some)} usable bandwidths whose interval "
                f"(± {self.width:g} standard errors) meets those of all smaller ones."
            ),
            se=se,
            flag=edge_flag(best, len(some)),
        )


def last_in_agreement(centers: Array, half_widths: Array) -> int:
    """Return the last i at which the intervals 0 … i have a common point; arrays (K,)."""
    highest_low = np.maximum.accumulate(centers - half_widths)
    lowest_high = np.minimum.accumulate(centers + half_widths)
    # Both run apart, so agreement once lost does not come back.
    return int(np.count_nonzero(highest_low <= lowest_high)) - 1


# Colangelo and Lee's plug-in: the bias constant from the estimates at two bandwidths.
#
# The bias of v(b) is B·b², so the difference of the estimates at b and b/2 shows it,
#
#     B = (v(b) − v(b/2))/(b² − b²/4),  V̂ = n·b·SE(b)²,  h = [V̂/(4n(B² + Var B))]^{1/5}.
#
# Var B keeps a B that is small by chance from asking for a bandwidth without end. A first b is 1.26
# times the rule 2.34·sd(T)·n^(−1/5); the second is 1.6 times the h that it gives. For d doses b is
# in units of sd_j, V̂ = n·bᵈ·SE(b)² and h^{d+4} = d·V̂/(4n(B² + Var B)).

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

    def search(self, problem: Problem) -> Search[Bandwidth]:
        """Return the second of two plug-in choices."""
        path = yield from path_search(problem)
        rule = RULE * rate(problem)
        some = usable(path, ess_floor=self.ess_floor, widest=CAP * rule)
        if not len(some):
            why = f"an effective sample size under {self.ess_floor:g} up to 1.6 × the rule"
            return fall_back(path, problem, "TwoBandwidth", why, ess_floor=self.ess_floor)
        low, high = float(path.factors[some[0]]), CAP * rule
        first, _, _ = yield from _choice(FIRST * rule, low, high, problem)
        g, pilot, flag = yield from _choice(SECOND * first, low, high, problem)
        return _explained(g, pilot, problem, flag)


def _choice(
    b: float, low: float, high: float, problem: Problem
) -> Search[tuple[float, Pilot, str | None]]:
    """Return the choice that the pilot bandwidth b leads to, what it rests on, and a flag."""
    # Half of the pilot bandwidth has to bear an estimate too.
    pilot = yield from pilot_at(max(b, 2.0 * low), problem)
    wanted = best_factor(pilot.slope2, pilot.variance, len(problem.spread))
    g, flag = moved_inside(wanted, low, high)
    return g, pilot, flag


def pilot_at(b: float, problem: Problem) -> Search[Pilot]:
    """Return the bias and variance constants from the estimates at b/2 and b (in sd(T))."""
    path = yield from path_search(problem, np.array([b / 2, b]))
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
