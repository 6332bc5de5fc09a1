"""All bandwidths in one reading of the rows: each row goes into the bin of its own bandwidth.

A row in reach of h_k but not of h_{k−1} is in reach of all wider bandwidths too. So it is entered
once, in bin k, with the powers of r = 1 − (a/h_k)^γ that the kernel is made of; what is in reach
of h_{k+1} follows from what is in reach of h_k by r' = (1 − ρ) + ρr (`titrant.bandwidth.binned`).
Near a bound the kernel has another shape at every bandwidth: those rows are summed one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast
from titrant.compiled.weights import CHUNK, bounds_of, linear

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

    Index = NDArray[np.int64]

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
    table: Index,
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
    (8, m) and, if ``joint``, Σwⱼwₗ·(1, e, e²) for l < j (3, m, m). A row is in reach of h (m,) when
    a < reach; ``table`` looks up the first such bandwidth.
    """
    m, power = len(h), baselines.shape[1] // 2 - 1
    units = np.empty((m, 2))
    for k in range(m):
        units[k, 0] = 1.0 / h[k]
        units[k, 1] = 1.0 / (h[k] * h[k]) if gamma == 2 else 0.0  # noqa: PLR2004
    a, g, e = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK)
    which, near = np.empty(CHUNK, dtype=np.int64), np.empty(CHUNK, dtype=np.int64)
    edges, room, bin_of = np.empty((2, CHUNK)), np.empty((4, m)), np.empty(CHUNK, dtype=np.int64)
    for start in range(0, len(t), CHUNK):
        stop = min(start + CHUNK, len(t))
        doses = tau[start:stop]
        distances(t[start:stop], doses, q[start:stop], a, g)
        residuals(y[start:stop], r[start:stop] if len(r) > 1 else r, e)
        count, aside = in_reach(a[: stop - start], reach[-1], which), 0
        locate(a, which[:count], reach, table, bin_of)
        limits = bounds_of(bounds, start, stop, edges)
        if degree >= 0 and len(limits) > 0:
            count, aside = set_aside(doses, limits[0], limits[1], h[-1], count, which, near)
        if power == 1:
            enter_linear(a, g, e, which[:count], bin_of, h, units, bins)
        else:
            enter(a, g, e, which[:count], bin_of, h, units, power, bins)
        base = b[start:stop] if len(b) > 1 else b
        if len(b) > 1:
            enter_baselines(a, g, e, base, center, which[:count], bin_of, h, units, baselines)
        for j in range(aside):
            i = near[j]
            k, some = bin_of[i], t[start:stop]
            set_at_bandwidths(
                some[i] - doses[i],
                doses[i] - limits[0, i],
                limits[1, i] - doses[i],
                g[i],
                h[k:],
                units[k:],
                kappa,
                room,
            )
            w = room[3][: m - k]
            linear(room[0][: m - k], room[1][: m - k], room[2][: m - k], areas, degree, w)
            level = base[i] - center if len(b) > 1 else 0.0
            add_near(w, e[i], level, k, first)
            if joint:
                add_near_products(w, e[i], k, second)


@fast
def distances(t: Array, tau: Array, q: Array, a: Array, g: Array) -> None:
    """Set a to |t − τ| and g to 1/q."""
    for i in range(len(t)):
        a[i] = abs(t[i] - tau[i])
        g[i] = 1.0 / q[i]


@fast
def residuals(y: Array, r: Array, e: Array) -> None:
    """Set e to y − r; r is (B,) or (1,)."""
    if len(r) == len(y):
        for i in range(len(y)):
            e[i] = y[i] - r[i]
    else:
        level = r[0]
        for i in range(len(y)):
            e[i] = y[i] - level


@compiled
def in_reach(a: Array, widest: float, which: Index) -> int:
    """Set which to the rows with a < widest; return how many there are."""
    count = 0
    for i in range(len(a)):
        # Written in any case, counted if it belongs: a branch would be mispredicted.
        which[count] = i
        count += a[i] < widest
    return count


