"""The Gaussian kernel: smooth everywhere, every row counts a little."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from titrant.kernels.base import Kernel

if TYPE_CHECKING:
    from titrant._types import Array

# φ(u) underflows to exactly 0 before |u| = 40, so cutting u there changes nothing and keeps
# u² from overflowing and uφ(u) from being ∞·0.
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
        u = np.clip(u, -_FAR, _FAR)
        return np.exp(-0.5 * np.square(u)) / math.sqrt(2 * math.pi)

    def derivative(self, u: Array) -> Array:
        """Return φ′(u) = −uφ(u), elementwise."""
        return -np.clip(u, -_FAR, _FAR) * self(u)

    def antiderivative(self, j: int, u: Array) -> Array:
        """Return ∫₀ᵘ vʲφ(v) dv = ½ sign(u)ʲ⁺¹ E|Z|ʲ P((j+1)/2, u²/2), elementwise.

        P is the regularized lower incomplete gamma function, E|Z|ʲ = 2^{j/2} Γ((j+1)/2)/√π.
        Integration by parts would cancel to nothing for small u: a bandwidth wider than the bounds.
        """
        from scipy.special import erf, gammainc  # noqa: PLC0415  (scipy only when it is needed)

        u = np.clip(u, -_FAR, _FAR)
        if j == 0:
            return 0.5 * erf(u / math.sqrt(2))
        a = (j + 1) / 2
        whole = 2 ** (j / 2) * math.gamma(a) / math.sqrt(math.pi)
        return np.asarray(0.5 * np.sign(u) ** (j + 1) * whole * gammainc(a, 0.5 * u * u))
