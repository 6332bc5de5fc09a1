"""Few rows out of many: flags that vectorize, and a list of what is flagged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.uint8]
    Index = NDArray[np.int64]

WORD = 8
"""Flags that are looked at together: the number of flags of a chunk is a multiple."""


@compiled
def listed(flags: Flags, rows: int, which: Index) -> int:
    """Set which to the flagged ones of some rows; return how many there are.

    Eight flags at a time are one number, which is 0 for most.
    """
    count, words = 0, flags.view(np.uint64)
    for word in range((rows + WORD - 1) // WORD):
        if words[word] != 0:
            first = word * WORD
            for i in range(first, min(first + WORD, rows)):
                # Written in any case, counted if it belongs: a branch would be mispredicted.
                which[count] = i
                count += 1 if flags[i] else 0
    return count
