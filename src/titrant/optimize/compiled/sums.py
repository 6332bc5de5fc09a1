"""Sums of terms and slopes over rows for many candidate policies τ = φ'β.

Features stand column by column in blocks of rows that stay in cache while all candidates pass
over them, so every inner loop runs along rows. Two candidates share each reading of the features;
an odd one out is its own partner there, so that all go through the same code: a candidate's sums
are the same, bit for bit, in any company.

`record` takes the sums. `replay` gives the gradient of a function of them, once it is known how
that depends on each: one slope a row in place of one for each sum. Between the two a tape
(T·blocks·(m + 1), B) holds w and ∂w of each candidate on each block, and with a table b and ∂b: T
is 2 or 4. Where rows are too many for a tape, or their sums are to be added to others,
`added_sums` takes the slopes of every sum in the same pass.

Arguments: params (m, P); blocks: phi (blocks, P, B), rows (blocks, 3, B) of t, e and 1/(h·q),
bounds (blocks, 2, B) of the dose, table (n, G, 2) of r̂ and its slope a step, or none (0, 0, 2);
pairs (S, 2) of terms (0 b, 1 w·e, 2 w) to multiply; how: kernel (5,), h, degree (bounds are read
when it is ≥ 0), the policy's limits low and high, and the grid of the table (first dose, step).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast
from titrant.compiled.weights import set_weights, set_weights_near_bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

    Blocks = tuple[Array, Array, Array, Array]
    Ends = tuple[float, float]
    How = tuple[Array, float, int, float, float, tuple[float, float]]
    Index = NDArray[np.int64]


@compiled
def added_sums(
    params: Array, blocks: Blocks, pairs: Index, slopes: int, how: How
) -> tuple[Array, Array]:
    """Return Σ of b, w·e, w and of products (m, 3 + S), and their slopes (m, 3 + S, P).

    Only the first ``slopes`` of them are asked for; the others' are 0.
    """
    phi, rows, _, table = blocks
    m, size, count, first = len(params), phi.shape[2], 3 + len(pairs), 0 if table.shape[1] else 1
    total, out = np.zeros((m + 1, count)), np.zeros((m + 1, count, phi.shape[1]))
    tau, z, dz = aligned(2, size), aligned(2 * count, size), aligned(2 * count, size)
    for k in range(len(phi)):
        e = rows[k, 1]
        for j in range(0, m, 2):
            set_two_doses(phi[k], params[j], params[min(j + 1, m - 1)], tau[0], tau[1])
            for i in range(2):
                at = i * count
                set_terms(z[at], dz[at], z[at + 2], dz[at + 2], tau[i], k, blocks, how)
                set_weighted(z[at + 2], e, 1.0, 0.0, z[at + 1])
                set_weighted(dz[at + 2], e, 1.0, 0.0, dz[at + 1])
                for s in range(first, 3):
                    total[j + i, s] += total_of(z[at + s])
                for s in range(3, count):
                    one, two = at + pairs[s - 3, 0], at + pairs[s - 3, 1]
                    total[j + i, s] += inner(z[one], z[two])
                    dz[at + s] = 0.0
                    add_product_slope(z[one], dz[one], z[two], dz[two], 1.0, dz[at + s])
            for s in range(first, slopes):
                pull_two(dz[s], dz[count + s], phi[k], out[j, s], out[j + 1, s])
    return total[:m].copy(), out[:m].copy()


@compiled
def blank_tape(candidates: int, blocks: Blocks) -> Array:
    """Return a tape with room for so many candidates; it serves any number of recordings."""
    phi, _, _, table = blocks
    return aligned((4 if table.shape[1] else 2) * len(phi) * (candidates + 1), phi.shape[2])


@compiled
def record(tape: Array, params: Array, blocks: Blocks, pairs: Index, how: How) -> Array:
    """Return Σ of b, w·e, w and of products (m, 3 + S), and fill the tape for `replay`."""
    phi, rows, _, table = blocks
    m, size, kept = len(params), phi.shape[2], 4 if table.shape[1] else 2
    total = np.zeros((m + 1, 3 + len(pairs)))
    tau, z = aligned(2, size), aligned(3, size)
    for k in range(len(phi)):
        e = rows[k, 1]
        for j in range(0, m, 2):
            set_two_doses(phi[k], params[j], params[min(j + 1, m - 1)], tau[0], tau[1])
            for i in range(min(2, m - j)):
                at = kept * (k * (m + 1) + j + i)
                w, dw, b, db = tape[at], tape[at + 1], tape[at + kept - 2], tape[at + kept - 1]
                set_terms(b, db, w, dw, tau[i], k, blocks, how)
                if kept == 4:  # noqa: PLR2004
                    total[j + i, 0] += total_of(b)
                total[j + i, 1] += inner(w, e)
                total[j + i, 2] += total_of(w)
                if squares_alone(pairs):
                    total[j + i, 3] += inner(w, w)
                elif len(pairs):
                    set_three_terms(w, e, b, kept, z)
                    for s in range(len(pairs)):
                        total[j + i, 3 + s] += inner(z[pairs[s, 0]], z[pairs[s, 1]])
    return total[:m].copy()


@compiled
def replay(tape: Array, blocks: Blocks, pairs: Index, g: Array) -> Array:
    """Return the gradients (m, P) of functions of the sums with slopes g (m, 3 + S)."""
    phi, rows, _, table = blocks
    m, size, kept = len(g), phi.shape[2], 4 if table.shape[1] else 2
    out, slope = np.zeros((m + 1, phi.shape[1])), aligned(2, size)
    z, dz = aligned(3, size), aligned(3, size)
    for k in range(len(phi)):
        e = rows[k, 1]
        for j in range(0, m, 2):
            for i in range(min(2, m - j)):
                by = g[min(j + i, m - 1)]
                at = kept * (k * (m + 1) + j + i)
                w, dw, b, db = tape[at], tape[at + 1], tape[at + kept - 2], tape[at + kept - 1]
                if squares_alone(pairs):
                    set_squared_slope(w, dw, e, by[1], by[2], 2.0 * by[3], slope[i])
                else:
                    set_weighted(dw, e, by[1], by[2], slope[i])
                if kept == 4:  # noqa: PLR2004
                    add_scaled(db, by[0], slope[i])
                if not squares_alone(pairs) and by[3:].any():
                    set_three_terms(w, e, b, kept, z)
                    set_three_terms(dw, e, db, kept, dz)
                    for s in range(len(pairs)):
                        one, two = pairs[s]
                        if by[3 + s] != 0.0:
                            add_product_slope(z[one], dz[one], z[two], dz[two], by[3 + s], slope[i])
            pull_two(slope[0], slope[1], phi[k], out[j], out[j + 1])
    return out[:m].copy()


@compiled
def set_terms(
    b: Array, db: Array, w: Array, dw: Array, tau: Array, k: int, blocks: Blocks, how: How
) -> None:
    """Set b, w and their slopes in τ, each (B,), on block k at doses tau (B,).

    Without a table b stays as it is.
    """
    _, rows, bounds, table = blocks
    kernel, h, degree, low, high, grid = how
    t, g, ends = rows[k, 0], rows[k, 2], (low, high)
    set_weights(t, g, tau, ends, h, kernel, w, dw)
    if degree >= 0:
        set_weights_near_bounds(t, g, tau, ends, h, kernel, degree, bounds[k], w, dw)
    if table.shape[1]:
        set_baselines(table, k * len(tau), tau, ends, grid, b, db)


@compiled
def aligned(rows: int, size: int) -> Array:
    """Return zeros (rows, size) that begin on a cache line, where vectors load fastest."""
    room = np.zeros(rows * size + 8)
    start = -(room.ctypes.data // 8) % 8
    return room[start : start + rows * size].reshape(rows, size)


@compiled
def squares_alone(pairs: Index) -> bool:
    """Return whether Σw² is the only product asked for, as an ESS floor does."""
    return len(pairs) == 1 and pairs[0, 0] == 2 and pairs[0, 1] == 2  # noqa: PLR2004


@compiled
def set_three_terms(w: Array, e: Array, b: Array, kept: int, z: Array) -> None:
    """Set z (3, B) to b, w·e, w, or to their slopes; without a table b stays 0.

    Loops, since an assignment of arrays compiles numba's message about shapes, for two seconds.
    """
    if kept == 4:  # noqa: PLR2004
        for i in range(len(w)):
            z[0, i] = b[i]
    set_weighted(w, e, 1.0, 0.0, z[1])
    for i in range(len(w)):
        z[2, i] = w[i]


@fast
def set_two_doses(phi: Array, beta: Array, gamma: Array, tau: Array, upsilon: Array) -> None:
    """Set τ and υ (B,) to φ'β and φ'γ; φ (P, B)."""
    p, size = phi.shape
    for i in range(size):
        tau[i] = 0.0
    for i in range(size):
        upsilon[i] = 0.0
    whole = p - p % 3
    for k in range(0, whole, 3):
        b0, b1, b2 = beta[k], beta[k + 1], beta[k + 2]
        g0, g1, g2 = gamma[k], gamma[k + 1], gamma[k + 2]
        p0, p1, p2 = phi[k], phi[k + 1], phi[k + 2]
        for i in range(size):
            tau[i] += b0 * p0[i] + b1 * p1[i] + b2 * p2[i]
            upsilon[i] += g0 * p0[i] + g1 * p1[i] + g2 * p2[i]
    for k in range(whole, p):
        b0, g0, p0 = beta[k], gamma[k], phi[k]
        for i in range(size):
            tau[i] += b0 * p0[i]
            upsilon[i] += g0 * p0[i]


@fast
def total_of(a: Array) -> float:
    """Return Σa."""
    total = 0.0
    for i in range(len(a)):
        total += a[i]
    return total


@fast
def inner(a: Array, b: Array) -> float:
    """Return Σab."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@fast
