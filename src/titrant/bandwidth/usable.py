"""Which bandwidths of a path the data can bear, and what to do when there are too few of them.

A bandwidth is usable when enough rows are in reach, their weights are even enough, and it is not
so wide that the estimate no longer depends on the policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.bandwidth.base import Bandwidth, as_bandwidth, rate
from titrant.errors import NoOverlap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant.bandwidth.path import BandwidthPath
    from titrant.estimators import Problem

ESS_FLOOR = 12.0
"""Bandwidths with a smaller effective sample size are not considered,"""
FEWEST_ROWS = 8
"""nor are those with fewer rows in reach,"""
WIDEST = 2.0
"""nor those beyond this many sd(T)."""
FEWEST = 5
"""Bandwidths that must be usable for a choice among them."""

SMALLEST, LARGEST = "the smallest usable bandwidth", "the largest usable bandwidth"


def usable(
    path: BandwidthPath,
    *,
    ess_floor: float = ESS_FLOOR,
    fewest_rows: int = FEWEST_ROWS,
    widest: float = WIDEST,
) -> NDArray[np.intp]:
    """Return the indices of the bandwidths with enough data and not too wide."""
    enough = (path.count >= fewest_rows) & (path.ess >= ess_floor)
    return np.flatnonzero(enough & (path.factors <= widest))


def reached(path: BandwidthPath) -> NDArray[np.intp]:
    """Return the indices of the bandwidths with at least two rows in reach."""
    return np.flatnonzero((path.count >= 2) & (path.ess > 1.0))  # noqa: PLR2004


def fall_back(
    path: BandwidthPath,
    problem: Problem,
    selector: str,
    why: str,
    *,
    ess_floor: float = ESS_FLOOR,
) -> Bandwidth:
    """Return sd(T)·n^(−1/(d+4)) moved to where there is data, flagged; refuse without any."""
    some = reached(path)
    if not len(some):
        raise NoOverlap(_no_overlap_sentence(path))
    factors, ess = path.factors[some], path.ess[some]
    enough = factors[ess >= min(ess_floor, ess.max())]
    g = float(np.clip(rate(problem), enough.min(), factors.max()))
    return Bandwidth(
        h=as_bandwidth(g, problem),
        selector=selector,
        reason=f"The rule of thumb, moved to where there is data, because of {why}.",
        flag=f"fallback: {why}",
    )


def moved_inside(g: float, low: float, high: float) -> tuple[float, str | None]:
    """Return g moved into [low, high], and a flag when that changed it."""
    if g < low:
        return low, SMALLEST
    return (high, LARGEST) if g > high else (g, None)


def edge_flag(best: int, size: int) -> str | None:
    """Return a flag when the choice is the first or the last of ``size`` candidates."""
    if best == 0:
        return SMALLEST
    return LARGEST if best == size - 1 else None


def _no_overlap_sentence(path: BandwidthPath) -> str:
    return (
        f"No bandwidth up to {path.factors[-1]:.3g} sd(T) reaches two logged doses near the "
        f"policy's doses in {path.n:,} rows. Check that doses share a unit, or ask about a policy "
        "closer to what was logged."
    )
