"""The doses of two candidates on a block of rows, and the terms of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast
from titrant.optimize.compiled.weights import baselines, correct_near_bounds, weights

if TYPE_CHECKING:
    from titrant._types import Array


@compiled
def aligned(rows: int, size: int) -> Array:
    """Return zeros (rows, size) that begin on a cache line, where vectors load fastest."""
    room = np.zeros(rows * size + 8)
    start = -(room.ctypes.data // 8) % 8
    return room[start : start + rows * size].reshape(rows, size)


@compiled
def set_terms(
    b: Array,
    db: Array,
    w: Array,
    dw: Array,
    tau: Array,
    rows: Array,
    kernel: Array,
    h: float,
    degree: int,
    bounds: Array,
    low: float,
    high: float,
    table: Array,
    grid: tuple[float, float],
    start: int,
) -> None:
    """Set b, w and their slopes in τ, each (B,).

    tau (B,); rows (3, B) of t, e and 1/(h·q); kernel (5,); bounds (2, B) of the dose, read when
    degree ≥ 0; table (n, G, 2) of r̂ and its slope a step, these rows from `start` on, or none:
    then b stays as it is.
    """
    weights(rows[0], rows[2], tau, low, high, h, kernel, w, dw)
    if degree >= 0:
        correct_near_bounds(rows[0], rows[2], tau, low, high, h, kernel, degree, bounds, w, dw)
    if len(table):
        baselines(table, start, tau, low, high, grid, b, db)


@fast
def doses(phi: Array, beta: Array, gamma: Array, tau: Array, upsilon: Array) -> None:
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
def multiply(a: Array, b: Array, out: Array) -> None:
    """Set out (B,) to a·b."""
    for i in range(len(a)):
        out[i] = a[i] * b[i]


@fast
def add_up(a: Array) -> float:
    """Return Σa."""
    total = 0.0
    for i in range(len(a)):
        total += a[i]
    return total


@fast
def add_product(a: Array, b: Array) -> float:
    """Return Σab."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@fast
def pull(first: Array, second: Array, phi: Array, out: Array, out_two: Array) -> None:
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
