"""Poisson(1) counts as a pure function of the seed, the row's number and the draw.

Sixteen random bits are one of 2¹⁶ cells. Of these, ⌊2¹⁶·P(N = k)⌋ belong to the count k; the rest
of all P(N = k) together is five cells, and there 64 more bits tell the count. So four counts take
one number of 64 bits, one count in 13,000 takes another, and their law is Poisson's to the
precision of a double.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from titrant._hash import GOLDEN, splitmix64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

    Bits = NDArray[np.uint64]

SHARE = 4
"""Draws that share a number of 64 bits."""
_BITS = 16
# What is left out, P(N ≥ 20), is 2·10⁻¹⁹.
_LAW = np.array([math.exp(-1.0) / math.factorial(k) for k in range(20)]) * 2.0**_BITS
_WHOLE = np.floor(_LAW)
_PARTS = np.cumsum(_LAW - _WHOLE)

EDGES = np.cumsum(_WHOLE[_WHOLE > 0]).astype(np.uint16)
"""Cells below edge k belong to counts up to k; those from the last edge on are not told yet."""
UNTOLD = len(EDGES)
"""What the edges say of such cells."""
REST = np.floor(_PARTS[:-1] / _PARTS[-1] * 2.0**64).astype(np.uint64)
"""The count is the number of these that are not above 64 more bits."""


def poisson_counts(row: NDArray[np.int64], draws: int, seed: int) -> Array:
    """Return Poisson(1) counts (n, draws) that depend on the seed, row number and draw only."""
    key = row_keys(row, seed)
    # Draws 4j to 4j + 3 share 64 bits, so that asking for more draws keeps the first ones.
    states = np.arange(-(-draws // SHARE), dtype=np.uint64) * np.uint64(GOLDEN)
    shifts = np.arange(0, SHARE * _BITS, _BITS, dtype=np.uint64)
    parts = splitmix64(key[:, None] + states)[:, :, None] >> shifts
    cells = parts.astype(np.uint16).reshape(len(row), -1)[:, :draws]
    counts = np.searchsorted(EDGES, cells, side="right")
    untold = np.nonzero(counts == UNTOLD)
    counts[untold] = _counts_from_more(key[untold[0]], untold[1])
    return counts.astype(np.float64)


def row_keys(row: NDArray[np.int64], seed: int) -> Bits:
    """Return the states (n,) from which the counts of each row are drawn."""
    start = splitmix64(np.array([seed % 2**64], dtype=np.uint64))
    return splitmix64(start + row.astype(np.uint64) * np.uint64(GOLDEN))


def _counts_from_more(key: Bits, draw: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts of some rows and draws whose sixteen bits did not tell."""
    bits = splitmix64(splitmix64(key) + draw.astype(np.uint64) * np.uint64(GOLDEN))
    return np.searchsorted(REST, bits, side="right")
