"""The baseline that the paper argues against: cut the doses into bins and call them actions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.estimators.weighted import WeightedEstimator

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Discretized(WeightedEstimator):
    """v̂ = Σw·y/Σw, or mean(w·y) un-normalized; w = 1{same bin}/P(bin | x).

    ``bins`` of equal width over the logged doses, or of equal count with ``quantiles=True``, or
    the inner ``edges`` themselves. The outermost bins are open. ``clip`` floors the density, so
    the probability of a bin is at least clip × width.
    """

    bins: int = 10
    quantiles: bool = False
    edges: tuple[float, ...] | None = None
    self_normalized: bool = True
    clip: float | None = None

    uses_bandwidth: ClassVar[bool] = False

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
        share = np.arange(1, self.bins) / self.bins
        low, high = doses.min(), doses.max()
        cuts = np.quantile(doses, share) if self.quantiles else low + share * (high - low)
        return replace(self, edges=tuple(np.unique(cuts).tolist()))

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
        inner = np.asarray(self.edges)
        outer = np.concatenate([[-np.inf], inner, [np.inf]])
        # side="left" puts a dose on an edge into the bin below: bins are (low, high].
        bin_of_tau = np.searchsorted(inner, rows.tau[:, 0], side="left")
        bin_of_t = np.searchsorted(inner, rows.t[:, 0], side="left")
        p = rows.probability(outer[bin_of_tau], outer[bin_of_tau + 1])
        safe = np.maximum(p, rows.floor * _typical_width(inner))
        same = (bin_of_tau == bin_of_t) & (safe > 0)
        return np.divide(1.0, safe, out=np.zeros_like(p), where=same)

    def weight_slope(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002
        """Return 0 (n, d): a small change of dose stays in its bin."""
        return np.zeros_like(rows.tau)


def _typical_width(inner: Array) -> float:
    """Return the median width of the closed bins; the open outer ones have none."""
    return float(np.median(np.diff(inner))) if len(inner) > 1 else 0.0
