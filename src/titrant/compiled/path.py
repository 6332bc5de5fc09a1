"""All bandwidths in one reading of the rows: each row goes into the bin of its own bandwidth.

A row in reach of h_k but not of h_{k−1} is in reach of all wider bandwidths too. So it is entered
once, in bin k, with the powers of r = 1 − (a/h_k)^γ that the kernel is made of; what is in reach
of h_{k+1} follows from what is in reach of h_k by r' = (1 − ρ) + ρr (`titrant.compiled.chain`).
Near a bound the kernel has another shape at every bandwidth: see `titrant.compiled.near`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled
from titrant.compiled.near import PIECE, add_piece

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

    Index = NDArray[np.uint32]

CHUNK = 16384
"""Rows whose distances and bins are kept at a time."""
CUT = 44
"""Bits of a number that are cut off to look up its bin: 256 cells an octave are left."""


@compiled
def add_rows(
    t: Array,
    tau: Array,
    y: Array,
    q: Array,
    bounds: Array,
    b: Array,
    r: Array,
    center: float,
    h: Array,
    reach: Array,
    cell: int,
    table: Index,
    crowd: int,
    kappa: Array,
    gamma: int,
    degree: int,
    areas: Array,
    joint: bool,
    bins: Array,
    baselines: Array,
    first: Array,
    second: Array,
) -> None:
    """Add rows to the bins (m, A), those of the baselines (m, B), and the sums near the bounds.

    With p the power of r in K and g = 1/q, a bin holds Σg·(1, e)·rˢ for s ≤ p, Σg²·(1, e, e²)·rˢ
    for s ≤ 2p and the count; those of the baselines Σg·(b, e·b)·rˢ, b measured from ``center`` and
    (1,) where all rows share it. Near a bound: Σw·(1, e, b, e·b), Σw²·(1, e, e²) and the count
    (m, 8) and, if ``joint``, Σwⱼwₖ·(1, e, e²) for j < k (3, m, m). A row is in reach of h (m,) when
    a < reach; ``cell``, ``table`` and ``crowd`` look up the first such bandwidth.
    """
    m, power = len(h), baselines.shape[1] // 2 - 1
    bend = 1.0 if gamma == 2 else 0.0  # noqa: PLR2004
    a, which, bin_of = np.empty(CHUNK), np.empty(CHUNK, np.uint32), np.empty(CHUNK, np.uint32)
    near, near_bin = np.empty(CHUNK, np.uint32), np.empty(CHUNK, np.uint32)
    room, w = np.zeros((6, PIECE)), np.zeros((m if joint else 1, PIECE))
    for start in range(0, len(t), CHUNK):
        rows = slice(start, min(start + CHUNK, len(t)))
        some, doses, outcomes, density = t[rows], tau[rows], y[rows], q[rows]
        base, level = b[rows] if len(b) > 1 else b, r[rows] if len(r) > 1 else r
        limits = bounds[:, rows] if bounds.shape[1] > 1 else bounds
        count, aside = in_reach(some, doses, reach[-1], which), 0
        locate(some, doses, which[:count], reach, cell, table, crowd, a, bin_of)
        if degree >= 0 and bounds.shape[1] > 0:
            count, aside = set_aside(doses, limits, h[-1], count, which, a, bin_of, near, near_bin)
        members = which[:count]
        if power == 1:
            enter_linear(members, bin_of, a, outcomes, density, level, h, bend, bins)
        else:
            enter(members, bin_of, a, outcomes, density, level, h, bend, power, bins)
        if len(b) > 1:
            enter_baselines(
                members, bin_of, a, outcomes, density, level, base, center, h, bend, baselines
            )
        for j in range(0, aside, PIECE):
            piece = slice(j, min(j + PIECE, aside))
            add_piece(
                near[piece],
                near_bin[piece],
                some,
                doses,
                outcomes,
                density,
                limits,
                base,
                level,
                center,
                h,
                kappa,
                bend,
                degree,
                areas,
                joint,
                room,
                w,
                first,
                second,
            )


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
    which: Index,
    bin_of: Index,
    a: Array,
    y: Array,
    q: Array,
    level: Array,
    h: Array,
    bend: float,
    bins: Array,
) -> None:
    """Enter rows where K is linear in r: `enter` for p = 1, written out."""
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
    y: Array,
    q: Array,
    level: Array,
    h: Array,
    bend: float,
    power: int,
    bins: Array,
) -> None:
    """Enter rows where K is a polynomial of degree ``power`` in r."""
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
    y: Array,
    q: Array,
    level: Array,
    b: Array,
    center: float,
    h: Array,
    bend: float,
    baselines: Array,
) -> None:
    """Enter the baselines of rows."""
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
