"""What models said of the blocks of a log in files, kept between passes: predicted once.

The numbers of each block go to a temporary file of the process that found them, and come back bit
for bit, so memory stays flat. A worker that gets a block for the first time predicts it itself; so
does everyone where the file would be too large, or cannot be written.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
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
            if not self.file.closed and _held() + numbers.nbytes <= MOST:
                self.file.seek(self.end)
                self.file.write(np.ascontiguousarray(numbers).tobytes())
                self.places[key] = self.end, numbers.shape
                self.end += numbers.nbytes

    def close(self) -> None:
        """Give back the room; whoever still asks finds nothing."""
        with self.guard:
            self.places.clear()
            self.file.close()


_of_evaluations: OrderedDict[str, Kept] = OrderedDict()
_guard = Lock()


def kept_of(evaluation: str) -> Kept | None:
    """Return what this process keeps of an evaluation; None where it has no place to do so."""
    with _guard:
        if evaluation not in _of_evaluations:
            try:
                _of_evaluations[evaluation] = Kept()
            except OSError:
                return None
        _of_evaluations.move_to_end(evaluation)
        if len(_of_evaluations) > EVALUATIONS:
            _of_evaluations.popitem(last=False)[1].close()
        return _of_evaluations[evaluation]


def forget(evaluation: str) -> None:
    """Give back the room of an evaluation that has ended."""
    with _guard:
        if evaluation in _of_evaluations:
            _of_evaluations.pop(evaluation).close()


def _held() -> int:
    return sum(kept.end for kept in tuple(_of_evaluations.values()))
