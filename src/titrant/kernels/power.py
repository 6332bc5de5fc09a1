"""Kernels as polynomials of the distance to their own edge: the form that compiled loops take.

    K(u) = κ₀ + κ₁r + κ₂r²  on |u| ≤ 1,  r = 1 − |u|^γ,  γ = 1 or 2.

r is small where K is, so it keeps all digits at the edge; and from one bandwidth to a wider one
it only shrinks toward 1: r' = (1 − ρ) + ρr with ρ = (h/h')^γ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from titrant.kernels.base import CompactKernel
from titrant.kernels.boundary import Boundary, far_from_bounds

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.kernels.base import Kernel

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
    """Whether the class left K, its slope and its integrals as its coefficients define them."""
    own, base = type(kernel), CompactKernel
    names = ("__call__", "derivative", "antiderivative", "moment")
    same = all(getattr(own, name) is getattr(base, name) for name in names)
    return same and kernel.support == base.support
