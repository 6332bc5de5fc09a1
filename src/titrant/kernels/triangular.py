"""The triangular kernel: piecewise linear, so a policy search with it is a series of LPs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from titrant.kernels.base import CompactKernel


@dataclass(frozen=True, slots=True)
class Triangular(CompactKernel):
    """K(u) = 1 − |u| on |u| ≤ 1."""

    coefficients: ClassVar[tuple[float, ...]] = (1.0, -1.0)
    second_moment: ClassVar[float] = 1 / 6
    roughness: ClassVar[float] = 2 / 3
    bound: ClassVar[float] = 1.0
    lipschitz: ClassVar[float] = 1.0
