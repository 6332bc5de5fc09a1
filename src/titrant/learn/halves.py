"""Halves of a log, drawn by a hash of rows or groups: the same rows in memory and in files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import numpy as np

from titrant.data import LoggedData
from titrant.data.source import Derived
from titrant.errors import DataError
from titrant.execute import BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from titrant.data.keys import Keys
    from titrant.data.source import Partition, Source
    from titrant.execute import Engine


class RowChoice(Protocol):
    """Which rows belong to a half."""

    def __call__(self, log: LoggedData) -> NDArray[np.bool_]:
        """Return whether each row does (n,)."""

    def sizes(self, log: Source, engine: Engine) -> tuple[int, ...]:
        """Return how many rows of each partition do."""


def halves_of(log: Source, seed: int, keys: Keys | None, engine: Engine) -> tuple[Source, Source]:
    """Return two halves of a log, in memory if the log is; no group is in both.

    ``keys`` are those of all groups, in increasing order; None if each row is a group of its own.
    """
    first, second = (_half(log, _choice(half, seed, keys), engine) for half in (0, 1))
    return first, second


def half_of(log: LoggedData, half: int, seed: int) -> LoggedData:
    """Return half 0 or 1 of a log in memory, the rows that `halves_of` gives."""
    keys = None if log.groups is None else np.unique(log.groups)
    alone = keys is None or len(keys) == len(log)
    return log.rows(_choice(half, seed, None if alone else keys)(log))


def _half(log: Source, chosen: RowChoice, engine: Engine) -> Source:
    if isinstance(log, LoggedData):
        return log.rows(chosen(log))
    return Half(log, chosen, chosen.sizes(log, engine))


def _choice(half: int, seed: int, keys: Keys | None) -> RowChoice:
    if keys is None:
        return RowsOfHalf(half, seed)
    from titrant.outcome import fold_of  # noqa: PLC0415

    if len(keys) == 1:
        raise DataError(
            "All rows belong to one group, so there are no two halves of groups of which one can "
            "grade what the other learned. Collect more groups, or learn with `honest=False`."
        )
    return GroupsOfHalf(keys[fold_of(0, len(keys), 2, seed) == half])


@dataclass(frozen=True, slots=True)
class RowsOfHalf:
    """The rows of a half, by a hash of their numbers."""

    half: int
    seed: int

    def __call__(self, log: LoggedData) -> NDArray[np.bool_]:
        """Return whether each row belongs to the half (n,)."""
        return self._among(log.first_row, len(log))

    def sizes(self, log: Source, engine: Engine) -> tuple[int, ...]:  # noqa: ARG002
        """Return how many rows of each partition belong to the half, without a pass over them."""
        ends = ((part.first_row, part.first_row + len(part)) for part in log.partitions)
        return tuple(self.before(end) - self.before(start) for start, end in ends)

    def before(self, row: int) -> int:
        """Return how many rows of the half come before a row of the whole log.

        Of rows 2j and 2j + 1 one belongs to each half.
        """
        return row // 2 + (int(self._among(row - 1, 1)[0]) if row % 2 else 0)

    def _among(self, first: int, n: int) -> NDArray[np.bool_]:
        from titrant.outcome import fold_of  # noqa: PLC0415

        return np.asarray(fold_of(first, n, 2, self.seed) == self.half)


@dataclass(frozen=True, slots=True, eq=False)
class GroupsOfHalf:
    """The rows of a half, by their groups."""

    keys: Keys
    """Those of the half, in increasing order."""

    def __call__(self, log: LoggedData) -> NDArray[np.bool_]:
        """Return whether the group of each row belongs to the half (n,)."""
        groups = log.groups
        if groups is None:
            raise TypeError("rows without groups have no half")
        place = np.searchsorted(self.keys, groups)
        return np.asarray(self.keys[np.minimum(place, len(self.keys) - 1)] == groups)

    def sizes(self, log: Source, engine: Engine) -> tuple[int, ...]:
        """Return how many rows of each partition belong to the half: this takes a pass."""
        return engine.add_up(partial(_size, self), log.partitions)


def _size(chosen: RowChoice, partition: Partition) -> tuple[int]:
    return (sum(int(chosen(batch).sum()) for batch in partition.batches(BATCH)),)


@dataclass(frozen=True, slots=True)
class HalfPartition:
    """The rows of one half in a partition, numbered as rows of that half."""

    whole: Partition
    chosen: RowChoice
    first_row: int
    """The number of its first row in the half."""
    rows: int

    def __len__(self) -> int:
        """Return the number of its rows."""
        return self.rows

    def of(self, whole: Partition) -> HalfPartition:
        """Return the rows of the same half in the same rows in another place."""
        return replace(self, whole=whole)

    def batches(self, size: int) -> Iterator[LoggedData]:
        """Yield the rows of the half, those of ``size`` rows of the whole at a time."""
        first = self.first_row
        for batch in self.whole.batches(size):
            mine = self.chosen(batch)
            if mine.any():
                yield batch.rows(mine).numbered(first)
                first += int(mine.sum())


@dataclass(frozen=True, slots=True)
class Half(Derived):
    """One half of a log that is not in memory: the rows that it would have there."""

    whole: Source
    chosen: RowChoice
    sizes: tuple[int, ...]
    """Its rows in each partition of the whole."""

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.whole.weighted

    @property
    def partitions(self) -> Sequence[Partition]:
        """The partitions of the whole that have rows of this half."""
        before = accumulate(self.sizes, initial=0)
        every = zip(self.whole.partitions, before, self.sizes, strict=False)
        return [HalfPartition(part, self.chosen, first, n) for part, first, n in every if n]

    def of(self, whole: Source) -> Half:
        """Return the same half of another source with the same partitions."""
        return replace(self, whole=whole)

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(self.sizes)
