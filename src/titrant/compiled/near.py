"""Rows near a bound: summed at every bandwidth that reaches them.

There the kernel has another shape at every bandwidth. Rows are taken some at a time, in the order
of their first bandwidth, so that those in reach of a bandwidth are the first ones: all loops run
over rows side by side, and no product of two weights is computed that is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast, inlined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

    Index = NDArray[np.uint32]
    Triple = tuple[float, float, float]
    Gathered = tuple[Array, Array, Array, Array, Array, Array, Array]
    """t, τ, q, bounds, y, b and level."""
    Form = tuple[Array, float, int, Array]
    """κ, bend, degree and areas."""

PIECE = 2048
"""Rows taken at a time: enough for long loops, few enough to stay in the cache."""
STRIDE = 16
"""Loops run over a multiple of so many rows: what is left over would go one by one."""


@compiled
def add_piece(
    which: Index,
    bin_of: Index,
    rows: Gathered,
    center: float,
    h: Array,
    form: Form,
    joint: bool,
    room: Array,
    w: Array,
    first: Array,
    second: Array,
) -> None:
    """Add some rows to first (m, 8) and, if ``joint``, their products to second (3, m, m).

    ``bin_of`` (N,) is the first bandwidth in reach; see `titrant.compiled.path.add_rows`. room
    (6, ≥ N) and w (m, ≥ N), or (1, ≥ N) if not joint, are scratch.
    """
    n, m = len(which), len(h)
    ends, order = sort(bin_of, m)
    gather(which, order, rows, center, room)
    v, left, right, g, e, base = room[0], room[1], room[2], room[3], room[4], room[5]
    clear = right[:n].min()
    for j in range(m):
        if ends[j] > 0:
            weights = w[j if joint else 0][: padded(ends[j])]
            if h[j] <= clear:
                one_sided(v, left, g, h[j], form, weights)
            else:
                two_sided(v, left, right, g, h[j], form, weights)
            weights[ends[j] :] = 0.0
            add_sums(weights, e, first[j])
            if len(rows[5]) > 1:
                add_baselines(weights, e, base, first[j])
    if joint:
        add_products(w, e, ends, second)


@inlined
def padded(n: int) -> int:
    """Return the multiple of `STRIDE` at or above n."""
    return (n + STRIDE - 1) // STRIDE * STRIDE


@compiled
def sort(bin_of: Index, m: int) -> tuple[NDArray[np.int64], Index]:
    """Return how many rows are in reach of each bandwidth (m,) and the order (N,) of their bins."""
    ends, order = np.zeros(m, np.int64), np.empty(len(bin_of), np.uint32)
    for k in bin_of:
        ends[k] += 1
    for k in range(1, m):
        ends[k] += ends[k - 1]
    place = np.zeros(m, np.int64)
    place[1:] = ends[:-1]
    for j in range(len(bin_of)):
        k = bin_of[j]
        order[place[k]] = j
        place[k] += 1
    return ends, order


@compiled
def gather(which: Index, order: Index, rows: Gathered, center: float, room: Array) -> None:
    """Set room (6, ≥ N) to v, distances to the nearer and the farther bound, 1/q, e and b − center.

    v = t − τ points away from the nearer bound: what is near an upper bound is mirrored.
    """
    t, tau, q, bounds, y, b, level = rows
    own, has_level, has_b = bounds.shape[1] > 1, len(level) > 1, len(b) > 1
    for j in range(len(order)):
        i = which[order[j]]
        side = i if own else np.uint32(0)
        v, below, above = t[i] - tau[i], tau[i] - bounds[0, side], bounds[1, side] - tau[i]
        room[0, j] = v if below <= above else -v
        # A bound that the dose has passed counts as one at the dose.
        room[1, j], room[2, j] = max(min(below, above), 0.0), max(below, above, 0.0)
        room[3, j] = 1.0 / q[i]
        room[4, j] = y[i] - (level[i] if has_level else level[0])
        room[5, j] = b[i] - center if has_b else 0.0


@inlined
def half(a: float, bend: float, c: tuple[Triple, Triple, Triple]) -> Triple:
    """Return ∫ vʲK(v) dv over [0, a] for j = 0, 1, 2; K has powers of v^γ alone."""
    s = a * (a if bend > 0.0 else 1.0)
    c0, c1, c2 = c
    a0 = a * (c0[0] + s * (c0[1] + s * c0[2]))
    a1 = a * a * (c1[0] + s * (c1[1] + s * c1[2]))
    a2 = a * a * a * (c2[0] + s * (c2[1] + s * c2[2]))
    return a0, a1, a2


@inlined
def coefficients(areas: Array, bend: float, degree: int) -> tuple[Triple, Triple, Triple]:
    """Return the coefficients of `half` out of areas (5, 5), see `titrant.kernels.polynomial`.

    For degree 0 those of j = 1 are left out: the factor (a₂ − a₁u)/(a₀a₂ − a₁²) is then 1/a₀.
    """
    step, on = 2 if bend > 0.0 else 1, 1.0 if degree > 0 else 0.0
    return (
        (areas[0, 0], areas[0, step], areas[0, 2 * step]),
        (areas[1, 0] * on, areas[1, step] * on, areas[1, 2 * step] * on),
        (areas[2, 0], areas[2, step], areas[2, 2 * step]),
    )


@fast
def one_sided(v: Array, left: Array, g: Array, h: float, form: Form, w: Array) -> None:
    """Set w (N,) to g/h·K(u)(a₂ − a₁u)/(a₀a₂ − a₁²) where one bound is near.

    a_j = ∫ vʲK(v) dv over [−left/h, 1].
    """
    kappa, bend, degree, areas = form
    unit, c = 1.0 / h, coefficients(areas, bend, degree)
    k0, k1, k2, slope = kappa[0] * unit, kappa[1] * unit, kappa[2] * unit, bend * unit * unit
    f0, f1, f2 = half(1.0, bend, c)
    for i in range(len(w)):
        a = abs(v[i])
        r = (h - a) * (unit + slope * a)
        n0, n1, n2 = half(min(left[i] * unit, 1.0), bend, c)
        a0, a1, a2 = f0 + n0, f1 - n1, f2 + n2
        shape = (a2 - a1 * (v[i] * unit)) / (a0 * a2 - a1 * a1)
        w[i] = (k0 + r * (k1 + r * k2)) * g[i] * shape


@fast
def two_sided(
    v: Array, left: Array, right: Array, g: Array, h: float, form: Form, w: Array
) -> None:
    """Set w (N,) to the same where both bounds may be near: over [−left/h, right/h]."""
    kappa, bend, degree, areas = form
    unit, c = 1.0 / h, coefficients(areas, bend, degree)
    k0, k1, k2, slope = kappa[0] * unit, kappa[1] * unit, kappa[2] * unit, bend * unit * unit
    for i in range(len(w)):
        a = abs(v[i])
        r = (h - a) * (unit + slope * a)
        n0, n1, n2 = half(min(left[i] * unit, 1.0), bend, c)
        f0, f1, f2 = half(min(right[i] * unit, 1.0), bend, c)
        a0, a1, a2 = f0 + n0, f1 - n1, f2 + n2
        shape = (a2 - a1 * (v[i] * unit)) / (a0 * a2 - a1 * a1)
        w[i] = (k0 + r * (k1 + r * k2)) * g[i] * shape


@fast
def add_sums(w: Array, e: Array, out: Array) -> None:
    """Add Σw·(1, e), Σw²·(1, e, e²) and the count of weights (N,) to out (8,)."""
    w1 = we = w2 = w2e = w2ee = 0.0
    count = 0
    for i in range(len(w)):
        x, z = w[i], w[i] * e[i]
        w1 += x
        we += z
        w2 += x * x
        w2e += x * z
        w2ee += z * z
        count += x != 0.0
    out[0] += w1
    out[1] += we
    out[4] += w2
    out[5] += w2e
    out[6] += w2ee
    out[7] += count


@fast
def add_baselines(w: Array, e: Array, b: Array, out: Array) -> None:
    """Add Σw·(b, e·b) of rows (N,) to out (8,)."""
    wb = web = 0.0
    for i in range(len(w)):
        z = w[i] * b[i]
        wb += z
        web += z * e[i]
    out[2] += wb
    out[3] += web


@compiled
def add_products(w: Array, e: Array, ends: NDArray[np.int64], second: Array) -> None:
    """Add Σwⱼwₖ·(1, e, e²), j < k, to second (3, m, m); w (m, ≥ N), of which ends (m,) count.

    Rows in reach of h_j are in reach of h_k. Four bandwidths k are multiplied together.
    """
    m, out = len(ends), np.empty((3, 4))
    for j in range(m):
        n = padded(ends[j])
        if n > 0:
            for k in range(j + 1, m, 4):
                k1, k2, k3 = min(k + 1, m - 1), min(k + 2, m - 1), min(k + 3, m - 1)
                multiply(w[j][:n], w[k], w[k1], w[k2], w[k3], e, out)
                for i in range(min(4, m - k)):
                    for s in range(3):
                        second[s, j, k + i] += out[s, i]


@fast
def multiply(w: Array, w0: Array, w1: Array, w2: Array, w3: Array, e: Array, out: Array) -> None:
    """Set out (3, 4) to the sums of w·(1, e, e²) times each of four weights."""
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = c0 = c1 = c2 = c3 = 0.0
    for i in range(len(w)):
        x = w[i]
        y = x * e[i]
        z = y * e[i]
        a0 += x * w0[i]
        a1 += x * w1[i]
        a2 += x * w2[i]
        a3 += x * w3[i]
        b0 += y * w0[i]
        b1 += y * w1[i]
        b2 += y * w2[i]
        b3 += y * w3[i]
        c0 += z * w0[i]
        c1 += z * w1[i]
        c2 += z * w2[i]
        c3 += z * w3[i]
    out[0, 0], out[0, 1], out[0, 2], out[0, 3] = a0, a1, a2, a3
    out[1, 0], out[1, 1], out[1, 2], out[1, 3] = b0, b1, b2, b3
    out[2, 0], out[2, 1], out[2, 2], out[2, 3] = c0, c1, c2, c3
