"""Kernels that are polynomials of the distance to their own edge: all but the Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from titrant._own import leaves
from titrant.kernels.base import CompactKernel
from titrant.kernels.boundary import Boundary, far_from_bounds

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.kernels.base import Kernel

# Kernels as polynomials of the distance to their own edge: the form that compiled loops take.
#
#     K(u) = κ₀ + κ₁r + κ₂r²  on |u| ≤ 1,  r = 1 − |u|^γ,  γ = 1 or 2.
#
# r is small where K is, so it keeps all digits at the edge; and from one bandwidth to a wider one
# it only shrinks toward 1: r' = (1 − ρ) + ρr with ρ = (h/h')^γ.


_COEFFICIENTS = 5
"""Powers of |u| up to four."""
_TERMS = 3
"""Powers of r up to two."""


@dataclass(frozen=True, slots=True)
class PowerForm:
    """A kernel as compiled loops take it."""

    kappa: Array
    """κ (3,)."""
    gamma: int
    areas: Array
    """areas[j, k] = cₖ/(j + k + 1) (5, 5): ∫₀ᵘ vʲK(v) dv = uʲ⁺¹ Σₖ areas[j, k]uᵏ for 0 ≤ u ≤ 1."""


@cache
def polynomial(kernel: Kernel) -> Array | None:
    """Return the kernel's polynomial in |u| (5,), constant first, or None if it has no such."""
    if not isinstance(kernel, CompactKernel) or not _is_its_polynomial(kernel):
        return None
    given = np.asarray(kernel.coefficients, dtype=np.float64)
    if given[_COEFFICIENTS:].any():
        return None
    c = np.zeros(_COEFFICIENTS)
    c[: len(given)] = given[:_COEFFICIENTS]
    return c


@cache
def power_form(kernel: Kernel) -> PowerForm | None:
    """Return the kernel's polynomial in r, or None if it has none."""
    c = polynomial(kernel)
    if c is None:
        return None
    for gamma in (2, 1):
        s = c[::gamma][:_TERMS]
        if np.count_nonzero(s) == np.count_nonzero(c):
            # Σ sₖ(1 − r)ᵏ, expanded.
            kappa = np.array([s.sum(), -(s[1] + 2.0 * s[2]), s[2]])
            j, k = np.indices((_COEFFICIENTS, _COEFFICIENTS))
            return PowerForm(kappa, gamma, c / (j + k + 1))
    return None


@cache
def middle_polynomial(kernel: Kernel, boundary: Boundary) -> Array:
    """Return c (3,) of the boundary kernel K(u)(c₀ + c₁u + c₂u²) far from the bounds."""
    c = np.array([1.0, 0.0, 0.0])
    if boundary is Boundary.QUADRATIC:
        c[:] = far_from_bounds(kernel, boundary)[0]
    return c


def _is_its_polynomial(kernel: CompactKernel) -> bool:
    """Whether K, its slope and its integrals are left as the coefficients define them."""
    names = ("__call__", "derivative", "antiderivative", "moment")
    return leaves(kernel, names, of=CompactKernel) and kernel.support == CompactKernel.support


# The Epanechnikov kernel, the default: least mean squared error among second-order kernels.


@dataclass(frozen=True, slots=True)
class Epanechnikov(CompactKernel):
    """K(u) = ¾(1 − u²) on |u| ≤ 1."""

    coefficients: ClassVar[tuple[float, ...]] = (3 / 4, 0.0, -3 / 4)
    second_moment: ClassVar[float] = 1 / 5
    roughness: ClassVar[float] = 3 / 5
    bound: ClassVar[float] = 3 / 4
    lipschitz: ClassVar[float] = 3 / 2


# The triangular kernel: piecewise linear, so a policy search with it is a series of LPs.


@dataclass(frozen=True, slots=True)
class Triangular(CompactKernel):
    """K(u) = 1 − |u| on |u| ≤ 1."""

    coefficients: ClassVar[tuple[float, ...]] = (1.0, -1.0)
    second_moment: ClassVar[float] = 1 / 6
    roughness: ClassVar[float] = 2 / 3
    bound: ClassVar[float] = 1.0
    lipschitz: ClassVar[float] = 1.0


# The biweight (quartic) kernel: smoother at the edge than Epanechnikov.


@dataclass(frozen=True, slots=True)
class Biweight(CompactKernel):
    """K(u) = 15/16 (1 − u²)² on |u| ≤ 1."""

    coefficients: ClassVar[tuple[float, ...]] = (15 / 16, 0.0, -15 / 8, 0.0, 15 / 16)
    second_moment: ClassVar[float] = 1 / 7
    roughness: ClassVar[float] = 5 / 7
    bound: ClassVar[float] = 15 / 16
    lipschitz: ClassVar[float] = 5 * math.sqrt(3) / 6


# The uniform (boxcar) kernel: an average of all rows within one bandwidth.


@dataclass(frozen=True, slots=True)
class Uniform(CompactKernel):
    """K(u) = ½ on |u| ≤ 1; it jumps at the edge, so it has no slope to follow in a search."""

    coefficients: ClassVar[tuple[float, ...]] = (1 / 2,)
    second_moment: ClassVar[float] = 1 / 3
    roughness: ClassVar[float] = 1 / 2
    bound: ClassVar[float] = 1 / 2
    lipschitz: ClassVar[float] = math.inf
