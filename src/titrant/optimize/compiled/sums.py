"""The sums of a policy search for policies τ = φ'β: the loops of `titrant.optimize.fused`.

Features stand column by column in blocks of rows that stay in cache while all candidates pass
over them, so every inner loop runs along rows. A candidate's sums never depend on the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.optimize.compiled.decorators import compiled, fast
from titrant.optimize.compiled.weights import baselines, correct_near_bounds, weights

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
    """Return Σ of the terms (b, w·e, w) (m, 3), ∂/∂β (m, 3, P), and the same of products (m, S, …).

    params (m, P); phi (blocks, P, B); rows (blocks, 3, B) of t, e and 1/(h·q); pairs (S, 2) of
    terms to multiply; slopes, how many of these sums need slopes (the last ones' are 0); kernel
    (5,); bounds (blocks, 2, B) of the dose, read when degree ≥ 0; table (n, G, 2) of r̂ and its
    slope a step, or none: then b = 0.
    """
    m, p, size = len(params), phi.shape[1], phi.shape[2]
    count = 3 + len(pairs)
    first = 0 if len(table) else 1
    total, out = np.zeros((m, count)), np.zeros((m, count, p))
    z, dz = aligned(count, size), aligned(count, size)
    tau = aligned(1, size)[0]
    for k in range(len(phi)):
        t, e, g = rows[k, 0], rows[k, 1], rows[k, 2]
        for j in range(m):
            doses(phi[k], params[j], tau)
            weights(t, g, tau, low, high, h, kernel, z[2], dz[2])
            if degree >= 0:
                correct_near_bounds(t, g, tau, low, high, h, kernel, degree, bounds[k], z[2], dz[2])
            multiply(e, z[2], dz[2], z[1], dz[1])
            if len(table):
                baselines(table, k * size, tau, low, high, grid, z[0], dz[0])
            for s in range(len(pairs)):
                a, b = pairs[s]
                product(z[a], dz[a], z[b], dz[b], z[3 + s], dz[3 + s])
            for s in range(first, count):
                total[j, s] += add_up(z[s])
            for s in range(first, slopes - 1, 2):
                pull_two(dz[s], dz[s + 1], phi[k], out[j, s], out[j, s + 1])
            if (slopes - first) % 2 == 1:
                pull(dz[slopes - 1], phi[k], out[j, slopes - 1])
    return total[:, :3].copy(), out[:, :3].copy(), total[:, 3:].copy(), out[:, 3:].copy()


@compiled
def aligned(rows: int, size: int) -> Array:
    """Return zeros (rows, size) that begin on a cache line, where vectors load fastest."""
    room = np.zeros(rows * size + 8)
    start = -(room.ctypes.data // 8) % 8
    return room[start : start + rows * size].reshape(rows, size)


@fast
def doses(phi: Array, beta: Array, tau: Array) -> None:
    """Set τ (B,) to φ'β; φ (P, B)."""
    p, size = phi.shape
    for i in range(size):
        tau[i] = 0.0
    whole = p - p % 4
    for k in range(0, whole, 4):
        b0, b1, b2, b3 = beta[k], beta[k + 1], beta[k + 2], beta[k + 3]
        p0, p1, p2, p3 = phi[k], phi[k + 1], phi[k + 2], phi[k + 3]
        for i in range(size):
            tau[i] += b0 * p0[i] + b1 * p1[i] + b2 * p2[i] + b3 * p3[i]
    for k in range(whole, p):
        b0, p0 = beta[k], phi[k]
        for i in range(size):
            tau[i] += b0 * p0[i]


@fast
def multiply(e: Array, w: Array, dw: Array, we: Array, dwe: Array) -> None:
    """Set w·e and its slope, each (B,)."""
    for i in range(len(e)):
        we[i] = w[i] * e[i]
    for i in range(len(e)):
        dwe[i] = dw[i] * e[i]


@fast
def product(a: Array, da: Array, b: Array, db: Array, ab: Array, dab: Array) -> None:
    """Set a·b and its slope, each (B,)."""
    for i in range(len(a)):
        ab[i] = a[i] * b[i]
    for i in range(len(a)):
        dab[i] = a[i] * db[i] + da[i] * b[i]


@fast
def add_up(a: Array) -> float:
    """Return Σa."""
    total = 0.0
    for i in range(len(a)):
        total += a[i]
    return total


@fast
def pull(slope: Array, phi: Array, out: Array) -> None:
    """Add Σᵢ φᵢ·slopeᵢ to out (P,), four features at a time: their sums stay in registers."""
    p, size = phi.shape
    whole = p - p % 4
    for k in range(0, whole, 4):
        p0, p1, p2, p3 = phi[k], phi[k + 1], phi[k + 2], phi[k + 3]
        a0 = a1 = a2 = a3 = 0.0
        for i in range(size):
            a0 += slope[i] * p0[i]
            a1 += slope[i] * p1[i]
            a2 += slope[i] * p2[i]
            a3 += slope[i] * p3[i]
        out[k] += a0
        out[k + 1] += a1
        out[k + 2] += a2
        out[k + 3] += a3
    for k in range(whole, p):
        p0 = phi[k]
        a0 = 0.0
        for i in range(size):
            a0 += slope[i] * p0[i]
        out[k] += a0


@fast
def pull_two(first: Array, second: Array, phi: Array, out: Array, out_two: Array) -> None:
    """Pull two slopes at once: each feature is read once for both."""
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
