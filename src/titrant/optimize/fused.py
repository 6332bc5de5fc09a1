"""Search statistics of an affine policy by compiled loops: every class of one dose is affine.

A constant, a linear rule and a sum of RBFs are all τ = φ(x)'β, clipped; they differ in φ alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.kernels import Boundary
from titrant.optimize.statistics import SearchStatistics

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.kernels.base import CompactKernel


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineSearch:
    """The sums of terms (b, w·e, w) for policies τ = φ'β cut to [low, high], on n rows."""

    phi: Array
    """Features of each row (n, P)."""
    t: Array
    """Logged doses (n,)."""
    e: Array
    """Residuals y − r̂(t, x), or y − c (n,)."""
    q: Array
    """Floored propensities (n,)."""
    kernel: CompactKernel
    h: float
    boundary: Boundary = Boundary.NONE
    lower: Array | None = None
    """Bounds of the dose (n,), for the boundary kernel."""
    upper: Array | None = None
    low: float = -np.inf
    """The policy's own limits."""
    high: float = np.inf
    table: Array | None = None
    """r̂ on an even grid of doses (n, G); None is a baseline of 0."""
    grid: tuple[float, float] = (0.0, 1.0)
    """First dose and step of that grid."""
    second: bool = False
    """Whether second moments are wanted, for a penalty on the SE or an ESS floor."""

    def __call__(self, params: Array) -> SearchStatistics:
        """Return the sums at parameters (m, P)."""
        from titrant.optimize.compiled import fused_sums  # noqa: PLC0415

        n = len(self.t)
        infinite = np.broadcast_to(np.inf, (n,))
        bounded = self.lower is not None and self.upper is not None
        z, dz, zz, zdz = fused_sums(
            np.ascontiguousarray(params, dtype=np.float64),
            self.phi,
            self.t,
            self.e,
            1.0 / (self.h * self.q),
            self.h,
            np.array(self.kernel.coefficients),
            int(self.boundary) if bounded else int(Boundary.NONE),
            self.lower if bounded else -infinite,
            self.upper if bounded else infinite,
            self.low,
            self.high,
            np.zeros((0, 0)) if self.table is None else self.table,
            *self.grid,
            self.second,
        )
        return SearchStatistics(n, z, dz, zz, zdz)
