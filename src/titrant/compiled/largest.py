"""The largest weights of a stream of chunks, at the price of one comparison a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from titrant.compiled.decorators import compiled, fast
from titrant.compiled.flags import listed

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.compiled.flags import Flags, Index


@compiled
def collect(
    w: Array, pool: Array, size: int, limit: float, kept: int, flags: Flags, which: Index
) -> tuple[int, float]:
    """Add the |w| (B,) above ``limit`` to the pool; return its size and the new limit.

    The pool has room for more than B + kept. When there is none for another chunk, all but the
    ``kept`` largest are dropped, and the least of these is the limit. flags and which (≥ B,) are
    scratch.
    """
    _flag(w, limit, flags)
    for j in range(listed(flags, len(w), which)):
        pool[size] = abs(w[which[j]])
        size += 1
    if size + len(w) < len(pool):
        return size, limit
    _bring_forward(pool, size, kept)
    limit = pool[0]
    for i in range(kept):
        limit = min(limit, pool[i])
    return kept, limit


@fast
def _flag(w: Array, limit: float, flags: Flags) -> None:
    """Flag the |w| above the limit."""
    for i in range(len(w)):
        flags[i] = abs(w[i]) > limit


@compiled
def _bring_forward(pool: Array, size: int, kept: int) -> None:
    """Reorder pool[:size] so that its ``kept`` largest come first (Hoare's selection)."""
    low, high = 0, size - 1
    while low < high:
        pivot, i, j = pool[(low + high) // 2], low, high
        while i <= j:
            while pool[i] > pivot:
                i += 1
            while pool[j] < pivot:
                j -= 1
            if i <= j:
                pool[i], pool[j] = pool[j], pool[i]
                i, j = i + 1, j - 1
        if kept <= j:
            high = j
        elif kept >= i:
            low = i
        else:
            return
