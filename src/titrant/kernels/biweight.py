"""The biweight (quartic) kernel: smoother at the edge than Epanechnikov."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from titrant.kernels.base import CompactKernel


@dataclass(frozen=True, slots=True)
class Biweight(CompactKernel):
    """K(u) = 15/16 (1 − u²)² on |u| ≤ 1."""

    coefficients: ClassVar[tuple[float, ...]] = (15 / 16, 0.0, -15 / 8, 0.0, 15 / 16)
    second_moment: ClassVar[float] = 1 / 7
    roughness: ClassVar[float] = 5 / 7
    bound: ClassVar[float] = 15 / 16
    lipschitz: ClassVar[float] = 5 * math.sqrt(3) / 6
