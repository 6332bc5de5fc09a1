"""The bandwidth path in compiled loops: rows into bins, and bins into sums at every bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast, inlined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.compiled.weights import Columns

    Outcomes = tuple[Array, Array, Array]
    """y, b and r."""
    Index = NDArray[np.uint32]
    Seen = tuple[Array, Array, Array]
    """y, q and the level of some rows."""
    Triple = tuple[float, float, float]
    Gathered = tuple[Array, Array, Array, Array, Array, Array, Array]
    """t, τ, q, bounds, y, b and level."""
    Form = tuple[Array, float, int, Array]
    """κ, bend, degree and areas."""

# From bins to sums at every bandwidth, and to sums of products of two bandwidths' weights.
#
# From a bandwidth h to a wider one h' follows r' = (1 − ρ) + ρr with ρ = (h/h')^γ. All coefficients
# are positive, so no digits are lost.


@compiled
def step(h: float, wider: float, gamma: int) -> tuple[float, float]:
    """Return 1 − ρ and ρ; the first as a product, which loses nothing where h is close to h'."""
    ratio, gap = h / wider, (wider - h) / wider
    return (gap * (1.0 + ratio), ratio * ratio) if gamma == 2 else (gap, ratio)  # noqa: PLR2004


@compiled
def chained(bins: Array, h: Array, gamma: int) -> Array:
    """Return Σ…rˢ over all rows in reach of each bandwidth from those of its bin, (m, c, s).

    With T(a, b) = Σ…r'ᵃrᵇ: T(a + 1, b) = (1 − ρ)·T(a, b) + ρ·T(a, b + 1).
    """
    m, columns, size = bins.shape
    sums, mixed = bins.copy(), np.empty(size)
    for j in range(1, m):
        rest, rho = step(h[j - 1], h[j], gamma)
        for c in range(columns):
            for a in range(size):  # an assignment of arrays takes two seconds more to compile
                mixed[a] = sums[j - 1, c, a]
            sums[j, c, 0] += mixed[0]
            for a in range(1, size):
                for b in range(size - a):
                    mixed[b] = rest * mixed[b] + rho * mixed[b + 1]
                sums[j, c, a] += mixed[0]
    return sums


@compiled
def products(twice: Array, kappa: Array, h: Array, gamma: int) -> Array:
    """Return Σwⱼwₖ·(1, e, e²) (3, m, m) from sums of g²·(1, e, e²)·rˢ in reach (m, 3, 2p + 1)."""
    m, size = len(h), len(kappa)
    out, c = np.empty((3, m, m)), np.zeros((3, 3))
    for j in range(m):
        # Σ g²(1, e, e²)·wⱼ·rⁱ with the narrower one's r.
        for q in range(3):
            for i in range(size):
                c[q, i] = 0.0
                for s in range(size):
                    c[q, i] += kappa[s] * twice[j, q, s + i] / h[j]
        multiply_bins(h[j], h[j:], kappa, gamma, c, out[0, j, j:], out[1, j, j:], out[2, j, j:])
        for q in range(3):
            for k in range(j):
                out[q, j, k] = out[q, k, j]
    return out


@fast
def multiply_bins(
    narrow: float,
    h: Array,
    kappa: Array,
    gamma: int,
    c: Array,
    one: Array,
    two: Array,
    three: Array,
) -> None:
    """Set three sums at each of the wider bandwidths h (M,): c (3, 3) times the powers of r in wₖ.

    wₖ = Σκₛ(rest + ρr)ˢ/h, multiplied out.
    """
    k0, k1 = kappa[0], kappa[1] if len(kappa) > 1 else 0.0
    k2 = kappa[2] if len(kappa) > 2 else 0.0  # noqa: PLR2004
    for k in range(len(h)):
        rest, rho = step(narrow, h[k], gamma)
        w0 = (k0 + rest * (k1 + rest * k2)) / h[k]
        w1 = rho * (k1 + 2.0 * rest * k2) / h[k]
        w2 = rho * rho * k2 / h[k]
        one[k] = c[0, 0] * w0 + c[0, 1] * w1 + c[0, 2] * w2
        two[k] = c[1, 0] * w0 + c[1, 1] * w1 + c[1, 2] * w2
        three[k] = c[2, 0] * w0 + c[2, 1] * w1 + c[2, 2] * w2


# All bandwidths in one reading of the rows: each row goes into the bin of its own bandwidth.
#
# A row in reach of h_k but not of h_{k−1} is in reach of all wider bandwidths too. So it is entered
# once, in bin k, with the powers of r = 1 − (a/h_k)^γ that the kernel is made of; what is in reach
# of h_{k+1} follows from what is in reach of h_k by r' = (1 − ρ) + ρr (`titrant.compiled.path`).
# Near a bound the kernel has another shape at every bandwidth: see `titrant.compiled.path`.

