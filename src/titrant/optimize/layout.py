"""Rows laid out for the compiled loops: blocks that stay in cache, column by column inside."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.outcome.table import DoseTable

_CACHE = 32_768
"""Numbers of a block of features: 256 KiB stay in a core's cache while all candidates pass."""
_FEWEST, _MOST = 64, 1024
"""Rows of a block."""
_LINE = 8
"""Numbers of a cache line; the rows of a block are a multiple."""


def block_shape(n: int, width: int) -> tuple[int, int]:
    """Return how many blocks n rows of `width` features make, and their rows."""
    most = min(max(_CACHE // max(width, 1), _FEWEST), _MOST)
    count = max(-(-n // most), 1)
    return count, _LINE * -(-n // (count * _LINE))


def in_blocks(columns: Array, shape: tuple[int, int]) -> Array:
    """Return columns (n, K) as blocks (count, K, B); rows that fill the last one are 0."""
    count, size = shape
    filled = np.zeros((count * size, columns.shape[1]))
    filled[: len(columns)] = columns
    blocks = _aligned((count, columns.shape[1], size))
    blocks[...] = filled.reshape(count, size, -1).transpose(0, 2, 1)
    return blocks


def _aligned(shape: tuple[int, ...]) -> Array:
    """Return an array that begins on a cache line, where vectors load fastest."""
    size = math.prod(shape)
    room = np.empty(size + _LINE)
    start = -(room.ctypes.data // room.itemsize) % _LINE
    return room[start : start + size].reshape(shape)


def hermite(table: DoseTable | None, center: float) -> tuple[Array, tuple[float, float]]:
    """Return r̂ − center and its slope a step (n, G, 2), and the grid's first dose and step."""
    if table is None:
        return np.zeros((0, 0, 2)), (0.0, 1.0)
    cells = table.values.shape[1] - 1
    pairs = np.stack([table.values - center, table.slopes], axis=2)
    return pairs, (float(table.lower), float((table.upper - table.lower) / cells))