def pull_two(first: Array, second: Array, phi: Array, out: Array, out_two: Array) -> None:
    """Add Σᵢ φᵢ·firstᵢ to out and Σᵢ φᵢ·secondᵢ to out_two, each (P,); φ (P, B).

    Four features at a time: eight sums stay in registers, and each feature is read once for two.
    """
    p, size = phi.shape
    whole = p - p % 4
    for k in range(0, whole, 4):
        p0, p1, p2, p3 = phi[k], phi[k + 1], phi[k + 2], phi[k + 3]
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
        for i in range(size):
            a0 += first[i] * p0[i]
            a1 += first[i] * p1[i]
            a2 += first[i] * p2[i]
            a3 += first[i] * p3[i]
            b0 += second[i] * p0[i]
            b1 += second[i] * p1[i]
            b2 += second[i] * p2[i]
            b3 += second[i] * p3[i]
        out[k] += a0
        out[k + 1] += a1
        out[k + 2] += a2
        out[k + 3] += a3
        out_two[k] += b0
        out_two[k + 1] += b1
        out_two[k + 2] += b2
        out_two[k + 3] += b3
    for k in range(whole, p):
        p0 = phi[k]
        a0 = b0 = 0.0
        for i in range(size):
            a0 += first[i] * p0[i]
            b0 += second[i] * p0[i]
        out[k] += a0
        out_two[k] += b0


