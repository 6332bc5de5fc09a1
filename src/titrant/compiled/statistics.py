"""Moments of the terms b, w·e, w and the tally of weights, in one reading of the rows.

Rows come in chunks that stay in the fastest cache. Sums of a chunk are taken from the mean of the
rows before it, and chunks are merged like `titrant.moments.Moments`: an outcome far from zero
loses no digits, and sums have one order, whoever computes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast
from titrant.compiled.largest import collect
from titrant.compiled.weights import CHUNK, ROOM, bounds_of, set_weights

if TYPE_CHECKING:
    from titrant._types import Array


@compiled
def statistics(
    t: Array,
    tau: Array,
    y: Array,
    q: Array,
    bounds: Array,
    b: Array,
    r: Array,
    h: float,
    kappa: Array,
    gamma: int,
    degree: int,
    areas: Array,
    middle: Array,
    kept: int,
) -> tuple[Array, Array, Array, Array]:
    """Return mean (3,), comoment (3, 3), tally (5,), and a pool with the ``kept`` largest |w|.

    t, τ, y, q are (n,); bounds (2, n), (2, 1) or (2, 0). b and r, with e = y − r, are (n,) or (1,)
    where all rows share them. Kernel, degree, areas and middle are those of `set_weights`.
    The tally is Σw, Σ|w|, Σw², Σw⁴ and the count of w ≠ 0.
    """
    n, varies = len(t), len(b) > 1
    mean, comoment, tally = np.zeros(3), np.zeros((3, 3)), np.zeros(5)
    sums, own = np.zeros(3), np.zeros((3, 3))
    room, flags = np.empty((ROOM, CHUNK)), np.empty(CHUNK, dtype=np.uint8)
    which = np.empty(CHUNK, dtype=np.int64)
    edges, weights, residuals = np.empty((2, CHUNK)), np.empty(CHUNK), np.empty(CHUNK)
    pool, size, limit = np.empty(CHUNK + 2 * kept + 1), 0, 0.0
    if not varies:
        mean[0] = b[0]
    for start in range(0, n, CHUNK):
        stop = min(start + CHUNK, n)
        w = weights[: stop - start]
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
            w,
        )
        # Slices throughout: numba would look for negative numbers in y[start + i].
        e, level = y[start:stop], r[0]
        if len(r) > 1:
            e, level = residuals[: stop - start], 0.0
            subtract(y[start:stop], r[start:stop], e)
        if start == 0:
            set_means(w, e, level, b, mean)
        above = add_products(w, e, level, mean, limit, sums, own, tally)
        if varies:
            add_baselines(b[start:stop], w, e, level, mean, sums, own)
        merge(mean, comoment, start, sums, own, len(w))
        if above > 0:
            size, limit = collect(w, pool, size, limit, kept, flags, which)
    comoment[0, 1], comoment[0, 2], comoment[1, 2] = comoment[1, 0], comoment[2, 0], comoment[2, 1]
    return mean, comoment, tally, pool[:size]


@fast
def subtract(y: Array, r: Array, e: Array) -> None:
    """Set e (B,) to y − r."""
    for i in range(len(e)):
        e[i] = y[i] - r[i]


@compiled
def set_means(w: Array, e: Array, level: float, b: Array, mean: Array) -> None:
    """Set mean (3,) to that of b, w·e, w over the first chunk, from where its sums are taken."""
    first, baselines = w[0] * (e[0] - level), 0.0
    total = products = 0.0
    for i in range(len(w)):
        total += w[i] - w[0]
        products += w[i] * (e[i] - level) - first
    if len(b) > 1:
        for i in range(len(w)):
            baselines += b[i] - b[0]
    mean[0] = b[0] + baselines / len(w)
    mean[1] = first + products / len(w)
    mean[2] = w[0] + total / len(w)


@fast
def add_products(
    w: Array,
    e: Array,
    level: float,
    mean: Array,
    limit: float,
    sums: Array,
    own: Array,
    tally: Array,
) -> int:
    """Set sums and products of w·(e − level) and w around ``mean``, add to the tally of weights.

    Returns how many |w| are above the limit.
    """
    mean_z, mean_w = mean[1], mean[2]
    s1 = s2 = s11 = s12 = s22 = total = absolute = squares = fourths = 0.0
    count = above = 0
    for i in range(len(w)):
        v, size = w[i], abs(w[i])
        z, dw = v * (e[i] - level) - mean_z, v - mean_w
        s1 += z
        s2 += dw
        s11 += z * z
        s12 += z * dw
        s22 += dw * dw
        square = v * v
        total += v
        absolute += size
        squares += square
        fourths += square * square
        count += size > 0.0
        above += size > limit
    sums[1], sums[2] = s1, s2
    own[1, 1], own[2, 1], own[2, 2] = s11, s12, s22
    tally[0] += total
    tally[1] += absolute
    tally[2] += squares
    tally[3] += fourths
    tally[4] += count
    return above


@fast
def add_baselines(
    b: Array, w: Array, e: Array, level: float, mean: Array, sums: Array, own: Array
) -> None:
    """Set sums and products of b with all terms around ``mean``."""
    mean_b, mean_z, mean_w = mean[0], mean[1], mean[2]
    s0 = s00 = s01 = s02 = 0.0
    for i in range(len(w)):
        d = b[i] - mean_b
        s0 += d
        s00 += d * d
        s01 += d * (w[i] * (e[i] - level) - mean_z)
        s02 += d * (w[i] - mean_w)
    sums[0] = s0
    own[0, 0], own[1, 0], own[2, 0] = s00, s01, s02


@compiled
def merge(mean: Array, comoment: Array, n: int, sums: Array, own: Array, rows: int) -> None:
    """Add a chunk to the moments of n rows, given its sums and products around their mean.

    With s = Σ(z − z̄) of the chunk: C ← C + Σ(z − z̄)(z − z̄)' − ss'/(n + rows), lower triangle only,
    and z̄ ← z̄ + s/(n + rows).
    """
    share = 1.0 / (n + rows)
    for a in range(len(mean)):
        for c in range(a + 1):
            comoment[a, c] += own[a, c] - sums[a] * sums[c] * share
    for a in range(len(mean)):
        mean[a] += sums[a] * share
