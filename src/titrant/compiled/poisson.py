"""Sums over rows that are counted Poisson(1) times, for many draws: counts are never stored.

The counts are those of `titrant.inference.bootstrap.poisson_counts`, bit for bit: a hash of seed,
row and draw, 32 bits of it a draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

    Bits = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ROWS = 4
S30, S27, S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@compiled
def poisson_sums(keys: Bits, columns: Array, thresholds: NDArray[np.uint32], pairs: int) -> Array:
    """Return ΣN and ΣN·columns (1 + k, 2·pairs) over rows with keys (n,) and columns (n, k).

    A draw counts a row N = #{thresholds ≤ its 32 bits} times. Draws stand in the order of their
    halves in memory. Rows are added four at a time, which saves passes over the sums.
    """
    n, k = columns.shape
    sums, counts = np.zeros((1 + k, 2 * pairs)), np.zeros((_ROWS, 2 * pairs))
    bits, offsets = np.empty(pairs, dtype=np.uint64), np.empty(pairs, dtype=np.uint64)
    for j in range(pairs):
        offsets[j] = np.uint64(j + 1) * GOLDEN
    values = np.zeros((1 + k, _ROWS))
    for start in range(0, n, _ROWS):
        rows = min(_ROWS, n - start)
        values[:] = 0.0
        for i in range(rows):
            fill(keys[start + i], offsets, bits)
            count(bits.view(np.uint32), thresholds, counts[i])
            values[0, i] = 1.0
            for c in range(k):
                values[1 + c, i] = columns[start + i, c]
        for c in range(1 + k):
            add_products(counts, values[c], sums[c])
    return sums


@compiled
def fill(key: np.uint64, offsets: Bits, bits: Bits) -> None:
    """Set bits to splitmix64 at the states key + offsets."""
    for j in range(len(bits)):
        z = key + offsets[j]
        z = (z ^ (z >> S30)) * FIRST
        z = (z ^ (z >> S27)) * SECOND
        bits[j] = z ^ (z >> S31)


@fast
def count(halves: NDArray[np.uint32], thresholds: NDArray[np.uint32], counts: Array) -> None:
    """Set counts to how many thresholds are not above each number.

    Beyond the first seven it is one number in 12,000 that needs another look.
    """
    t0, t1, t2, t3 = thresholds[0], thresholds[1], thresholds[2], thresholds[3]
    t4, t5, t6, t7 = thresholds[4], thresholds[5], thresholds[6], thresholds[7]
    rare = 0
    for d in range(len(halves)):
        x = halves[d]
        n = np.int32(x >= t0) + np.int32(x >= t1) + np.int32(x >= t2) + np.int32(x >= t3)
        n += np.int32(x >= t4) + np.int32(x >= t5) + np.int32(x >= t6)
        counts[d] = n
        rare += x >= t7
    if rare > 0:
        for d in range(len(halves)):
            for k in range(7, len(thresholds)):
                counts[d] += halves[d] >= thresholds[k]


@fast
def add_products(counts: Array, values: Array, total: Array) -> None:
    """Add Σᵢ counts[i]·values[i] over four rows to total."""
    a, b, c, d = counts[0], counts[1], counts[2], counts[3]
    v0, v1, v2, v3 = values[0], values[1], values[2], values[3]
    for j in range(len(total)):
        total[j] += (a[j] * v0 + b[j] * v1) + (c[j] * v2 + d[j] * v3)