CHUNK = 16384
"""Rows whose distances and bins are kept at a time."""
CUT = 44
"""Bits of a number that are cut off to look up its bin: 256 cells an octave are left."""


@compiled
def add_rows(
    columns: Columns,
    outcomes: Outcomes,
    center: float,
    grid: tuple[Array, Array, int, Index, int],
    form: tuple[Array, int, int, Array],
    joint: bool,
    sums: tuple[Array, Array, Array, Array],
) -> None:
    """Add rows to the bins (m, A), those of the baselines (m, B), and the sums near the bounds.

    With p the power of r in K and g = 1/q, a bin holds Σg·(1, e)·rˢ for s ≤ p, Σg²·(1, e, e²)·rˢ
    for s ≤ 2p and the count; those of the baselines Σg·(b, e·b)·rˢ, b measured from ``center`` and
    (1,) where all rows share it. Near a bound: Σw·(1, e, b, e·b), Σw²·(1, e, e²) and the count
    (m, 8) and, if ``joint``, Σwⱼwₖ·(1, e, e²) for j < k (3, m, m). A row is in reach of h (m,) when
    a < reach; ``cell``, ``table`` and ``crowd`` look up the first such bandwidth.
    """
    t, tau, q, bounds = columns
    y, b, r = outcomes
    (h, reach, cell, table, crowd), (kappa, gamma, degree, areas) = grid, form
    bins, baselines, first, second = sums
    m, power = len(h), baselines.shape[1] // 2 - 1
    bend = 1.0 if gamma == 2 else 0.0  # noqa: PLR2004
    a, which, bin_of = np.empty(CHUNK), np.empty(CHUNK, np.uint32), np.empty(CHUNK, np.uint32)
    near, near_bin = np.empty(CHUNK, np.uint32), np.empty(CHUNK, np.uint32)
    shape = (kappa, bend, degree, areas)
    room, w = np.zeros((6, PIECE)), np.zeros((m if joint else 1, PIECE))
    for start in range(0, len(t), CHUNK):
        rows = slice(start, min(start + CHUNK, len(t)))
        some, doses, values, density = t[rows], tau[rows], y[rows], q[rows]
        base, level = b[rows] if len(b) > 1 else b, r[rows] if len(r) > 1 else r
        limits = bounds[:, rows] if bounds.shape[1] > 1 else bounds
        count, aside = in_reach(some, doses, reach[-1], which), 0
        locate(some, doses, which[:count], reach, cell, table, crowd, a, bin_of)
        if degree >= 0 and bounds.shape[1] > 0:
            count, aside = set_aside(doses, limits, h[-1], count, which, a, bin_of, near, near_bin)
        members, seen = which[:count], (values, density, level)
        gathered = (some, doses, density, limits, values, base, level)
        if power == 1:
            enter_linear(members, bin_of, a, seen, h, bend, bins)
        else:
            enter(members, bin_of, a, seen, h, bend, power, bins)
        if len(b) > 1:
            enter_baselines(members, bin_of, a, seen, base, center, h, bend, baselines)
        for j in range(0, aside, PIECE):
            piece = slice(j, min(j + PIECE, aside))
            mine, bins_of_mine = near[piece], near_bin[piece]
            add_piece(mine, bins_of_mine, gathered, center, h, shape, joint, room, w, first, second)


@compiled
def in_reach(t: Array, tau: Array, widest: float, which: Index) -> int:
    """Set which to the rows with |t − τ| < widest; return how many there are."""
    count = 0
    for i in range(len(t)):
        # Written in any case, counted if it belongs: a branch would be mispredicted.
        which[count] = i
        count += abs(t[i] - tau[i]) < widest
    return count


@compiled
def locate(
    t: Array,
    tau: Array,
    which: Index,
    reach: Array,
    cell: int,
    table: Index,
    crowd: int,
    a: Array,
    bin_of: Index,
) -> None:
    """Set a to |t − τ| of some rows and bin_of to the first bandwidth that reaches them.

    ``table`` tells for each cell of leading bits from ``cell`` on the first bandwidth that may
    reach it; ``crowd`` bandwidths at most are in one cell. No branch depends on a row, and
    unsigned numbers index arrays without a look at their sign.
    """
    cells, last = a.view(np.int64), len(table) - 1
    for j in range(len(which)):
        i = which[j]
        a[j] = abs(t[i] - tau[i])
    for j in range(len(which)):
        k = table[np.uint64(min(max((cells[j] >> CUT) - cell, 0), last))]
        bin_of[j] = k + np.uint32(a[j] >= reach[k])
    for _ in range(1, crowd):
        for j in range(len(which)):
            k = bin_of[j]
            bin_of[j] = k + np.uint32(a[j] >= reach[k])


