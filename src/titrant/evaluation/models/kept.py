"""What models said of the blocks of a log in files, kept between passes: predicted once.

The numbers of each block go to a temporary file of the process that found them, and come back bit
for bit, so memory stays flat. A worker that gets a block for the first time predicts it itself; so
does everyone where the file would be too large, or cannot be written.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from titrant._types import Array

    Key = tuple[int, int]
    """The number of a partition's first row, and that of a block in the partition."""

MOST = 1 << 30
"""Bytes in the temporary files of a process at most: 44 million rows of one policy."""
EVALUATIONS = 16
"""So many are remembered by a process: several may take turns."""


@dataclass(slots=True)
class Kept:
    """Arrays (k, n) of the blocks of one evaluation, in a file that ends with its process."""

    file: IO[bytes] = field(default_factory=TemporaryFile)
    places: dict[Key, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    """Where in the file a block begins, and its shape."""
    end: int = 0
    guard: Lock = field(default_factory=Lock)

    def get(self, key: Key, n: int) -> Array | None:
        """Return what is kept of a block of n rows, None for nothing."""
        with self.guard:
            if key not in self.places:
                return None
            start, shape = self.places[key]
            self.file.seek(start)
            content = self.file.read(8 * int(np.prod(shape)))
        return np.frombuffer(content).reshape(shape) if shape[1] == n else None

    def put(self, key: Key, numbers: Array) -> None:
        """Keep what is known of a block, where there is room."""
        with self.guard, suppress(OSError):
            if not self.file.closed and memory().size + numbers.nbytes <= MOST:
                self.file.seek(self.end)
                self.file.write(np.ascontiguousarray(numbers).tobytes())
                self.places[key] = self.end, numbers.shape
                self.end += numbers.nbytes

    def close(self) -> None:
        """Give back the room; whoever still asks finds nothing."""
        with self.guard:
            self.places.clear()
            self.file.close()


@dataclass(frozen=True, slots=True)
class Memory:
    """What a process keeps of the evaluations that it last worked on, each by its name."""

    kept: OrderedDict[str, Kept] = field(default_factory=OrderedDict)
    guard: Lock = field(default_factory=Lock)

    def of(self, evaluation: str) -> Kept | None:
        """Return what is kept of an evaluation; None where there is no place to do so."""
        with self.guard:
            if evaluation not in self.kept:
                try:
                    self.kept[evaluation] = Kept()
                except OSError:
                    return None
            self.kept.move_to_end(evaluation)
            if len(self.kept) > EVALUATIONS:
                self.kept.popitem(last=False)[1].close()
            return self.kept[evaluation]

    def forget(self, evaluation: str) -> None:
        """Give back the room of an evaluation that has ended."""
        with self.guard:
            if evaluation in self.kept:
                self.kept.pop(evaluation).close()

    @property
    def size(self) -> int:
        """Bytes in all files."""
        return sum(kept.end for kept in tuple(self.kept.values()))


def memory() -> Memory:
    """Return the memory of this process; a forked one does not write into its parent's files."""
    return _memory_of(os.getpid())


@cache
def _memory_of(_: int) -> Memory:
    return Memory()


def forget(evaluation: str) -> None:
    """Give back the room of an evaluation that has ended."""
    memory().forget(evaluation)
