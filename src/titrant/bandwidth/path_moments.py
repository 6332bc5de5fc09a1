"""What a bandwidth path is computed from: means and covariances of the terms at m bandwidths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.moments import Moments


@dataclass(frozen=True, slots=True, kw_only=True)
class PathMoments:
    """Means and covariances of b, wⱼe and wⱼ over n rows, and the rows in reach of each h_j."""

    n: int
    b: float
    e: Array
    """Mean of wⱼe (m,)."""
    w: Array
    bb: float
    """Variance of b."""
    be: Array
    """Covariance of b and wⱼe (m,)."""
    bw: Array
    ee: Array
    """Covariance of wⱼe and wₖe (m, m)."""
    ew: Array
    ww: Array
    count: Array

    @classmethod
    def of(cls, moments: Moments, count: Array) -> PathMoments:
        """Return those of b, w₁e, w₁, …, w_m e, w_m side by side."""
        mean, c = moments.mean, moments.covariance
        return cls(
            n=moments.n,
            b=float(mean[0]),
            e=mean[1::2],
            w=mean[2::2],
            bb=float(c[0, 0]),
            be=c[0, 1::2],
            bw=c[0, 2::2],
            ee=c[1::2, 1::2],
            ew=c[1::2, 2::2],
            ww=c[2::2, 2::2],
            count=count,
        )

    @property
    def means(self) -> Array:
        """Means of b, wⱼe and wⱼ (m, 3)."""
        return np.column_stack([np.full(len(self.w), self.b), self.e, self.w])

    def covariance(self, g: Array) -> Array:
        """Return the covariance (m, m) of m values with gradients g (m, 3) in b, wⱼe and wⱼ.

        This is gΣgᵀ without its zeros: only three terms matter to each value.
        """
        by_b, by_e, by_w = g.T
        total = np.outer(by_e, by_w) * self.ew
        total += np.outer(by_b, by_e * self.be + by_w * self.bw)
        total = total + total.T
        for slope, own in ((by_b, self.bb), (by_e, self.ee), (by_w, self.ww)):
            total += np.outer(slope, slope) * own
        return np.asarray(total)