@compiled
def set_aside(
    tau: Array,
    bounds: Array,
    widest: float,
    count: int,
    which: Index,
    a: Array,
    bin_of: Index,
    near: Index,
    near_bin: Index,
) -> tuple[int, int]:
    """Move rows within the widest bandwidth of a bound to near; return how many stay and go."""
    kept, aside, own = 0, 0, bounds.shape[1] > 1
    for j in range(count):
        i, k = which[j], bin_of[j]
        side = i if own else np.uint32(0)
        close = (tau[i] - bounds[0, side] < widest) | (bounds[1, side] - tau[i] < widest)
        which[kept], a[kept], bin_of[kept] = i, a[j], k
        near[aside], near_bin[aside] = i, k
        aside += close
        kept += not close
    return kept, aside


@compiled
def enter_linear(
    which: Index, bin_of: Index, a: Array, seen: Seen, h: Array, bend: float, bins: Array
) -> None:
    """Enter rows where K is linear in r: `enter` for p = 1, written out."""
    y, q, level = seen
    own, shared, unit, slope = len(level) > 1, level[0], 1.0 / h, bend / (h * h)
    for j in range(len(which)):
        i, k = which[j], bin_of[j]
        r = (h[k] - a[j]) * (unit[k] + slope[k] * a[j])
        w, v = 1.0 / q[i], y[i] - (level[i] if own else shared)
        wv, w2 = w * v, w * w
        w2v = w2 * v
        w2vv, r2 = w2v * v, r * r
        bins[k, 0] += w
        bins[k, 1] += w * r
        bins[k, 2] += wv
        bins[k, 3] += wv * r
        bins[k, 4] += w2
        bins[k, 5] += w2 * r
        bins[k, 6] += w2 * r2
        bins[k, 7] += w2v
        bins[k, 8] += w2v * r
        bins[k, 9] += w2v * r2
        bins[k, 10] += w2vv
        bins[k, 11] += w2vv * r
        bins[k, 12] += w2vv * r2
        bins[k, 13] += 1.0


@compiled
def enter(
    which: Index,
    bin_of: Index,
    a: Array,
    seen: Seen,
    h: Array,
    bend: float,
    power: int,
    bins: Array,
) -> None:
    """Enter rows where K is a polynomial of degree ``power`` in r."""
    y, q, level = seen
    own, shared, unit, slope = len(level) > 1, level[0], 1.0 / h, bend / (h * h)
    for j in range(len(which)):
        i, k = which[j], bin_of[j]
        r = (h[k] - a[j]) * (unit[k] + slope[k] * a[j])
        w, v, column = 1.0 / q[i], y[i] - (level[i] if own else shared), 0
        for factor in (w, w * v):
            term = factor
            for _ in range(power + 1):
                bins[k, column] += term
                term, column = term * r, column + 1
        for factor in (w * w, w * w * v, w * w * v * v):
            term = factor
            for _ in range(2 * power + 1):
                bins[k, column] += term
                term, column = term * r, column + 1
        bins[k, column] += 1.0


@compiled
def enter_baselines(
    which: Index,
    bin_of: Index,
    a: Array,
    seen: Seen,
    b: Array,
    center: float,
    h: Array,
    bend: float,
    baselines: Array,
) -> None:
    """Enter the baselines of rows."""
    y, q, level = seen
    own, shared, unit, slope = len(level) > 1, level[0], 1.0 / h, bend / (h * h)
    half = baselines.shape[1] // 2
    for j in range(len(which)):
        i, k = which[j], bin_of[j]
        r = (h[k] - a[j]) * (unit[k] + slope[k] * a[j])
        term, v = (b[i] - center) / q[i], y[i] - (level[i] if own else shared)
        for s in range(half):
            baselines[k, s] += term
            baselines[k, half + s] += term * v
            term *= r


# ── Rows near a bound: summed at every bandwidth that reaches them ────────────────────────────────
# There the kernel has another shape at every bandwidth. Rows are taken some at a time, in the order
# of their first bandwidth, so that those in reach of a bandwidth are the first ones: all loops run
# over rows side by side, and no product of two weights is computed that is 0.

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
    collect(which, order, rows, center, room)
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
    place = np.zeros(m, np.int64)
    for k in range(1, m):
        ends[k] += ends[k - 1]
        place[k] = ends[k - 1]
    for j in range(len(bin_of)):
        k = bin_of[j]
        order[place[k]] = j
        place[k] += 1
    return ends, order


@compiled
def collect(which: Index, order: Index, rows: Gathered, center: float, room: Array) -> None:
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
                multiply_rows(w[j][:n], w[k], w[k1], w[k2], w[k3], e, out)
                for i in range(min(4, m - k)):
                    for s in range(3):
                        second[s, j, k + i] += out[s, i]


@fast
def multiply_rows(
    w: Array, w0: Array, w1: Array, w2: Array, w3: Array, e: Array, out: Array
) -> None:
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
