"""Weights w = K*(u)/(h·q) of rows, and their slopes, for kernels that are polynomials in |u|.

A kernel is κ (3,) and γ: K(u) = κ₀ + κ₁r + κ₂r² on |u| ≤ 1 with r = 1 − |u|^γ, γ = 1 or 2. That
is uniform, triangular, Epanechnikov and biweight. The kernel's edge loses no digits: for γ = 2,
r = (h − a)(h + a)/h² with a = |t − τ|. See `titrant.kernels.boundary` for what is done at bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast, inlined, listed

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.compiled.decorators import Flags, Index

    Constants = tuple[float, float, float, float, float, float, float, float]
    Columns = tuple[Array, Array, Array, Array]
    """t, τ, q and bounds."""
    Form = tuple[float, Array, int, int, Array, Array]
    """h, κ, γ, degree, areas and middle."""
    Ends = tuple[float, float]


CHUNK = 512
"""Rows that are taken through all steps together: what is kept of them stays in the cache."""
PLAIN = np.array([1.0, 0.0, 0.0])
"""The polynomial by which a kernel is multiplied to stay as it is."""


@inlined
def far_weight(a: float, q: float, k: Constants) -> float:
    """Return K(u)(c₀ + c₂u²)/(h·q), u = a/h: the weight of a row off the bounds."""
    r = (k[0] - a) * (k[1] + k[2] * a)
    return (k[3] + r * (k[4] + r * k[5])) * (k[6] + k[7] * a * a) / q if r >= 0.0 else 0.0


@compiled
def constants(h: float, kappa: Array, gamma: int, middle: Array) -> Constants:
    """Return what `far_weight` needs of h, κ and c, so that it neither divides nor takes powers.

    r = (h − a)(1/h + a/h²) for γ = 2, (h − a)/h for γ = 1.
    """
    unit = 1.0 / h
    bend = unit * unit if gamma == 2 else 0.0  # noqa: PLR2004
    k0, k1, k2 = kappa[0] * unit, kappa[1] * unit, kappa[2] * unit
    return h, unit, bend, k0, k1, k2, middle[0], middle[2] * unit * unit


@compiled
def all_weights(columns: Columns, form: Form, w: Array) -> None:
    """Set w (n,) to K*(u)/(h·q), K* the kernel that reproduces polynomials up to ``degree``.

    Degree −1 is K itself. bounds are (2, n), (2, 1) where all rows share them, or (2, 0); areas
    (5, 5) and middle (3,) as in `titrant.kernels.polynomial`. The rows near a bound are gathered,
    so that the loops over them vectorize.
    """
    t, tau, q, bounds = columns
    h, kappa, gamma, degree, areas, middle = form
    near, flags = np.zeros(CHUNK, dtype=np.uint8), np.empty(CHUNK, dtype=np.uint8)
    which = np.empty(CHUNK, dtype=np.int64)
    shape, value = np.empty((3, CHUNK)), np.empty(CHUNK)
    k = constants(h, kappa, gamma, middle)
    plain = constants(h, kappa, gamma, PLAIN)
    apart, low, high = ranges(bounds, degree, h)
    for start in range(0, len(w), CHUNK):
        stop = min(start + CHUNK, len(w))
        rows = slice(start, stop)
        if apart:
            flag_near(tau[rows], bounds[0][rows], bounds[1][rows], h, near)
        far_weights(t[rows], tau[rows], q[rows], k, low, high, near, flags, w[rows])
        count = listed(flags, stop - start, which)
        if count > 0:
            set_shapes(t, tau, q, bounds, plain, start, which[:count], shape, value)
            correct(shape, degree, areas, value[:count])
            for j in range(count):
                w[start + which[j]] = value[j]


@fast
def far_weights(
    t: Array,
    tau: Array,
    q: Array,
    k: Constants,
    low: float,
    high: float,
    near: Flags,
    flags: Flags,
    w: Array,
) -> None:
    """Set w (B,) as it is off the bounds, and flag rows with a weight that are near one."""
    for i in range(len(w)):
        w[i] = far_weight(abs(t[i] - tau[i]), q[i], k)
        flags[i] = ((tau[i] < low) | (tau[i] > high) | (near[i] != 0)) & (w[i] != 0.0)


@compiled
def ranges(bounds: Array, degree: int, h: float) -> tuple[bool, float, float]:
    """Return whether each row has bounds of its own, and if not, which doses are far from them."""
    if degree >= 0 and bounds.shape[1] == 1:
        return False, bounds[0, 0] + h, bounds[1, 0] - h
    return degree >= 0 and bounds.shape[1] > 1, -np.inf, np.inf


@fast
def flag_near(tau: Array, lower: Array, upper: Array, h: float, near: Flags) -> None:
    """Flag the rows (B,) whose dose is within h of a bound of their own."""
    for i in range(len(tau)):
        near[i] = (tau[i] < lower[i] + h) | (tau[i] > upper[i] - h)


@compiled
def set_shapes(
    t: Array,
    tau: Array,
    q: Array,
    bounds: Array,
    plain: Constants,
    start: int,
    which: Index,
    shape: Array,
    value: Array,
) -> None:
    """Set shape (3, ≥ N) to u, −L, U and value to K(u)/(h·q) of the rows start + which (N,).

    −L and U are cut to [0, 1]: a bound that the dose has passed counts as one at the dose.
    """
    unit, shared = plain[1], bounds.shape[1] == 1
    for j in range(len(which)):
        i = start + which[j]
        side = 0 if shared else i
        shape[0, j] = (t[i] - tau[i]) * unit
        shape[1, j] = min(max((tau[i] - bounds[0, side]) * unit, 0.0), 1.0)
        shape[2, j] = min(max((bounds[1, side] - tau[i]) * unit, 0.0), 1.0)
        value[j] = far_weight(abs(t[i] - tau[i]), q[i], plain)


@compiled
def correct(shape: Array, degree: int, areas: Array, value: Array) -> None:
    """Multiply value (N,) by the polynomial that makes K reproduce polynomials near a bound."""
    n = len(value)
    if degree < 2:  # noqa: PLR2004
        linear(shape[0][:n], shape[1][:n], shape[2][:n], areas, degree, value)
    else:
        quadratic(shape[0][:n], shape[1][:n], shape[2][:n], areas, value)


@fast
def linear(u: Array, left: Array, right: Array, areas: Array, degree: int, value: Array) -> None:
    """Multiply K (N,) by (a₂ − a₁u)/(a₀a₂ − a₁²), or by 1/a₀ for degree 0.

    a_j = ∫ vʲK(v) dv over [−left, right], both in [0, 1].
    """
    on = 1.0 if degree > 0 else 0.0
    p0, p1, p2, p3, p4 = areas[0, 0], areas[0, 1], areas[0, 2], areas[0, 3], areas[0, 4]
    q0, q1, q2, q3, q4 = areas[1, 0], areas[1, 1], areas[1, 2], areas[1, 3], areas[1, 4]
    r0, r1, r2, r3, r4 = areas[2, 0], areas[2, 1], areas[2, 2], areas[2, 3], areas[2, 4]
    for i in range(len(value)):
        a, b = left[i], right[i]
        a0 = a * (p0 + a * (p1 + a * (p2 + a * (p3 + a * p4))))
        a0 += b * (p0 + b * (p1 + b * (p2 + b * (p3 + b * p4))))
        a1 = b * b * (q0 + b * (q1 + b * (q2 + b * (q3 + b * q4))))
        a1 -= a * a * (q0 + a * (q1 + a * (q2 + a * (q3 + a * q4))))
        a2 = a * a * a * (r0 + a * (r1 + a * (r2 + a * (r3 + a * r4))))
        a2 += b * b * b * (r0 + b * (r1 + b * (r2 + b * (r3 + b * r4))))
        a1 *= on
        value[i] *= (a2 - a1 * u[i]) / (a0 * a2 - a1 * a1)


@fast
def quadratic(u: Array, left: Array, right: Array, areas: Array, value: Array) -> None:
    """Multiply K (N,) by the polynomial whose coefficients are the first row of A⁻¹ (cofactors)."""
    for i in range(len(value)):
        a0 = _moment(areas, 0, left[i], right[i], 1.0)
        a1 = _moment(areas, 1, left[i], right[i], -1.0)
        a2 = _moment(areas, 2, left[i], right[i], 1.0)
        a3 = _moment(areas, 3, left[i], right[i], -1.0)
        a4 = _moment(areas, 4, left[i], right[i], 1.0)
        c0, c1, c2 = a2 * a4 - a3 * a3, a2 * a3 - a1 * a4, a1 * a3 - a2 * a2
        value[i] *= (c0 + u[i] * (c1 + u[i] * c2)) / (a0 * c0 + a1 * c1 + a2 * c2)


@fast
def _moment(areas: Array, j: int, a: float, b: float, sign: float) -> float:
    """Return a_j = ∫ vʲK(v) dv over [−a, b], both in [0, 1]; sign is (−1)ʲ."""
    above = below = 0.0
    for k in range(4, -1, -1):
        above = above * b + areas[j, k]
        below = below * a + areas[j, k]
    for _ in range(j + 1):
        above *= b
        below *= a
    return above + sign * below


# ── Weights and their slopes in the dose ──────────────────────────────────────────────────────────
# A policy search reads every row at hundreds of doses, and needs ∂w/∂τ beside w. There a compact
# kernel comes as five coefficients, constant first: K(v) = Σₖ cₖ|v|ᵏ on |v| ≤ 1. The policy's dose
# is τ cut to [low, high]; where it is cut it does not move, and all slopes are 0.


@fast
def set_weights(
    t: Array, g: Array, tau: Array, ends: Ends, h: float, c: Array, w: Array, dw: Array
) -> None:
    """Set w = g·K((t − τ)/h) and ∂w/∂τ, each (B,); without branches, so that it vectorizes."""
    (low, high), r = ends, 1.0 / h
    c0, c1, c2, c3, c4 = c[0], c[1], c[2], c[3], c[4]
    d1, d2, d3 = 2.0 * c2, 3.0 * c3, 4.0 * c4
    for i in range(len(t)):
        raw = tau[i]
        v = (t[i] - min(max(raw, low), high)) * r
        a = abs(v)
        scale = g[i] if a <= 1.0 else 0.0
        w[i] = scale * (c0 + a * (c1 + a * (c2 + a * (c3 + a * c4))))
        moving = 0.0 if (raw <= low or raw >= high or v == 0.0) else scale * r
        slope = moving * (c1 + a * (d1 + a * (d2 + a * d3)))
        dw[i] = slope if v < 0.0 else -slope


@compiled
def set_weights_near_bounds(
    t: Array,
    g: Array,
    tau: Array,
    ends: Ends,
    h: float,
    c: Array,
    degree: int,
    bounds: Array,
    w: Array,
    dw: Array,
) -> None:
    """Replace w and ∂w/∂τ (B,) of rows within h of a bound (2, B) by the boundary kernel's."""
    low, high = ends
    for i in range(len(t)):
        dose = min(max(tau[i], low), high)
        left, right, v = (bounds[0, i] - dose) / h, (bounds[1, i] - dose) / h, (t[i] - dose) / h
        # Rows that fill the last block have g = 0 and no bounds to speak of.
        if abs(v) <= 1.0 and (left > -1.0 or right < 1.0) and g[i] > 0.0:
            value, slope = local_kernel_slope(c, degree, v, left, right)
            w[i] = g[i] * value
            dw[i] = g[i] * slope / h if low < tau[i] < high else 0.0


