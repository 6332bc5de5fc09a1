"""Half of the rows of a log that does not fit in memory, as a log of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from titrant.data import LoggedData
    from titrant.data.source import Partition, Source


def rows_before(row: int, half: int, seed: int) -> int:
    """Return how many rows of a half come before a row of the whole log.

    Of rows 2j and 2j + 1 one belongs to each half, so that counting them takes no pass.
    """
    from titrant.outcome import fold_of  # noqa: PLC0415

    before = row // 2
    if row % 2:
        before += int(fold_of(row - 1, 1, 2, seed)[0] == half)
    return before


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
        from titrant.outcome import fold_of  # noqa: PLC0415

        for batch in self.whole.batches(size):
            mine = fold_of(batch.first_row, len(batch), 2, self.seed) == self.half
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
