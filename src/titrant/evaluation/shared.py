"""What rows of a log may share where nobody said which belong together: all they hold, or an id.

Of rows in memory this is looked at as it is. Rows drawn at random from files would be alone with
their ids, so the pass that surveys files draws ids: all rows of an id that is drawn, in any cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from titrant.data.keys import MOST_WHOLE, WholeKeys, splitmix64
from titrant.data.logged import joined
from titrant.data.source import TellsIds, read_from, root_of
from titrant.execute import BATCH, OverBatches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.keys import Keys
    from titrant.data.source import Partition, Source
    from titrant.execute import Engine


class Kind(NamedTuple):
    """What is shared: all of a row, or the value of a column."""

    name: str = ""
    """Of the column; "" for all of a row."""
    context: bool = False
    """Whether the column is a context."""


Shared: TypeAlias = "Mapping[Kind, WholeKeys]"

COPIES = Kind()
MOST = 50_000
"""Rows of files by which one kind is judged."""
SOME = 1000
"""Rows by which most columns are seen to be no ids."""


def columns_shared(log: LoggedData) -> Iterator[tuple[Kind, Keys]]:
    """Yield the contexts of whole numbers and the columns beside the log, as keys (n,)."""
    for name, column in zip(log.names, log.context.T, strict=True):
        if _whole(column[:SOME]) and _whole(column):
            yield Kind(name, context=True), column.astype(np.int64)
    for name, keys in log.ids.items():
        if len(keys) == len(log):
            yield Kind(name), keys


def row_keys(log: LoggedData) -> Keys:
    """Return a key of outcome, doses and contexts of each row (n,): equal rows have equal keys."""
    state = np.zeros(len(log), dtype=np.uint64)
    for column in (log.outcome, *log.doses.T, *log.context.T):
        state = splitmix64(state ^ (column + 0.0).view(np.uint64))
    return state.view(np.int64)


def _whole(column: Array) -> bool:
    return bool(np.all((np.abs(column) < MOST_WHOLE) & (column == np.round(column))))


# Over files.


def partitions_with_ids(log: Source) -> Sequence[Partition]:
    """Return the partitions of a log, where it is of tables with columns that may be ids."""
    first = root_of(log.partitions[0])
    if not isinstance(first, TellsIds):
        return log.partitions
    ids = first.may_be_ids(BATCH)
    return [read_from(one, root_of(one).with_ids(ids)) for one in log.partitions]


def shared_by(log: LoggedData, numbers: Keys) -> Shared:
    """Return what rows of a batch, with these numbers (n,) in the whole log, may share."""
    kinds = (COPIES, row_keys(log)), *columns_shared(log)
    return {kind: WholeKeys(keys, numbers, MOST).fitting for kind, keys in kinds}


def both_shared(one: Shared, other: Shared) -> Shared:
    """Return what rows of both may share: a column that is no id in one of them is none."""
    return {kind: keys + other[kind] for kind, keys in one.items() if kind in other}


@dataclass(frozen=True, slots=True)
class Fetched:
    """Some rows of files, in parts, and their numbers."""

    logs: tuple[LoggedData, ...]
    numbers: tuple[Keys, ...]

    def __add__(self, other: Fetched) -> Fetched:
        """Return both sets of rows."""
        return Fetched(self.logs + other.logs, self.numbers + other.numbers)


def rows_numbered(log: Source, numbers: Keys, engine: Engine) -> tuple[LoggedData, Keys]:
    """Return the rows of files with these numbers (m,), increasing, and the numbers."""
    found = engine.add_up(OverBatches(partial(_fetched, numbers), BATCH), log.partitions)
    return joined(found.logs), np.concatenate(found.numbers)


def _fetched(numbers: Keys, log: LoggedData) -> Fetched:
    first, last = np.searchsorted(numbers, [log.first_row, log.first_row + len(log)])
    own = numbers[first:last]
    return Fetched((log.rows(own - log.first_row),), (own,))
