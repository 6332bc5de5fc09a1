"""The Epanechnikov kernel, the default: least mean squared error among second-order kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from titrant.kernels.base import CompactKernel


@dataclass(frozen=True, slots=True)
class Epanechnikov(CompactKernel):
    """K(u) = ¾(1 − u²) on |u| ≤ 1."""

    coefficients: ClassVar[tuple[float, ...]] = (3 / 4, 0.0, -3 / 4)
    second_moment: ClassVar[float] = 1 / 5
    roughness: ClassVar[float] = 3 / 5
    bound: ClassVar[float] = 3 / 4
    lipschitz: ClassVar[float] = 3 / 2
