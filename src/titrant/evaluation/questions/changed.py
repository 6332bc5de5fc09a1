"""A log whose rows are changed as they are read: other weights, another outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from titrant.data import LoggedData
from titrant.data.source import Derived

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from titrant.data.source import Partition, Source


class Change(Protocol):
    """From rows to the same rows with something else in them."""

    def __call__(self, log: LoggedData) -> LoggedData:
        """Return some rows, changed."""


def changed(log: Source, change: Change, *, weighted: bool | None = None) -> Source:
    """Return a log with every row changed, in memory if the log is.

    ``weighted`` says whether rows have weights afterwards, None that it is as before.
    """
    if isinstance(log, LoggedData):
        return change(log)
    return Changed(log, change, log.weighted if weighted is None else weighted)


@dataclass(frozen=True, slots=True)
class ChangedPartition:
    """The rows of a partition, changed."""

    whole: Partition
    change: Change

    @property
    def first_row(self) -> int:
        """The number of its first row in the whole log."""
        return self.whole.first_row

    def __len__(self) -> int:
        """Return the number of its rows."""
        return len(self.whole)

    def of(self, whole: Partition) -> ChangedPartition:
        """Return the same rows, changed, from another place."""
        return replace(self, whole=whole)

    def batches(self, size: int) -> Iterator[LoggedData]:
        """Yield the rows, ``size`` at a time."""
        return map(self.change, self.whole.batches(size))


@dataclass(frozen=True, slots=True)
class Changed(Derived):
    """A source whose rows are changed as they are read."""

    whole: Source
    change: Change
    weighted: bool

    @property
    def partitions(self) -> Sequence[Partition]:
        """All rows, in order."""
        return [ChangedPartition(part, self.change) for part in self.whole.partitions]

    def of(self, whole: Source) -> Changed:
        """Return the same of another source."""
        return replace(self, whole=whole)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.whole)

    def __repr__(self) -> str:
        return repr(self.whole)
