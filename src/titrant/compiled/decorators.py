"""How loops are compiled: `@compiled`, `@fast` where sums may be reordered, `@inlined`.

numba keeps compiled code on disk for as long as the file of a function stays the same, and does
not see a change in another file that the function calls. So each function here is kept for as
long as all files with compiled functions stay the same.
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

# numpy's errors: a division by zero is infinite. Python's would leave the loop, which then could
# not be vectorized.
OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
FAST = {"reassoc", "nsz", "contract", "arcp"}
"""Sums may be reordered and fused, but a nan stays a nan."""

FILES = sorted(Path(__file__).parents[1].glob("**/compiled/*.py"))
"""All files with compiled functions."""
SOURCES = hashlib.sha256(b"".join(file.read_bytes() for file in FILES)).digest()
"""The state of these files."""


def compiled(function: F) -> F:
    """Compile a function as it is written."""
    return _kept(function, njit(**OPTIONS))


def fast(function: F) -> F:
    """Compile a function whose sums may be reordered, so that they vectorize."""
    return _kept(function, njit(**OPTIONS, fastmath=FAST))


def inlined(function: F) -> F:
    """Compile a small function into its callers: passing an array costs more than it does."""
    return _kept(function, njit(**OPTIONS, inline="always"))


def _kept(function: F, compiler: Callable[[F], Any]) -> F:
    """Keep a compiled function on disk for as long as all files are the same."""
    made: Any = compiler(function)
    # Not published by numba; should it change, a file's own changes are still seen.
    with suppress(AttributeError):
        made._cache._cache_file._source_stamp = SOURCES  # noqa: SLF001
    result: F = made
    return result