@compiled
def locate(a: Array, which: Index, reach: Array, table: Index, bin_of: Index) -> None:
    """Set bin_of to the first bandwidth that reaches each of some rows.

    The table holds the first cell of leading bits, then for each cell from there on the first
    bandwidth that may reach it.
    """
    cells, origin, last = a.view(np.int64), table[0] - 1, len(table) - 1
    for i in which:
        k = table[min(max((cells[i] >> CUT) - origin, 1), last)]
        while a[i] >= reach[k]:
            k += 1
        bin_of[i] = k


@compiled
def set_aside(
    tau: Array, lower: Array, upper: Array, widest: float, count: int, which: Index, near: Index
) -> tuple[int, int]:
    """Move rows within the widest bandwidth of a bound from which to near; return both counts."""
    kept = aside = 0
    for j in range(count):
        i = which[j]
        if tau[i] - lower[i] < widest or upper[i] - tau[i] < widest:
            near[aside] = i
            aside += 1
        else:
            which[kept] = i
            kept += 1
    return kept, aside


@compiled
def enter_linear(
    a: Array,
    g: Array,
    e: Array,
    which: Index,
    bin_of: Index,
    h: Array,
    units: Array,
    bins: Array,
) -> None:
    """Enter rows where K is linear in r: `enter` for p = 1, written out."""
    for i in which:
        k = bin_of[i]
        r = (h[k] - a[i]) * (units[k, 0] + units[k, 1] * a[i])
        w, v = g[i], e[i]
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
    a: Array,
    g: Array,
    e: Array,
    which: Index,
    bin_of: Index,
    h: Array,
    units: Array,
    power: int,
    bins: Array,
) -> None:
    """Enter rows where K is a polynomial of degree ``power`` in r."""
    for i in which:
        k = bin_of[i]
        r = (h[k] - a[i]) * (units[k, 0] + units[k, 1] * a[i])
        w, v, column = g[i], e[i], 0
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
    a: Array,
    g: Array,
    e: Array,
    b: Array,
    center: float,
    which: Index,
    bin_of: Index,
    h: Array,
    units: Array,
    baselines: Array,
) -> None:
    """Enter the baselines of rows."""
    half = baselines.shape[1] // 2
    for i in which:
        k = bin_of[i]
        r = (h[k] - a[i]) * (units[k, 0] + units[k, 1] * a[i])
        term = g[i] * (b[i] - center)
        for s in range(half):
            baselines[k, s] += term
            baselines[k, half + s] += term * e[i]
            term *= r


@fast
def set_at_bandwidths(
    v: float,
    left: float,
    right: float,
    g: float,
    h: Array,
    units: Array,
    kappa: Array,
    room: Array,
) -> None:
    """Set room (4, ≥ M) to u, −L, U and K(u)·g/h of one row at M bandwidths; see `set_weights`."""
    k0, k1, k2, a = kappa[0], kappa[1], kappa[2], abs(v)
    u, low, high, w = room[0], room[1], room[2], room[3]
    for j in range(len(h)):
        unit = units[j, 0]
        r = (h[j] - a) * (unit + units[j, 1] * a)
        u[j] = v * unit
        low[j] = min(max(left * unit, 0.0), 1.0)
        high[j] = min(max(right * unit, 0.0), 1.0)
        w[j] = (k0 + r * (k1 + r * k2)) * (g * unit)


@fast
def add_near(w: Array, e: float, b: float, k: int, first: Array) -> None:
    """Add a row to first (8, m); w (M,) are its weights from bandwidth k on."""
    w1, we, wb, web = first[0][k:], first[1][k:], first[2][k:], first[3][k:]
    w2, w2e, w2ee, count = first[4][k:], first[5][k:], first[6][k:], first[7][k:]
    for j in range(len(w)):
        v = w[j]
        w1[j] += v
        we[j] += v * e
        wb[j] += v * b
        web[j] += v * e * b
        w2[j] += v * v
        w2e[j] += v * v * e
        w2ee[j] += v * v * e * e
        count[j] += 1.0 if v != 0.0 else 0.0


@fast
def add_near_products(w: Array, e: float, k: int, second: Array) -> None:
    """Add the products wⱼwₗ, l < j, of a row to second (3, m, m); w begins at bandwidth k."""
    for j in range(len(w)):
        one, two, three = second[0, k + j][k:], second[1, k + j][k:], second[2, k + j][k:]
        for i in range(j):
            term = w[j] * w[i]
            one[i] += term
            two[i] += term * e
            three[i] += term * e * e
