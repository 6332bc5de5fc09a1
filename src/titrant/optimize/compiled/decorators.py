"""How loops are compiled: `@compiled`, `@fast` where sums may be reordered, `@inlined`.

numba keeps compiled code on disk for as long as the file of a function stays the same, and does
not see a change in another file that the function calls. So each function here is kept for as
long as all files of this package stay the same.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

FAST = {"reassoc", "nsz", "contract", "arcp"}
"""Sums may be reordered and fused, but a nan stays a nan."""

SOURCES = hashlib.sha256(
    b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
).digest()
"""The state of this package's files."""


def compiled(function: F) -> F:
    """Compile a function as it is written."""
    return _kept(function, njit(cache=True, nogil=True))


def fast(function: F) -> F:
    """Compile a function whose sums may be reordered, so that they vectorize."""
    return _kept(function, njit(cache=True, nogil=True, fastmath=FAST))


def inlined(function: F) -> F:
    """Compile a small function into its callers: passing an array costs more than it does."""
    return _kept(function, njit(cache=True, nogil=True, inline="always"))


def _kept(function: F, compiler: Callable[[F], Any]) -> F:
    """Keep a compiled function on disk for as long as all files are the same."""
    made: Any = compiler(function)
    # Not published by numba; should it change, a file's own changes are still seen.
    with suppress(AttributeError):
        made._cache._cache_file._source_stamp = SOURCES  # noqa: SLF001
    result: F = made
    return result
