"""How loops are compiled: `@compiled`, `@fast` where sums may be reordered, `@inlined`.

numba keeps compiled code on disk for as long as the file of a function stays the same, and does
not see a change in another file that the function calls. So each function here is kept for as
long as all files with compiled functions stay the same.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numba import njit

from titrant.compiled.once import share

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Flags = NDArray[np.uint8]
    Words = NDArray[np.uint64]
    Index = NDArray[np.int64]


F = TypeVar("F", bound="Callable[..., Any]")

# numpy's errors: a division by zero is infinite. Python's would leave the loop, which then could
# not be vectorized.
OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# Without a home, numba's user folder `~/.cache` would be a folder called `~` wherever it runs.
if os.path.expanduser("~") == "~" and not os.access(Path(__file__).parent, os.W_OK):  # noqa: PTH111
    OPTIONS["cache"] = "NUMBA_CACHE_DIR" in os.environ
FAST = {"reassoc", "nsz", "contract", "arcp"}
"""Sums may be reordered and fused, but a nan stays a nan."""

FILES = sorted(Path(__file__).parents[1].glob("**/compiled/*.py"))
"""All files with compiled functions."""
SOURCES = hashlib.sha256(b"".join(file.read_bytes() for file in FILES)).digest()
"""The state of these files."""


def compiled(function: F) -> F:
    """Compile a function as it is written."""
    return _made(function, OPTIONS)


def fast(function: F) -> F:
    """Compile a function whose sums may be reordered, so that they vectorize.

    It becomes a part of each caller. As a function that is called it would be there twice, by
    itself and with its caller, reordered otherwise: the process that compiles both would use the
    one, and who loads the caller from disk the other.
    """
    return _made(function, {**OPTIONS, "fastmath": FAST, "forceinline": True})


def inlined(function: F) -> F:
    """Compile a small function into its callers: passing an array costs more than it does."""
    return _made(function, {**OPTIONS, "inline": "always"})


def _made(function: F, options: dict[str, Any]) -> F:
    """Return a function that compiles itself, kept on disk for as long as all files are the same.

    Where neither the package nor the user has a folder to keep it in, it is compiled each time.
    """
    try:
        made: Any = njit(**options)(function)
    except RuntimeError:  # numba found no place that can be written to
        made = njit(**{**options, "cache": False})(function)
    # Not published by numba; should it change, a file's own changes are still seen.
    with suppress(AttributeError):
        made._cache._cache_file._source_stamp = SOURCES  # noqa: SLF001
        share(made)
    result: F = made
    return result


# Few rows out of many: flags that vectorize, and a list of what is flagged.

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
