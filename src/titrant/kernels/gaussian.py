"""The Gaussian kernel: smooth everywhere, every row counts a little."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from titrant.kernels.base import Kernel

if TYPE_CHECKING:
    from titrant._types import Array

# φ(u) underflows to exactly 0 long before |u| = 40, so cutting u there changes nothing
# and keeps uʲφ(u) from being ∞·0.
_FAR = 40.0


@dataclass(frozen=True, slots=True)
class Gaussian(Kernel):
    """K(u) = φ(u) = exp(−u²/2)/√(2π)."""

    second_moment: ClassVar[float] = 1.0
    roughness: ClassVar[float] = 1 / (2 * math.sqrt(math.pi))
    bound: ClassVar[float] = 1 / math.sqrt(2 * math.pi)
    lipschitz: ClassVar[float] = 1 / math.sqrt(2 * math.pi * math.e)
    support: ClassVar[float] = math.inf

    def __call__(self, u: Array) -> Array:
        """Return φ(u), elementwise."""
        return np.exp(-0.5 * np.square(u)) / math.sqrt(2 * math.pi)

    def derivative(self, u: Array) -> Array:
        """Return φ′(u) = −uφ(u), elementwise."""
        return -u * self(u)

    def antiderivative(self, j: int, u: Array) -> Array:
        """Return ∫₀ᵘ vʲφ(v) dv by parts: A_j(u) = (j−1)A_{j−2}(u) − uʲ⁻¹φ(u) + 1{j=1}φ(0)."""
        u = np.clip(u, -_FAR, _FAR)
        if j == 0:
            from scipy.special import erf  # noqa: PLC0415  (scipy only when it is needed)

            return 0.5 * erf(u / math.sqrt(2))
        if j == 1:
            return self.bound - self(u)
        return (j - 1) * self.antiderivative(j - 2, u) - u ** (j - 1) * self(u)
