"""A tally of the weights of a stream of chunks; the largest cost one comparison a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from titrant.compiled.decorators import compiled, fast
from titrant.compiled.flags import listed

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.compiled.flags import Flags, Index


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
    """Add weights (B,) to a tally (3,) and a pool of the largest; return its size and limit."""
    if add_weights(w, limit, tally) > 0:
        return collect(w, pool, size, limit, kept, flags, which)
    return size, limit


@fast
def add_weights(w: Array, limit: float, tally: Array) -> float:
    """Add Σ|w|, Σw⁴ and the count of w ≠ 0 to tally (3,); return how many |w| exceed the limit."""
    absolute = fourths = count = above = 0.0
    for i in range(len(w)):
        size, square = abs(w[i]), w[i] * w[i]
        absolute += size
        fourths += square * square
        count += 1.0 if size != 0.0 else 0.0
        above += 1.0 if size > limit else 0.0
    tally[0] += absolute
    tally[1] += fourths
    tally[2] += count
    return above


@compiled
def collect(
    w: Array, pool: Array, size: int, limit: float, kept: int, flags: Flags, which: Index
) -> tuple[int, float]:
    """Add the |w| (B,) above ``limit`` to the pool; return its size and the new limit.

    The pool has room for 2·kept + B; the limit is the least of the ``kept`` largest so far, as of
    when others were dropped last. flags and which (≥ B,) are scratch.
    """
    _flag(w, limit, flags)
    for j in range(listed(flags, len(w), which)):
        pool[size] = abs(w[which[j]])
        size += 1
    return keep_largest(pool, size, limit, kept)


@compiled
def keep_largest(pool: Array, size: int, limit: float, kept: int) -> tuple[int, float]:
    """Drop all but the ``kept`` largest of the pool if it holds more than twice as many."""
    if size <= 2 * kept:
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
