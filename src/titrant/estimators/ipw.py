"""The paper's v̂: inverse propensity weighting with a kernel in place of "same dose"."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from titrant.estimators.base import Estimator
from titrant.estimators.weight import check_smoothing, weight, weight_slope
from titrant.kernels import Boundary, Epanechnikov, Kernel

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class IPW(Estimator):
    """v̂ = mean(w·y).

    It moves with the zero of the outcome: when losses are positive, a policy far from the data
    looks free. ``centered=True`` weights y − ȳ instead and adds ȳ back, which cures that.
    """

    kernel: Kernel = field(default_factory=Epanechnikov)
    clip: float | None = None
    boundary: Boundary = Boundary.LINEAR
    centered: bool = False

    def __post_init__(self) -> None:
        check_smoothing(self.kernel, self.clip, self.boundary, "IPW")

    @property
    def size(self) -> int:
        """One term: w·y."""
        return 1

    @property
    def centers(self) -> bool:
        """As the user asked: centering changes this estimator."""
        return self.centered

    def terms(self, rows: Rows, scale: Scale) -> Array:
        """Return w·y (n, 1)."""
        w = weight(rows, self.kernel, self.boundary, scale)
        return (w * rows.y)[:, None]

    def dterms(self, rows: Rows, scale: Scale) -> Array:
        """Return ∂w/∂τ·y (n, 1, d)."""
        _, slope = weight_slope(rows, self.kernel, self.boundary, scale)
        return (slope * rows.y[:, None])[:, None, :]

    def value(self, mean: Array) -> float:
        """Return m₀."""
        return float(mean[0])

    def gradient(self, mean: Array) -> Array:
        """Return 1: the value is the mean itself."""
        return np.ones_like(mean)
