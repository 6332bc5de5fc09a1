"""The sums of a policy search for policies τ = φ'β: the loops of `titrant.optimize.fused`.

Features stand column by column in blocks of rows that stay in cache while all candidates pass
over them, so every inner loop runs along rows. Two candidates share each reading of the features;
an odd one out is its own partner, so that all go through the same code: a candidate's sums are
the same, bit for bit, in any company.

`fused_sums` takes one pass and adds up over blocks of a log. Where all rows are in memory,
`record` and `replay` do with one slope a row in place of one for each sum: first the sums, then,
once it is known how the objective depends on them, its gradient. Between the two a tape
(T·blocks·(m + 1), B) holds w and ∂w of each candidate on each block, and with a table b and ∂b: T
is 2 or 4.

Arguments: params (m, P); phi (blocks, P, B); rows (blocks, 3, B) of t, e and 1/(h·q); pairs (S, 2)
of terms (0 b, 1 w·e, 2 w) to multiply; slopes, how many of the sums need slopes (the last ones'
are 0); kernel (5,); bounds (blocks, 2, B) of the dose, read when degree ≥ 0; low and high, the
policy's limits; table (n, G, 2) of r̂ and its slope a step on a grid (first dose, step), or none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast
from titrant.optimize.compiled.terms import (
    add_product,
    add_up,
    aligned,
    doses,
    multiply,
    pull,
    set_terms,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

    Index = NDArray[np.int64]


@compiled
def fused_sums(
    params: Array,
    phi: Array,
    rows: Array,
    pairs: Index,
    slopes: int,
    kernel: Array,
    h: float,
    degree: int,
    bounds: Array,
    low: float,
    high: float,
    table: Array,
    grid: tuple[float, float],
) -> tuple[Array, Array, Array, Array]:
    """Return Σ of the terms (m, 3), their slopes (m, 3, P), and the same of products (m, S, …)."""
    m, p, size = len(params), phi.shape[1], phi.shape[2]
    count, first = 3 + len(pairs), 0 if len(table) else 1
    total, out = np.zeros((m + 1, count)), np.zeros((m + 1, count, p))
    tau, z, dz = aligned(2, size), aligned(2 * count, size), aligned(2 * count, size)
    for k in range(len(phi)):
        e, start = rows[k, 1], k * size
        for j in range(0, m, 2):
            doses(phi[k], params[j], params[min(j + 1, m - 1)], tau[0], tau[1])
            for i in range(2):
                at = i * count
                b, db, w, dw = z[at], dz[at], z[at + 2], dz[at + 2]
                set_terms(
                    b,
                    db,
                    w,
                    dw,
                    tau[i],
                    rows[k],
                    kernel,
                    h,
                    degree,
                    bounds[k],
                    low,
                    high,
                    table,
                    grid,
                    start,
                )
                multiply(e, w, z[at + 1])
                multiply(e, dw, dz[at + 1])
                for s in range(first, 3):
                    total[j + i, s] += add_up(z[at + s])
                for s in range(3, count):
                    one, two = at + pairs[s - 3, 0], at + pairs[s - 3, 1]
                    total[j + i, s] += add_product(z[one], z[two])
                    product_slope(z[one], dz[one], z[two], dz[two], 0.0, 1.0, dz[at + s])
            for s in range(first, slopes):
                pull(dz[s], dz[count + s], phi[k], out[j, s], out[j + 1, s])
    return total[:m, :3].copy(), out[:m, :3].copy(), total[:m, 3:].copy(), out[:m, 3:].copy()


@compiled
def blank_tape(candidates: int, phi: Array, table: Array) -> Array:
    """Return a tape with room for so many candidates; it serves any number of recordings."""
    return aligned((4 if len(table) else 2) * len(phi) * (candidates + 1), phi.shape[2])


@compiled
def record(
    tape: Array,
    params: Array,
    phi: Array,
    rows: Array,
    pairs: Index,
    slopes: int,  # noqa: ARG001  (the arguments are those of `fused_sums`)
    kernel: Array,
    h: float,
    degree: int,
    bounds: Array,
    low: float,
    high: float,
    table: Array,
    grid: tuple[float, float],
) -> tuple[Array, Array]:
    """Return Σ of the terms (m, 3) and of products (m, S), and fill the tape for `replay`."""
    m, size, kept = len(params), phi.shape[2], 4 if len(table) else 2
    total, squares = np.zeros((m + 1, 3)), np.zeros((m + 1, len(pairs)))
    tau, z = aligned(2, size), aligned(3, size)
    only_squares = squares_alone(pairs)
    for k in range(len(phi)):
        e, start = rows[k, 1], k * size
        for j in range(0, m, 2):
            doses(phi[k], params[j], params[min(j + 1, m - 1)], tau[0], tau[1])
            for i in range(2):
                at = kept * (k * (m + 1) + j + i)
                w, dw, b, db = tape[at], tape[at + 1], tape[at + kept - 2], tape[at + kept - 1]
                set_terms(
                    b,
                    db,
                    w,
                    dw,
                    tau[i],
                    rows[k],
                    kernel,
                    h,
                    degree,
                    bounds[k],
                    low,
                    high,
                    table,
                    grid,
                    start,
                )
                if len(table):
                    total[j + i, 0] += add_up(b)
                total[j + i, 1] += add_product(w, e)
                total[j + i, 2] += add_up(w)
                if only_squares:
                    squares[j + i, 0] += add_product(w, w)
                elif len(pairs):
                    gather(w, e, b, kept, z)
                    for s in range(len(pairs)):
                        squares[j + i, s] += add_product(z[pairs[s, 0]], z[pairs[s, 1]])
    return total[:m].copy(), squares[:m].copy()


@compiled
def replay(
    tape: Array, phi: Array, rows: Array, pairs: Index, table: Array, g: Array, gg: Array
) -> Array:
    """Return the gradients (m, P) of functions of the sums with slopes g (m, 3) and gg (m, S)."""
    m, size, kept = len(g), phi.shape[2], 4 if len(table) else 2
    only_squares = squares_alone(pairs)
    out, slope = np.zeros((m + 1, phi.shape[1])), aligned(2, size)
    z, dz = aligned(3, size), aligned(3, size)
    for k in range(len(phi)):
        e = rows[k, 1]
        for j in range(0, m, 2):
            for i in range(2):
                which = min(j + i, m - 1)
                at = kept * (k * (m + 1) + j + i)
                w, dw, b, db = tape[at], tape[at + 1], tape[at + kept - 2], tape[at + kept - 1]
                if only_squares:
                    squared_slope(w, dw, e, g[which, 1], g[which, 2], 2.0 * gg[which, 0], slope[i])
                else:
                    weighted_slope(dw, e, g[which, 1], g[which, 2], slope[i])
                if kept > 2:  # noqa: PLR2004
                    add_scaled(db, g[which, 0], slope[i])
                if len(pairs) and not only_squares:
                    gather(w, e, b, kept, z)
                    gather(dw, e, db, kept, dz)
                    for s in range(len(pairs)):
                        one, two = pairs[s]
                        product_slope(z[one], dz[one], z[two], dz[two], 1.0, gg[which, s], slope[i])
            pull(slope[0], slope[1], phi[k], out[j], out[j + 1])
    return out[:m].copy()


@compiled
def squares_alone(pairs: Index) -> bool:
    """Return whether Σw² is the only product asked for, as an ESS floor does."""
    return len(pairs) == 1 and pairs[0, 0] == 2 and pairs[0, 1] == 2  # noqa: PLR2004


@compiled
def gather(w: Array, e: Array, b: Array, kept: int, z: Array) -> None:
    """Set z (3, B) to b, w·e, w, or to their slopes; without a table b stays 0."""
    if kept > 2:  # noqa: PLR2004
        z[0] = b
    multiply(e, w, z[1])
    z[2] = w


@fast
def weighted_slope(dw: Array, e: Array, g1: float, g2: float, out: Array) -> None:
    """Set out (B,) to (g₁e + g₂)·∂w."""
    for i in range(len(out)):
        out[i] = (g1 * e[i] + g2) * dw[i]


@fast
def squared_slope(
    w: Array, dw: Array, e: Array, g1: float, g2: float, g3: float, out: Array
) -> None:
    """Set out (B,) to (g₁e + g₂ + g₃w)·∂w."""
    for i in range(len(out)):
        out[i] = (g1 * e[i] + g2 + g3 * w[i]) * dw[i]


@fast
def add_scaled(a: Array, factor: float, out: Array) -> None:
    """Add factor·a to out (B,)."""
    for i in range(len(out)):
        out[i] += factor * a[i]


@fast
def product_slope(
    a: Array, da: Array, b: Array, db: Array, keep: float, factor: float, out: Array
) -> None:
    """Set out (B,) to keep·out + factor × the slope of a·b."""
    for i in range(len(a)):
        out[i] = keep * out[i] + factor * (a[i] * db[i] + da[i] * b[i])
