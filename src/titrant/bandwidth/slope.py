"""SLOPE: widen the bandwidth as long as all intervals so far have a point in common.

From the smallest usable bandwidth up, h is the last one at which the intervals v(g) ± 2SE(g) of
all bandwidths up to it still intersect (Su, Srinath & Krishnamurthy 2020, after Lepski).

For comparison only: it balances a bias against *twice* a standard error, and estimates that share
their rows agree longer than independent ones would, so it smooths too much. Over the test designs
its error is two and a half times that of the best bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.bandwidth.base import Bandwidth, BandwidthSelector, as_bandwidth
from titrant.bandwidth.path import DEFAULT_FACTORS, BandwidthPath, path_of
from titrant.bandwidth.usable import edge_flag, fall_back, usable

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope(BandwidthSelector):
    """The widest bandwidth whose interval meets those of all smaller ones."""

    width: float = 2.0
    """Half width of the intervals in standard errors."""

    def __post_init__(self) -> None:
        _check.positive(self.width, "width", "Slope")

    def select(self, problem: Problem) -> Bandwidth:
        """Return the last bandwidth in agreement with all smaller ones."""
        return self.select_from(path_of(problem, DEFAULT_FACTORS), problem)

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