@fast
def set_weighted(w: Array, e: Array, g1: float, g2: float, out: Array) -> None:
    """Set out (B,) to (g₁e + g₂)·w, or with ∂w for w to its slope."""
    for i in range(len(out)):
        out[i] = (g1 * e[i] + g2) * w[i]


@fast
def set_squared_slope(
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
def add_product_slope(a: Array, da: Array, b: Array, db: Array, factor: float, out: Array) -> None:
    """Add factor × the slope of a·b to out (B,)."""
    for i in range(len(a)):
        out[i] += factor * (a[i] * db[i] + da[i] * b[i])


@compiled
def set_baselines(
    table: Array, start: int, tau: Array, ends: Ends, grid: Ends, b: Array, db: Array
) -> None:
    """Set b = r̂(τ, x) and ∂b/∂τ, each (B,), by the cubic Hermite interpolant of a dose table.

    table (n, G, 2) holds r̂ and its slope a step at the doses of a grid (first dose, step).
    Beyond the grid the curve is flat (see `titrant.outcome.table`).
    """
    (low, high), last = ends, table.shape[1] - 1
    for i in range(min(len(tau), len(table) - start)):
        place = (min(max(tau[i], low), high) - grid[0]) / grid[1]
        inside = low < tau[i] < high and 0.0 <= place <= last
        place = min(max(place, 0.0), float(last))
        cell = min(int(place), last - 1)
        left, right = table[start + i, cell], table[start + i, cell + 1]
        u = place - cell
        v = 1.0 - u
        b[i] = v * v * ((1.0 + 2.0 * u) * left[0] + u * left[1])
        b[i] += u * u * ((3.0 - 2.0 * u) * right[0] - v * right[1])
        slope = 6.0 * u * v * (right[0] - left[0])
        slope += v * (1.0 - 3.0 * u) * left[1] + u * (3.0 * u - 2.0) * right[1]
        db[i] = slope / grid[1] if inside else 0.0
    for i in range(max(len(table) - start, 0), len(tau)):
        b[i] = db[i] = 0.0
