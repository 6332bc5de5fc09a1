"""Halves of a log, drawn by a hash of row numbers: the same rows in memory and in files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from titrant.data import LoggedData
from titrant.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from titrant.data.source import Partition, Source


def half_of(log: Source, half: int, seed: int) -> Source:
    """Return half 0 or 1 of a log, in memory if the log is; no group is in both."""
    if not isinstance(log, LoggedData):
        if log.grouped:
            raise InvalidArgument(
                "A policy is learned from a log with groups in memory only: which rows of files "
                "are in which half is not known before they are read. Read the log with "
                "`LoggedData.from_frame`."
            )
        return Half(log, half, seed)
    if log.groups is None:
        return log.rows(_rows_of(log.first_row, len(log), half, seed))
    from titrant.outcome.crossfit import fold_at  # noqa: PLC0415

    keys, number = np.unique(log.groups, return_inverse=True)
    if len(keys) == len(log):
        return log.rows(_rows_of(log.first_row, len(log), half, seed))
    return log.rows(fold_at(number, 2, seed) == half)


def _rows_of(first: int, n: int, half: int, seed: int) -> NDArray[np.bool_]:
    """Return which of n rows from ``first`` on belong to a half (n,)."""
    from titrant.outcome import fold_of  # noqa: PLC0415

    return np.asarray(fold_of(first, n, 2, seed) == half)


def rows_before(row: int, half: int, seed: int) -> int:
    """Return how many rows of a half come before a row of the whole log.

    Of rows 2j and 2j + 1 one belongs to each half, so that counting them takes no pass.
    """
    before = row // 2
    return before + int(_rows_of(row - 1, 1, half, seed)[0]) if row % 2 else before


@dataclass(frozen=True, slots=True)
class HalfPartition:
    """The rows of one half in a partition, numbered as rows of that half."""

    whole: Partition
    half: int
    seed: int

    @property
    def first_row(self) -> int:
        """The number of its first row in the half."""
        return rows_before(self.whole.first_row, self.half, self.seed)

    def __len__(self) -> int:
        """Return the number of its rows."""
        end = self.whole.first_row + len(self.whole)
        return rows_before(end, self.half, self.seed) - self.first_row

    def of(self, whole: Partition) -> HalfPartition:
        """Return the rows of the same half in the same rows in another place."""
        return replace(self, whole=whole)

    def batches(self, size: int) -> Iterator[LoggedData]:
        """Yield the rows of the half, those of ``size`` rows of the whole at a time."""
        for batch in self.whole.batches(size):
            mine = _rows_of(batch.first_row, len(batch), self.half, self.seed)
            if mine.any():
                first = rows_before(batch.first_row, self.half, self.seed)
                yield batch.rows(mine).numbered(first)


@dataclass(frozen=True, slots=True)
class Half:
    """One half of a log, drawn by a hash of row numbers: the rows that it would be in memory."""

    whole: Source
    half: int
    seed: int

    @property
    def names(self) -> tuple[str, ...]:
        """The context columns."""
        return self.whole.names

    @property
    def dimension(self) -> int:
        """The number of doses."""
        return self.whole.dimension

    @property
    def bounded(self) -> bool:
        """Whether any dose has a finite bound."""
        return self.whole.bounded

    @property
    def has_propensity(self) -> bool:
        """Whether the log has a column of propensities."""
        return self.whole.has_propensity

    @property
    def atoms(self) -> tuple[float, ...] | None:
        """The point masses of the doses; None to look for them."""
        return self.whole.atoms

    @property
    def grouped(self) -> bool:
        """Whether several rows may belong to one group."""
        return self.whole.grouped

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.whole.weighted

    @property
    def sample_rows(self) -> int:
        """On how many rows models are fitted."""
        return self.whole.sample_rows

    @property
    def partitions(self) -> Sequence[Partition]:
        """The partitions of the whole that have rows of this half."""
        parts = [HalfPartition(part, self.half, self.seed) for part in self.whole.partitions]
        return [part for part in parts if len(part)]

    def of(self, whole: Source) -> Half:
        """Return the same half of another source."""
        return replace(self, whole=whole)

    def __len__(self) -> int:
        """Return the number of rows."""
        return rows_before(len(self.whole), self.half, self.seed)
