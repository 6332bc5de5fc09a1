"""The uniform (boxcar) kernel: an average of all rows within one bandwidth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from titrant.kernels.base import CompactKernel


@dataclass(frozen=True, slots=True)
class Uniform(CompactKernel):
    """K(u) = ½ on |u| ≤ 1; it jumps at the edge, so it has no slope to follow in a search."""

    coefficients: ClassVar[tuple[float, ...]] = (1 / 2,)
    second_moment: ClassVar[float] = 1 / 3
    roughness: ClassVar[float] = 1 / 2
    bound: ClassVar[float] = 1 / 2
    lipschitz: ClassVar[float] = math.inf
