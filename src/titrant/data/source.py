"""What a log is to those who only add up over its rows: partitions, each giving batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from titrant._types import Array
    from titrant.data.about import About
    from titrant.data.columns import Columns
    from titrant.data.logged import LoggedData

SAMPLE = 100_000
"""Rows of a log too large for memory on which models are fitted, unless told otherwise."""


class Partition(Protocol):
    """Consecutive rows of a log, small enough to be sent to where they are worked on.

    It holds no data, unless it is a log in memory itself: it says where to read them.
    """

    @property
    def first_row(self) -> int:
        """The number of its first row in the whole log."""

    def __len__(self) -> int:
        """Return the number of its rows."""

    def batches(self, size: int) -> Iterator[LoggedData]:
        """Yield its rows, ``size`` at a time, each with its place in the whole log."""


@runtime_checkable
class Source(Protocol):
    """A log that can be read again and again: in memory, in files, or on a cluster."""

    @property
    def names(self) -> tuple[str, ...]:
        """The context columns."""

    @property
    def about(self) -> About:
        """Names and units of doses and outcome, and which way is better."""

    @property
    def dimension(self) -> int:
        """The number of doses d."""

    @property
    def bounded(self) -> bool:
        """Whether any dose has a finite bound."""

    @property
    def has_propensity(self) -> bool:
        """Whether the log has a column of propensities."""

    @property
    def atoms(self) -> tuple[float, ...] | None:
        """The point masses of the doses, () for none; None to look for them."""

    @property
    def grouped(self) -> bool:
        """Whether several rows may belong to one group."""

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""

    @property
    def partitions(self) -> Sequence[Partition]:
        """All rows, in order."""

    @property
    def sample_rows(self) -> int:
        """On how many rows models are fitted that cannot be fitted by adding up."""

    def __len__(self) -> int:
        """Return the number of rows."""


@dataclass(frozen=True, eq=False, repr=False)
class TableSource:
    """A source of tables: what it says of its rows by columns, bounds and partitions."""

    columns: Columns
    limits: tuple[Array, Array]
    partitions: tuple[Partition, ...]
    sample_rows: int
    place: str
    """In how many files or partitions the rows are, in words."""
    atoms: tuple[float, ...] | None = field(default=None, kw_only=True)
    """The point masses of the doses; None to look for them."""

    @property
    def names(self) -> tuple[str, ...]:
        """The context columns."""
        return self.columns.features

    @property
    def about(self) -> About:
        """Names and units of doses and outcome, and which way is better."""
        return self.columns.about

    @property
    def dimension(self) -> int:
        """The number of doses."""
        return len(self.columns.doses)

    @property
    def bounded(self) -> bool:
        """Whether any dose has a finite bound."""
        return any(bool(np.isfinite(limit).any()) for limit in self.limits)

    @property
    def has_propensity(self) -> bool:
        """Whether the log has a column of propensities."""
        return self.columns.propensity is not None

    @property
    def grouped(self) -> bool:
        """Whether several rows may belong to one group."""
        return self.columns.groups is not None

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.columns.weights is not None

    @cached_property
    def _rows(self) -> int:
        return sum(map(len, self.partitions))

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._rows

    def __repr__(self) -> str:
        """Return one readable line."""
        known = "propensity known" if self.has_propensity else "no propensity"
        return (
            f"{type(self).__name__}({len(self):,} rows in {self.place}; {self.dimension} dose(s); "
            f"{len(self.names)} context(s); {known})"
        )


class Derived:
    """A source whose rows are those of another one, some of them or changed."""

    __slots__ = ()
    whole: Source

    @property
    def names(self) -> tuple[str, ...]:
        """The context columns."""
        return self.whole.names

    @property
    def about(self) -> About:
        """Names and units of doses and outcome, and which way is better."""
        return self.whole.about

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
    def sample_rows(self) -> int:
        """On how many rows models are fitted."""
        return self.whole.sample_rows


@runtime_checkable
class Selection(Protocol):
    """Some rows of a larger source or partition, read through it."""

    @property
    def whole(self) -> Any:  # noqa: ANN401  (a source of sources, a partition of partitions)
        """What the rows are selected from."""

    def of(self, whole: Any) -> Self:  # noqa: ANN401
        """Return the same selection from the same rows in another place."""


@runtime_checkable
class TellsIds(Protocol):
    """A partition of a table that has more columns than the log takes."""

    def may_be_ids(self, rows: int) -> Sequence[str]:
        """Return which other columns may be ids, by so many rows."""

    def with_ids(self, names: Sequence[str]) -> Any:  # noqa: ANN401  (a partition like itself)
        """Return the same rows, with the keys of other columns."""


def root_of(selected: Any) -> Any:  # noqa: ANN401
    """Return the source or partition that holds the rows behind any selections."""
    return root_of(selected.whole) if isinstance(selected, Selection) else selected


def read_from(selected: Any, rows: Any) -> Any:  # noqa: ANN401
    """Return what is selected from a partition, from its ``rows`` as they are read elsewhere."""
    if isinstance(selected, Selection):
        return selected.of(read_from(selected.whole, rows))
    return rows
