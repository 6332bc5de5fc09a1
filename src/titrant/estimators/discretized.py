"""The baseline that the paper argues against: cut the doses into bins and call them actions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.estimators.base import Estimator

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Discretized(Estimator):
    """v̂ = Σw·y/Σw, or mean(w·y) when not self-normalized; w = 1{same bin}/P(bin | x).

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
        if self.edges is not None and (np.diff(self.edges) <= 0).any():
            raise _check.invalid("edges", "Discretized", "increasing", self.edges)

    @property
    def size(self) -> int:
        """Two terms when self-normalized, else one."""
        return 2 if self.self_normalized else 1

    @property
    def centers(self) -> bool:
        """When self-normalized, where it is exact."""
        return self.self_normalized

    def on(self, doses: Array) -> Discretized:
        """Return this estimator with its inner edges laid out over logged doses (n,)."""
        if self.edges is not None:
            return self
        share = np.arange(1, self.bins) / self.bins
        low, high = doses.min(), doses.max()
        cuts = np.quantile(doses, share) if self.quantiles else low + share * (high - low)
        return replace(self, edges=tuple(np.unique(cuts).tolist()))

    def terms(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002  (no bandwidth here)
        """Return w·y, w (n, 2), or w·y (n, 1)."""
        w = self._weight(rows)
        return np.stack([w * rows.y, w], axis=1)[:, : self.size]

    def dterms(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002
        """Return 0 (n, k, d): a small change of dose stays in its bin."""
        return np.zeros((len(rows.y), self.size, rows.tau.shape[1]))

    def value(self, mean: Array) -> float:
        """Return m₀/m₁, or m₀."""
        return float(mean[0] / mean[1] if self.self_normalized else mean[0])

    def gradient(self, mean: Array) -> Array:
        """Return (1/m₁, −m₀/m₁²), or 1."""
        if not self.self_normalized:
            return np.ones_like(mean)
        return np.array([1.0 / mean[1], -mean[0] / mean[1] ** 2])

    def _weight(self, rows: Rows) -> Array:
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
        same = bin_of_tau == bin_of_t
        width = np.median(np.diff(inner)) if len(inner) > 1 else 0.0
        safe = np.maximum(p, rows.floor * width)
        return np.divide(1.0, safe, out=np.zeros_like(p), where=same & (safe > 0))
