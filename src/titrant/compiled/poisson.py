"""Sums over rows that are counted Poisson(1) times, for many draws: counts are never stored.

The counts are those of `titrant.inference.bootstrap`, bit for bit: four draws share the 64 bits of
a hash of seed, row and draw. They are counted and added in the type they come in, sixteen bits,
of which a processor takes 32 at a time. The machine must be little-endian: draws are read from
memory in the order of the bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast, inlined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

    Bits = NDArray[np.uint64]
    Cells = NDArray[np.uint16]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S30, S27, S31 = np.uint64(30), np.uint64(27), np.uint64(31)
SHARE = 4
"""Draws that share a number of 64 bits."""
UNTOLD, UNTOLD_FOUR = 8, np.uint64(0x0008_0008_0008_0008)
"""The count of a cell that more bits must tell, as a number and as a bit of four counts."""
ROWS = 4
"""Rows that are added together, which saves passes over the sums."""
WORDS = 256
"""Numbers of 64 bits drawn for a row at a time: their draws and sums stay in the fastest cache."""


@compiled
def poisson_sums(keys: Bits, columns: Array, edges: Cells, rest: Bits, words: int) -> Array:
    """Return ΣN and ΣN·columns (1 + k, 4·words) over rows with keys (n,) and columns (k, n).

    k is even: two columns are added together, so that counts become floats half as often.
    """
    sums = np.zeros((1 + len(columns), SHARE * words))
    for first in range(0, words, WORDS):
        last = min(first + WORDS, words)
        drawn = sums_of_draws(keys, columns, edges, rest, first, last)
        sums[:, SHARE * first : SHARE * last] = drawn
    return sums


@compiled
def sums_of_draws(
    keys: Bits, columns: Array, edges: Cells, rest: Bits, first: int, last: int
) -> Array:
    """Return the sums of the draws in words ``first`` to ``last``."""
    n, words = len(keys), last - first
    sums = np.zeros((1 + len(columns), SHARE * words))
    bits, offsets = np.empty(words, dtype=np.uint64), np.empty(words, dtype=np.uint64)
    for j in range(words):
        offsets[j] = np.uint64(first + j) * GOLDEN
    counts, values = np.zeros((ROWS, SHARE * words), dtype=np.uint16), np.zeros((2, ROWS))
    for start in range(0, n, ROWS):
        rows = min(ROWS, n - start)
        counts[rows:] = 0
        for i in range(rows):
            fill(keys[start + i], offsets, bits)
            count(bits.view(np.uint16), edges, counts[i])
            if some(counts[i].view(np.uint64)) & UNTOLD_FOUR:
                tell(keys[start + i], offsets[0] * np.uint64(SHARE), counts[i], rest)
        add_counts(counts, sums[0])
        for c in range(0, len(columns), 2):
            for i in range(rows):
                values[0, i], values[1, i] = columns[c, start + i], columns[c + 1, start + i]
            add_products(counts, values, sums[1 + c], sums[2 + c])
    return sums


@inlined
def mixed(state: np.uint64) -> np.uint64:
    """Return splitmix64 at a state."""
    z = state + GOLDEN
    z = (z ^ (z >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SECOND
    return z ^ (z >> S31)


@compiled
def fill(key: np.uint64, offsets: Bits, bits: Bits) -> None:
    """Set bits to splitmix64 at the states key + offsets."""
    for j in range(len(bits)):
        bits[j] = mixed(key + offsets[j])


@compiled
def count(cells: Cells, edges: Cells, counts: Cells) -> None:
    """Set counts to how many of the eight edges are not above each cell."""
    e0, e1, e2, e3 = edges[0], edges[1], edges[2], edges[3]
    e4, e5, e6, e7 = edges[4], edges[5], edges[6], edges[7]
    for d in range(len(cells)):
        x = cells[d]
        n = np.uint16(x >= e0) + np.uint16(x >= e1) + np.uint16(x >= e2) + np.uint16(x >= e3)
        m = np.uint16(x >= e4) + np.uint16(x >= e5) + np.uint16(x >= e6) + np.uint16(x >= e7)
        counts[d] = n + m


@compiled
def some(words: Bits) -> np.uint64:
    """Return the bits that any of some words has."""
    found = np.uint64(0)
    for j in range(len(words)):
        found |= words[j]
    return found


@compiled
def tell(key: np.uint64, offset: np.uint64, counts: Cells, rest: Bits) -> None:
    """Replace the counts that the edges did not tell; offset is that of the first draw."""
    stream, words = mixed(key) + offset, counts.view(np.uint64)
    for word in range(len(words)):
        if words[word] & UNTOLD_FOUR:
            for d in range(SHARE * word, SHARE * (word + 1)):
                if counts[d] == UNTOLD:
                    counts[d] = count_more(mixed(stream + np.uint64(d) * GOLDEN), rest)


@compiled
def count_more(bits: np.uint64, rest: Bits) -> int:
    """Return how many of the rest are not above 64 bits."""
    n = 0
    while n < len(rest) and bits >= rest[n]:
        n += 1
    return n


@compiled
def add_counts(counts: Cells, total: Array) -> None:
    """Add the counts of four rows to total."""
    a, b, c, d = counts[0], counts[1], counts[2], counts[3]
    for j in range(len(total)):
        total[j] += np.uint16(np.uint16(a[j] + b[j]) + np.uint16(c[j] + d[j]))


@fast
def add_products(counts: Cells, values: Array, one: Array, other: Array) -> None:
    """Add Σᵢ counts[i]·values[:, i] over four rows to one and the other."""
    a, b, c, d = counts[0], counts[1], counts[2], counts[3]
    v0, v1, v2, v3 = values[0, 0], values[0, 1], values[0, 2], values[0, 3]
    w0, w1, w2, w3 = values[1, 0], values[1, 1], values[1, 2], values[1, 3]
    for j in range(len(one)):
        n0, n1, n2, n3 = float(a[j]), float(b[j]), float(c[j]), float(d[j])
        one[j] += (n0 * v0 + n1 * v1) + (n2 * v2 + n3 * v3)
        other[j] += (n0 * w0 + n1 * w1) + (n2 * w2 + n3 * w3)
