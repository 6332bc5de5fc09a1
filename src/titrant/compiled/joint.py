"""Joint moments of the terms of several questions: their rows come as chunks of columns.

Unlike `statistics`, which does one question over all rows in a single call, these are steps that
the caller takes chunk by chunk: the questions may be about policies with arrays of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from titrant.compiled.decorators import compiled, fast
from titrant.compiled.largest import collect
from titrant.compiled.statistics import merge
from titrant.compiled.weights import all_weights, copy

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.compiled.flags import Flags, Index


@compiled
def write_terms(
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
    start: int,
    stop: int,
    base: Array,
    z: Array,
    w: Array,
) -> None:
    """Set base, z and w (stop − start,) to b, w·e and w of some of the rows; see `statistics`."""
    part = bounds[:, start:stop].copy() if bounds.shape[1] > 1 else bounds.copy()
    all_weights(
        t[start:stop],
        tau[start:stop],
        q[start:stop],
        part,
        h,
        kappa,
        gamma,
        degree,
        areas,
        middle,
        w,
    )
    multiply(w, y[start:stop], r[start:stop] if len(r) > 1 else r, z)
    for i in range(len(base)):
        base[i] = b[0]
    if len(b) > 1:
        copy(b[start:stop], base)


@fast
def multiply(w: Array, y: Array, r: Array, z: Array) -> None:
    """Set z (B,) to w·(y − r); r is (B,) or (1,)."""
    if len(r) == len(w):
        for i in range(len(w)):
            z[i] = w[i] * (y[i] - r[i])
    else:
        level = r[0]
        for i in range(len(w)):
            z[i] = w[i] * (y[i] - level)


@compiled
def tally_weights(
    w: Array,
    tally: Array,
    pool: Array,
    size: int,
    limit: float,
    kept: int,
    flags: Flags,
    which: Index,
) -> tuple[int, float]:
    """Add weights (B,) to a tally (5,) and a pool of the largest; return its size and limit."""
    add_weights(w, tally)
    return collect(w, pool, size, limit, kept, flags, which)


@fast
def add_weights(w: Array, tally: Array) -> None:
    """Add Σw, Σ|w|, Σw², Σw⁴ and the count of w ≠ 0 to tally (5,)."""
    total = absolute = squares = fourths = 0.0
    count = 0
    for i in range(len(w)):
        square = w[i] * w[i]
        total += w[i]
        absolute += abs(w[i])
        squares += square
        fourths += square * square
        count += w[i] != 0.0
    tally[0] += total
    tally[1] += absolute
    tally[2] += squares
    tally[3] += fourths
    tally[4] += count


@compiled
def add_chunk(
    terms: Array, rows: int, mean: Array, comoment: Array, n: int, sums: Array, own: Array
) -> None:
    """Merge a chunk of terms (K, ≥ rows) into the moments (lower triangle) of n rows before it.

    Terms are overwritten; sums (K,) and own (K, K) are scratch.
    """
    if n == 0:
        for a in range(len(mean)):
            mean[a] = average(terms[a][:rows])
    for a in range(len(mean)):
        sums[a] = subtract_mean(terms[a][:rows], mean[a])
        for c in range(a + 1):
            own[a, c] = product(terms[a][:rows], terms[c][:rows])
    merge(mean, comoment, n, sums, own, rows)


@fast
def average(z: Array) -> float:
    """Return the mean of z (B,), taken from its first number."""
    total = 0.0
    for i in range(len(z)):
        total += z[i] - z[0]
    return float(z[0]) + total / len(z)


@fast
def subtract_mean(z: Array, mean: float) -> float:
    """Subtract ``mean`` from z (B,) and return the sum of what is left."""
    total = 0.0
    for i in range(len(z)):
        z[i] -= mean
        total += z[i]
    return total


@fast
def product(a: Array, b: Array) -> float:
    """Return Σab."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total
