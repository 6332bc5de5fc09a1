"""Path fit: one parabola through the bandwidth path gives the bias.

    v(g) = a + b·g², by least squares with weights 1/SE(g)²;  h minimizes (b·g²)² + SE(g)².

The simple ancestor of the averaged bias path: it does not know that the estimates share their
rows, nor that a kink bends the path in another shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.bandwidth.base import Bandwidth, BandwidthSelector, as_bandwidth
from titrant.bandwidth.path import DEFAULT_FACTORS, BandwidthPath, path_of
from titrant.bandwidth.usable import FEWEST, edge_flag, fall_back, usable

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFit(BandwidthSelector):
    """The least squared bias plus variance, the bias from a weighted parabola."""

    widest: float = 1.2
    """Bandwidths beyond this many sd(T) are neither fitted nor chosen."""

    def __post_init__(self) -> None:
        _check.positive(self.widest, "widest", "PathFit")

    def select(self, problem: Problem) -> Bandwidth:
        """Return the bandwidth of least estimated error."""
        return self.select_from(path_of(problem, DEFAULT_FACTORS), problem)

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
