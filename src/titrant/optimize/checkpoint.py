"""The state of a long search on disk, so that a search that was killed goes on where it was.

The name of a file is made of everything the search depends on: one folder serves any number of
searches, and a search finds its own state or none.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from titrant._writing import draft
from titrant.errors import DataError, ExecutionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    State = Sequence[NDArray[Any]]

_BROKEN = (OSError, ValueError, KeyError, EOFError, BadZipFile)
"""What numpy raises at a file that is no archive of arrays."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where the state of a search is kept, and what the search is about."""

    folder: str
    about: str = ""
    """What distinguishes the search besides its starts and settings: the data, the estimator."""

    def file(self, starts: NDArray[Any], settings: str) -> Path:
        """Return the file of the search with these starts (m, P) and settings."""
        digest = sha256()
        for part in (self.about.encode(), settings.encode(), repr(starts.shape).encode()):
            digest.update(len(part).to_bytes(8, "little") + part)
        digest.update(np.ascontiguousarray(starts).tobytes())
        return Path(self.folder, f"search-{digest.hexdigest()[:32]}.npz")

    @staticmethod
    def load(file: Path, into: State) -> bool:
        """Fill arrays with the state in a file; return False, and change nothing, without one."""
        if not file.exists():
            return False
        try:
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as kept:
                arrays = [kept[f"arr_{i}"] for i in range(len(into))]
            for array, saved in zip(into, arrays, strict=True):
                array[...] = saved
        except _BROKEN as reason:
            raise DataError(
                f"`{file}` cannot be read as the state of a search ({type(reason).__name__}). "
                "Delete it to begin the search anew."
            ) from reason
        return True

    @staticmethod
    def save(file: Path, state: State) -> None:
        """Write arrays to a file, as a whole or not at all."""
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with draft(file) as stream:
                np.savez(stream, *state)
        except OSError as reason:
            raise ExecutionError(
                f"The state of the search cannot be written to `{file}`: {reason.strerror}. "
                "Make room there, or give another folder; the state before is kept."
            ) from reason
