"""Weights w = K*(u)/(h·q) of a chunk of rows, for kernels that are polynomials in 1 − |u|^γ.

A kernel is κ (3,) and γ: K(u) = κ₀ + κ₁r + κ₂r² on |u| ≤ 1 with r = 1 − |u|^γ, γ = 1 or 2. That
is uniform, triangular, Epanechnikov and biweight. The kernel's edge loses no digits: for γ = 2,
r = (h − a)(h + a)/h² with a = |t − τ|. See `titrant.kernels.boundary` for what is done at bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast
from titrant.compiled.flags import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.compiled.flags import Flags

    Index = NDArray[np.int64]

CHUNK = 512
"""Rows that are taken through all steps together: they stay in the fastest cache."""
ROOM = 4
"""Rows of scratch that `set_weights` needs."""


@compiled
def set_weights(
    t: Array,
    tau: Array,
    q: Array,
    bounds: Array,
    shared: bool,
    h: float,
    kappa: Array,
    gamma: int,
    degree: int,
    areas: Array,
    middle: Array,
    room: Array,
    flags: Flags,
    which: Index,
    w: Array,
) -> None:
    """Set w (B,) to K*(u)/(h·q), K* the kernel that reproduces polynomials up to ``degree``.

    Degree −1 is K itself. bounds (2, ≥ B) of the dose, or (0, …) where there are none, ``shared``
    if they are the same in all rows; areas
    (5, 5) and middle (3,) as in `titrant.kernels.power`; room (4, ≥ B), flags and which (≥ B,)
    are scratch. The rows near a bound are gathered, so that the loops over them vectorize.
    """
    near = 0
    _plain(t, tau, q, h, kappa, 1.0 / h if gamma == 2 else 0.0, w)  # noqa: PLR2004
    if degree >= 0 and len(bounds) > 0:
        near = _gather(t, tau, bounds[0], bounds[1], shared, h, w, room, flags, which)
    if near > 0:
        u, left, right, value = room[0][:near], room[1][:near], room[2][:near], room[3][:near]
        if degree < 2:  # noqa: PLR2004
            linear(u, left, right, areas, degree, value)
        else:
            quadratic(u, left, right, areas, value)
    if degree > 1:
        _order_four(t, tau, h, middle[0], middle[2], w)
    for j in range(near):
        w[which[j]] = room[3, j]


@compiled
def all_weights(
    t: Array,
    tau: Array,
    q: Array,
    bounds: Array,
    h: float,
    kappa: Array,
    gamma: int,
    degree: int,
    areas: Array,
    middle: Array,
    w: Array,
) -> None:
    """Set w (n,) chunk by chunk; bounds are (2, n), (2, 1) or (2, 0)."""
    room, which = np.empty((ROOM, CHUNK)), np.empty(CHUNK, dtype=np.int64)
    edges, flags = np.empty((2, CHUNK)), np.empty(CHUNK, dtype=np.uint8)
    for start in range(0, len(w), CHUNK):
        stop = min(start + CHUNK, len(w))
        set_weights(
            t[start:stop],
            tau[start:stop],
            q[start:stop],
            bounds_of(bounds, start, stop, edges),
            bounds.shape[1] == 1,
            h,
            kappa,
            gamma,
            degree,
            areas,
            middle,
            room,
            flags,
            which,
            w[start:stop],
        )


@fast
def _plain(t: Array, tau: Array, q: Array, h: float, kappa: Array, slope: float, w: Array) -> None:
    """Set w (B,) to K(u)/(h·q): r = (h − a)(1 + slope·a)/h."""
    unit = 1.0 / h
    k0, k1, k2 = kappa[0] * unit, kappa[1] * unit, kappa[2] * unit
    for i in range(len(w)):
        a = abs(t[i] - tau[i])
        r = (h - a) * (unit + unit * slope * a)
        w[i] = (k0 + r * (k1 + r * k2)) / q[i] if r >= 0.0 else 0.0


@fast
def _order_four(t: Array, tau: Array, h: float, c0: float, c2: float, w: Array) -> None:
    """Multiply w (B,) by c₀ + c₂u², the polynomial of the local quadratic kernel off the bounds."""
    unit = c2 / (h * h)
    for i in range(len(w)):
        a = t[i] - tau[i]
        w[i] *= c0 + unit * a * a


@compiled
def _gather(
    t: Array,
    tau: Array,
    lower: Array,
    upper: Array,
    shared: bool,
    h: float,
    w: Array,
    room: Array,
    flags: Flags,
    which: Index,
) -> int:
    """Return how many rows with a weight are near a bound; set room[:4] to their u, −L, U and w.

    −L and U are cut to [0, 1]: a bound that the dose has passed counts as one at the dose.
    """
    unit = 1.0 / h
    if shared:
        flag_near_shared(tau, lower[0], upper[0], h, w, flags)
    else:
        flag_near(tau, lower, upper, h, w, flags)
    near = listed(flags, len(w), which)
    for j in range(near):
        i = which[j]
        room[0, j] = (t[i] - tau[i]) * unit
        room[1, j] = min(max((tau[i] - lower[i]) * unit, 0.0), 1.0)
        room[2, j] = min(max((upper[i] - tau[i]) * unit, 0.0), 1.0)
        room[3, j] = w[i]
    return near


@fast
def flag_near(tau: Array, lower: Array, upper: Array, h: float, w: Array, flags: Flags) -> None:
    """Flag the rows with a weight whose dose is within h of a bound."""
    for i in range(len(w)):
        flags[i] = (w[i] != 0.0) & ((tau[i] - lower[i] < h) | (upper[i] - tau[i] < h))


@fast
def flag_near_shared(
    tau: Array, lower: float, upper: float, h: float, w: Array, flags: Flags
) -> None:
    """Flag the same where all rows share the bounds."""
    for i in range(len(w)):
        flags[i] = (w[i] != 0.0) & ((tau[i] - lower < h) | (upper - tau[i] < h))


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


@compiled
def bounds_of(bounds: Array, start: int, stop: int, edges: Array) -> Array:
    """Return the bounds of a chunk (2, ≥ B), or none (0, …)."""
    if bounds.shape[1] == 0:
        return edges[:0]
    for side in range(2):
        out = edges[side][: stop - start]
        if bounds.shape[1] > 1:
            copy(bounds[side][start:stop], out)
        elif start == 0:
            out[:] = bounds[side, 0]
    return edges


@compiled
def copy(a: Array, out: Array) -> None:
    """Set out (B,) to a."""
    for i in range(len(out)):
        out[i] = a[i]