@compiled
def local_kernel_slope(
    c: Array, degree: int, v: float, low: float, high: float
) -> tuple[float, float]:
    """Return K*(v) and h·∂K*/∂τ for |v| ≤ 1 (see `titrant.kernels.boundary`); degree 0 or 1.

    A bound that the dose has passed is held at 0 and does not move with it.
    """
    value, slope = kernel_value(c, v), kernel_slope(c, v)
    left = kernel_value(c, low) if low <= 0.0 else 0.0
    right = kernel_value(c, high) if high >= 0.0 else 0.0
    lo, hi = max(min(low, 0.0), -1.0), min(max(high, 0.0), 1.0)
    a0, d0 = kernel_area(c, 0, hi) - kernel_area(c, 0, lo), left - right
    if degree == 0:
        return value / a0, -slope / a0 - value * d0 / a0**2
    a1, d1 = kernel_area(c, 1, hi) - kernel_area(c, 1, lo), lo * left - hi * right
    a2, d2 = kernel_area(c, 2, hi) - kernel_area(c, 2, lo), lo * lo * left - hi * hi * right
    det = a0 * a2 - a1 * a1
    ddet = d0 * a2 + a0 * d2 - 2.0 * a1 * d1
    c0, c1 = a2 / det, -a1 / det
    dc0, dc1 = (d2 - c0 * ddet) / det, (-d1 - c1 * ddet) / det
    p = c0 + c1 * v
    return value * p, value * (dc0 + dc1 * v - c1) - slope * p


@compiled
def kernel_value(c: Array, v: float) -> float:
    """Return K(v)."""
    a = abs(v)
    return c[0] + a * (c[1] + a * (c[2] + a * (c[3] + a * c[4]))) if a <= 1.0 else 0.0


@compiled
def kernel_slope(c: Array, v: float) -> float:
    """Return K′(v) for |v| ≤ 1; 0 at a corner."""
    a = abs(v)
    slope = c[1] + a * (2.0 * c[2] + a * (3.0 * c[3] + a * 4.0 * c[4]))
    return slope if v > 0.0 else (-slope if v < 0.0 else 0.0)


@compiled
def kernel_area(c: Array, j: int, u: float) -> float:
    """Return ∫₀ᵘ vʲK(v) dv for |u| ≤ 1."""
    a = abs(u)
    total = 0.0
    for k in range(len(c) - 1, -1, -1):
        total = total * a + c[k] / (j + k + 1)
    value = total * a ** (j + 1)
    return -value if (u < 0.0 and j % 2 == 0) else value
