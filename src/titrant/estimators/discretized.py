"""The baseline that the paper argues against: cut the doses into bins and call them actions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.estimators.base import WeightedEstimator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale

FEW_LEVELS = 30
"""Distinct doses up to which a log has levels rather than a range of doses,"""
ROWS_OF_A_LEVEL = 5
"""if each of them has this many rows on average: a short log has few doses of any kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discretized(WeightedEstimator):
    """v̂ = Σw·y/Σw, or mean(w·y) un-normalized; w = 1{same bin}/P(bin | x).

    ``bins`` of equal width over the logged doses, or of equal count with ``quantiles=True``, or
    the inner ``edges`` themselves. The outermost bins are open. Where only a few doses were logged,
    such as list prices, edges lie midway between neighbors, so that each bin holds whole levels.
    ``clip`` floors the density, so the probability of a bin is at least clip × width.
    """

    bins: int = 10
    quantiles: bool = False
    edges: tuple[float, ...] | None = None
    self_normalized: bool = True
    clip: float | None = None

    def __post_init__(self) -> None:
        _check.count(self.bins, "bins", "Discretized", at_least=2)
        if self.clip is not None:
            _check.nonnegative(self.clip, "clip", "Discretized")
        if self.edges is not None:
            inner = _check.finite_array(self.edges, "edges", "Discretized", ndim=1)
            if (np.diff(inner) <= 0).any():
                raise _check.invalid("edges", "Discretized", "increasing", self.edges)

    @property
    def normalized(self) -> bool:
        """As the user asked."""
        return self.self_normalized

    def on(self, doses: Array) -> Discretized:
        """Return this estimator with its inner edges laid out over logged doses (n,)."""
        if self.edges is not None:
            return self
        levels = few_levels(doses)
        if levels is not None and len(levels) <= self.bins:
            return replace(self, edges=tuple(_midway(levels).tolist()))
        share = np.arange(1, self.bins) / self.bins
        low, high = doses.min(), doses.max()
        cuts = np.quantile(doses, share) if self.quantiles else low + share * (high - low)
        if levels is not None:
            # A cut between two levels, or on the lower one, moves midway: bins are (low, high].
            above = np.searchsorted(levels, cuts, side="right")
            cuts = _midway(levels)[above[above < len(levels)] - 1]
        return replace(self, edges=tuple(np.unique(cuts).tolist()))

    def bin_of(self, doses: Array) -> NDArray[np.intp]:
        """Return the number of the bin of each dose (n,); bins are (low, high]."""
        # side="left" puts a dose on an edge into the bin below.
        return np.searchsorted(self._inner(), doses, side="left")

    def name_of(self, number: int) -> str:
        """Return a bin as it is written: (low, high]."""
        low, high = self._outer()[[number, number + 1]].tolist()
        if np.isinf(low) and np.isinf(high):
            return "of all doses"
        if np.isinf(low):
            return f"up to {high:.6g}"
        return f"above {low:.6g}" if np.isinf(high) else f"({low:.6g}, {high:.6g}]"

    def _inner(self) -> Array:
        return np.asarray(self.edges or (), dtype=np.float64)

    def _outer(self) -> Array:
        return np.concatenate([[-np.inf], self._inner(), [np.inf]])

    def references(self, rows: Rows) -> tuple[float, float]:
        """Return c and c when self-normalized, where c changes nothing; else 0 and 0."""
        level = rows.center if self.self_normalized else 0.0
        return level, level

    def baseline_slope(self, rows: Rows) -> Array:
        """Return 0 (n, d)."""
        return np.zeros_like(rows.tau)

    def weight(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002  (no bandwidth here)
        """Return 1{bin of t = bin of τ}/max(P(bin | x), θ·width) (n,)."""
        if self.edges is None or rows.probability is None or rows.t.shape[1] != 1:
            raise InvalidArgument(
                "`Discretized` needs bin edges, one treatment and a propensity with a cdf; "
                "call it through `evaluate` with `propensity=` a model such as LinearGaussian()."
            )
        inner, outer = self._inner(), self._outer()
        bin_of_tau, bin_of_t = self.bin_of(rows.tau[:, 0]), self.bin_of(rows.t[:, 0])
        p = rows.probability(outer[bin_of_tau], outer[bin_of_tau + 1])
        safe = np.maximum(p, rows.floor * _typical_width(inner))
        same = (bin_of_tau == bin_of_t) & (safe > 0)
        return np.divide(1.0, safe, out=np.zeros_like(p), where=same)

    def weight_slope(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002
        """Return 0 (n, d): a small change of dose stays in its bin."""
        return np.zeros_like(rows.tau)


def few_levels(doses: Array) -> Array | None:
    """Return the distinct doses (k,) of a log (n,) that has few, each many times; else None."""
    levels = np.unique(doses)
    few = len(levels) <= FEW_LEVELS and len(doses) >= ROWS_OF_A_LEVEL * len(levels)
    return levels if few else None


def _midway(levels: Array) -> Array:
    """Return the points (k − 1,) midway between neighbors of k levels."""
    return np.asarray((levels[:-1] + levels[1:]) / 2)


def _typical_width(inner: Array) -> float:
    """Return the median width of the closed bins; the open outer ones have none."""
    return float(np.median(np.diff(inner))) if len(inner) > 1 else 0.0
