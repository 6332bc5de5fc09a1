"""Estimators by weights alone: inverse propensity weighting, and its self-normalized form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from titrant.estimators.base import SmoothedEstimator
from titrant.kernels import Boundary, Epanechnikov, Kernel

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows

# The paper's v̂: inverse propensity weighting with a kernel in place of "same dose".


@dataclass(frozen=True, slots=True, kw_only=True)
class IPW(SmoothedEstimator):
    """v̂ = mean(w·y).

    It moves with the zero of the outcome: when losses are positive, a policy far from the data
    looks free. ``centered=True`` weights y − ȳ instead and adds ȳ back, which cures that.
    """

    kernel: Kernel = field(default_factory=Epanechnikov)
    clip: float | None = None
    boundary: Boundary = Boundary.LINEAR
    centered: bool = False

    def __post_init__(self) -> None:
        self.check_smoothing()

    @property
    def normalized(self) -> bool:
        """Never."""
        return False

    def references(self, rows: Rows) -> tuple[float, float]:
        """Return 0 and 0, or ȳ and ȳ when centered."""
        level = rows.center if self.centered else 0.0
        return level, level

    def baseline_slope(self, rows: Rows) -> Array:
        """Return 0 (n, d)."""
        return np.zeros_like(rows.tau)


# The paper's v̂ norm: a weighted average, so it moves with the zero of the outcome as it should.


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfNormalized(SmoothedEstimator):
    """v̂ = Σw·y / Σw."""

    kernel: Kernel = field(default_factory=Epanechnikov)
    clip: float | None = None
    boundary: Boundary = Boundary.LINEAR

    def __post_init__(self) -> None:
        self.check_smoothing()

    @property
    def normalized(self) -> bool:
        """Always."""
        return True

    def references(self, rows: Rows) -> tuple[float, float]:
        """Return c and c: the same value whatever the constant c."""
        return rows.center, rows.center

    def baseline_slope(self, rows: Rows) -> Array:
        """Return 0 (n, d)."""
        return np.zeros_like(rows.tau)
