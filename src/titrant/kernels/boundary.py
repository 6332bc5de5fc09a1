"""Kernels near a bound: the local polynomial kernel on the interval that is there.

Where doses live in [lo, hi], part of a kernel centered at τ may hang over the edge. With
v = (t − τ)/h the weight that reproduces polynomials of degree p exactly on the interval
[L, U] = [(lo − τ)/h, (hi − τ)/h] is

    K*(v) = K(v)(c₀ + c₁v + … + c_p vᵖ),  Ac = e₀,  A_ij = a_{i+j} = ∫ vⁱ⁺ʲK(v) dv over [L, U].

- p = 0 is the mass factor 1/α, α = F_K(U) − F_K(L); a bias of order h remains.
- p = 1 is the linear boundary kernel K(v)(a₂ − a₁v)/(a₀a₂ − a₁²); bias of order h².
- p = 2 is the kernel of order four (also in the interior) on which bias-corrected intervals rest.

Far from both bounds p = 0 and p = 1 are K itself. A dose outside the bounds is given the polynomial
of one at the bound (L = 0 or U = 0): extrapolating would need weights that grow without limit,
and none exist once K has left the interval. Such weights fade to 0 as τ moves away.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.kernels.base import Kernel


class Boundary(IntEnum):
    """The degree of polynomial that a kernel reproduces at a bound."""

    NONE = -1
    """No correction: the kernel hangs over the edge (biased; for comparison)."""
    MASS = 0
    """Divide by the kernel's mass inside the bounds."""
    LINEAR = 1
    """The linear boundary kernel, the default."""
    QUADRATIC = 2
    """The local quadratic kernel, of order four everywhere; for bias correction."""


NO_LOW, NO_HIGH = np.array([-np.inf]), np.array([np.inf])
"""Ends of the whole line, for all rows."""


def local_factor(
    kernel: Kernel, boundary: Boundary, v: Array, low: Array = NO_LOW, high: Array = NO_HIGH
) -> Array | float:
    """Return K*(v)/K(v), the polynomial that corrects the kernel, elementwise (see the module).

    All arrays are (n,), [low, high] in units of h.
    """
    if boundary is Boundary.NONE:
        return 1.0
    return _polynomial(_coefficients(kernel, boundary, low, high), v)


def local_kernel_slope(
    kernel: Kernel, boundary: Boundary, v: Array, low: Array = NO_LOW, high: Array = NO_HIGH
) -> tuple[Array, Array]:
    """Return K*(v) and h·∂K*/∂τ, elementwise.

    Moving τ by dτ moves v, L and U by −dτ/h, so
    h·∂K*/∂τ = −(K′(v)·P(v) + K(v)·P′(v)) + K(v)·Ṗ(v), with ċ = −A⁻¹Ȧc and
    ȧ_j = −(UʲK(U) − LʲK(L)).
    """
    value, slope = kernel(v), kernel.derivative(v)
    if boundary is Boundary.NONE:
        return value, -slope
    c = _coefficients(kernel, boundary, low, high)
    c_dot = _coefficient_slopes(kernel, boundary, low, high, c)
    p, p_slope = _polynomial(c, v), _polynomial(_derivative(c), v)
    return value * p, value * (_polynomial(c_dot, v) - p_slope) - slope * p


def _polynomial(c: Array, v: Array) -> Array:
    """Return Σₖ c[:, k] vᵏ by Horner's rule; c (n, p+1) or the same (1, p+1) for all, v (n,)."""
    total = np.zeros_like(v)
    for k in reversed(range(c.shape[1])):
        total = total * v + c[:, k]
    return total


def _derivative(c: Array) -> Array:
    """Return the coefficients (n, p) of the derivative of a polynomial (n, p+1)."""
    return c[:, 1:] * np.arange(1, c.shape[1])


def _cut_rows(kernel: Kernel, low: Array, high: Array) -> NDArray[np.intp]:
    """Return which rows have part of the kernel's support outside [low, high]."""
    return np.flatnonzero((low > -kernel.support) | (high < kernel.support))


def _coefficients(kernel: Kernel, boundary: Boundary, low: Array, high: Array) -> Array:
    """Return c (n, p+1) of each row; (1, p+1) for all where none is near a bound."""
    cut = _cut_rows(kernel, low, high)
    everywhere = far_from_bounds(kernel, boundary)
    if not cut.size:
        return everywhere
    c: Array = np.tile(everywhere, (len(low), 1))
    c[cut] = _solve(kernel, boundary, low[cut], high[cut])
    return c


@cache
def far_from_bounds(kernel: Kernel, boundary: Boundary) -> Array:
    """Return c (1, p+1) of the whole line: the same for every row."""
    return _solve(kernel, boundary, NO_LOW, NO_HIGH)


def _solve(kernel: Kernel, boundary: Boundary, low: Array, high: Array) -> Array:
    """Return c = A⁻¹e₀, shape (n, p+1)."""
    a = _matrix(kernel, boundary, low, high)
    e0 = np.zeros((len(low), boundary + 1, 1))
    e0[:, 0] = 1.0
    return np.asarray(np.linalg.solve(a, e0)[:, :, 0])


def _coefficient_slopes(
    kernel: Kernel, boundary: Boundary, low: Array, high: Array, c: Array
) -> Array:
    """Return h·∂c/∂τ = −A⁻¹(h·∂A/∂τ)c, shape (n, p+1); zero far from the bounds."""
    slopes = np.zeros_like(c)
    cut = _cut_rows(kernel, low, high)
    if not cut.size:
        return slopes
    low, high = low[cut], high[cut]
    a = _matrix(kernel, boundary, low, high)
    # A bound that τ has passed is held at 0 and does not move with τ: as if it were at infinity.
    left, right = np.where(low > 0.0, -np.inf, low), np.where(high < 0.0, np.inf, high)
    a_dot = _hankel(
        [_edge(kernel, j, left) - _edge(kernel, j, right) for j in range(2 * boundary + 1)],
        boundary,
    )
    slopes[cut] = -np.linalg.solve(a, a_dot @ c[cut][:, :, None])[:, :, 0]
    return slopes


def _matrix(kernel: Kernel, boundary: Boundary, low: Array, high: Array) -> Array:
    """Return A (n, p+1, p+1) of intervals that reach τ itself (see the module)."""
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    return _hankel([kernel.moment(j, low, high) for j in range(2 * boundary + 1)], boundary)


def _edge(kernel: Kernel, j: int, u: Array) -> Array:
    """Return uʲK(u), which is 0 where K is: no ∞·0 at a bound far away."""
    value = kernel(u)
    return np.where(value > 0.0, u, 0.0) ** j * value


def _hankel(moments: list[Array], boundary: Boundary) -> Array:
    """Return the matrices A (n, p+1, p+1) with A_ij = moments[i + j]."""
    size = boundary + 1
    return np.stack(
        [np.stack([moments[i + j] for j in range(size)], axis=-1) for i in range(size)], axis=-2
    )
