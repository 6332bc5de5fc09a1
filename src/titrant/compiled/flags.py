"""Few rows out of many: flags that vectorize, and a list of what is flagged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.uint8]
    Words = NDArray[np.uint64]
    Index = NDArray[np.int64]

WORD = 8
"""Flags that are one number: the number of flags of a chunk is a multiple of eight words."""


@compiled
def listed(flags: Flags, rows: int, which: Index) -> int:
    """Set which to the flagged ones of some rows; return how many there are.

    Eight flags at a time are one number, which is 0 for most, and so are eight of these.
    """
    count, words = 0, flags.view(np.uint64)
    for first in range(0, (rows + WORD - 1) // WORD, WORD):
        any_flag = np.uint64(0)
        for word in range(first, first + WORD):
            any_flag |= words[word]
        if any_flag != 0:
            count = _list(flags, words, first, rows, which, count)
    return count


@compiled
def _list(flags: Flags, words: Words, first: int, rows: int, which: Index, count: int) -> int:
    """Add what is flagged in eight words."""
    for word in range(first, first + WORD):
        if words[word] != 0:
            for i in range(word * WORD, min((word + 1) * WORD, rows)):
                # Written in any case, counted if it belongs: a branch would be mispredicted.
                which[count] = i
                count += 1 if flags[i] else 0
    return count
