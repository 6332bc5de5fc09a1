"""The paper's v̂ norm: a weighted average, so it stays inside the range of the outcomes."""

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
class SelfNormalized(Estimator):
    """v̂ = Σw·y / Σw."""

    kernel: Kernel = field(default_factory=Epanechnikov)
    clip: float | None = None
    boundary: Boundary = Boundary.LINEAR

    def __post_init__(self) -> None:
        check_smoothing(self.kernel, self.clip, self.boundary, "SelfNormalized")

    @property
    def size(self) -> int:
        """Two terms: w·y and w."""
        return 2

    @property
    def centers(self) -> bool:
        """Always: Σw(y − c)/Σw + c is the same value."""
        return True

    def terms(self, rows: Rows, scale: Scale) -> Array:
        """Return w·y, w (n, 2)."""
        w = weight(rows, self.kernel, self.boundary, scale)
        return np.stack([w * rows.y, w], axis=1)

    def dterms(self, rows: Rows, scale: Scale) -> Array:
        """Return ∂w/∂τ·y, ∂w/∂τ (n, 2, d)."""
        _, slope = weight_slope(rows, self.kernel, self.boundary, scale)
        return np.stack([slope * rows.y[:, None], slope], axis=1)

    def value(self, mean: Array) -> float:
        """Return m₀/m₁."""
        return float(mean[0] / mean[1])

    def gradient(self, mean: Array) -> Array:
        """Return (1/m₁, −m₀/m₁²)."""
        return np.array([1.0 / mean[1], -mean[0] / mean[1] ** 2])
