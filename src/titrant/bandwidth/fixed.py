"""The user's own bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.bandwidth.base import Bandwidth, BandwidthSelector
from titrant.kernels import Scale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant.estimators import Problem


@dataclass(frozen=True, slots=True)
class Fixed(BandwidthSelector):
    """A number, one number a dose, or a matrix H in squared dose units."""

    bandwidth: ArrayLike

    def select(self, problem: Problem) -> Bandwidth:
        """Return the user's bandwidth, checked."""
        Scale.of(self.bandwidth, len(problem.spread))
        h = np.asarray(self.bandwidth, dtype=np.float64)
        return Bandwidth(h=h, selector="Fixed", reason="The bandwidth was given.")
