"""The bandwidth path in compiled loops: rows into bins, and bins into sums at every bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast
from titrant.compiled.near import PIECE, add_piece

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.compiled.weights import Columns

    Outcomes = tuple[Array, Array, Array]
    """y, b and r."""
    Index = NDArray[np.uint32]
    Seen = tuple[Array, Array, Array]
    """y, q and the level of some rows."""

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
            mixed[:] = sums[j - 1, c]
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
        multiply(h[j], h[j:], kappa, gamma, c, out[0, j, j:], out[1, j, j:], out[2, j, j:])
        for q in range(3):
            for k in range(j):
                out[q, j, k] = out[q, k, j]
    return out


@fast
def multiply(
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
# Near a bound the kernel has another shape at every bandwidth: see `titrant.compiled.near`.

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
