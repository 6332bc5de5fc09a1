"""What a kernel is: a symmetric density K(u), its derivative, and its moments up to u.

The moments ∫ vʲK(v)dv over an interval are all that a boundary correction needs
(:mod:`titrant.kernels.boundary`), so a kernel that states them has every correction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from titrant._types import Array


class Kernel(ABC):
    """A symmetric probability density on the line that smooths over nearby doses."""

    second_moment: ClassVar[float]
    """κ₂ = ∫ u²K(u) du: the bias of an estimate is proportional to it."""
    roughness: ClassVar[float]
    """R = ∫ K(u)² du: the variance of an estimate is proportional to it."""
    bound: ClassVar[float]
    """M_K = max K(u)."""
    lipschitz: ClassVar[float]
    """L_K, the smallest constant with |K(u) − K(v)| ≤ L_K|u − v|; infinite for a jump."""
    support: ClassVar[float]
    """K(u) = 0 for |u| > support."""

    @abstractmethod
    def __call__(self, u: Array) -> Array:
        """Return K(u), elementwise."""

    @abstractmethod
    def derivative(self, u: Array) -> Array:
        """Return K′(u), elementwise; 0 at a corner, where it does not exist."""

    @abstractmethod
    def antiderivative(self, j: int, u: Array) -> Array:
        """Return ∫₀ᵘ vʲK(v) dv, elementwise; u may be infinite."""

    def cdf(self, u: Array) -> Array:
        """Return F_K(u) = ∫ K(v) dv over (−∞, u], elementwise."""
        return 0.5 + self.antiderivative(0, u)

    def moment(self, j: int, low: Array, high: Array) -> Array:
        """Return a_j = ∫ vʲK(v) dv over [low, high], elementwise."""
        return self.antiderivative(j, high) - self.antiderivative(j, low)


class CompactKernel(Kernel):
    """K(u) = Σₖ cₖ|u|ᵏ on |u| ≤ 1 and 0 outside: stated by its coefficients alone."""

    coefficients: ClassVar[tuple[float, ...]]
    """c₀, c₁, …: the polynomial in |u|, constant first."""
    support: ClassVar[float] = 1.0

    def __call__(self, u: Array) -> Array:
        """Return K(u), elementwise."""
        a = _distance(u)
        return _polynomial(self.coefficients, a) * (a <= 1.0)

    def derivative(self, u: Array) -> Array:
        """Return K′(u), elementwise; 0 at a corner, where it does not exist."""
        a = _distance(u)
        slopes = tuple(k * c for k, c in enumerate(self.coefficients))[1:]
        return np.sign(u) * _polynomial(slopes, a) * (a <= 1.0)

    def antiderivative(self, j: int, u: Array) -> Array:
        """Return ∫₀ᵘ vʲK(v) dv = sign(u)ʲ⁺¹ Σₖ cₖ|u|ʲ⁺ᵏ⁺¹/(j+k+1), |u| cut at 1."""
        a = np.minimum(np.abs(u), 1.0)
        areas = tuple(c / (j + k + 1) for k, c in enumerate(self.coefficients))
        return np.asarray(np.sign(u) ** (j + 1) * a ** (j + 1) * _polynomial(areas, a))


def _distance(u: Array) -> Array:
    """Return |u|, cut at 2 (already outside) so that an infinite u gives 0 and not ∞·0."""
    return np.minimum(np.abs(u), 2.0)


def _polynomial(coefficients: tuple[float, ...], a: Array) -> Array:
    """Return Σₖ cₖaᵏ by Horner's rule."""
    total = np.zeros_like(a)
    for c in reversed(coefficients):
        total = total * a + c
    return total
