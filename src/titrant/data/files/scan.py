"""Parquet files as a log that is read batch by batch, as often as needed, in flat memory."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from titrant import _check
from titrant.data import features, frames, validate
from titrant.data.columns import ENCODED, FILLED, ColumnNote, Columns, Flow, missing_column
from titrant.data.files import check_no_copies, no_match, paths_of, say_other_columns
from titrant.data.files.stores import in_store, source_of
from titrant.data.keys import CALLED_ID, ROWS_OF_ID, are_alone, keys_of
from titrant.data.logged import LoggedData, checked_batch
from titrant.data.masses import checked_atoms
from titrant.data.source import SAMPLE, TableSource
from titrant.data.validate import reading_as
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from titrant._types import Array
    from titrant.data.columns import Recipe
    from titrant.data.keys import Keys
    from titrant.data.masses import Atoms
    from titrant.data.validate import Bounds

    AnyPath = str | os.PathLike[str]

PARTITION = 1 << 20
"""Rows of a partition at least, where a file has more row groups than one."""
MOST_IDS = 20
"""Other columns at most of which keys are read."""
BUFFER = 1 << 18
"""Bytes of a column that are read at a time."""


@dataclass(frozen=True, slots=True)
class ParquetPartition:
    """Consecutive row groups of one file: where they are, not what they hold."""

    path: str
    groups: tuple[int, ...]
    n: int
    first_row: int
    """The number of its first row in the whole log."""
    place: int
    """The number of its first row in the file."""
    columns: Columns
    limits: tuple[Array, Array]
    """The bounds of each dose, (1, d) each."""
    flow: Flow | None = None
    """How contexts are made of the columns, where their names do not say it."""
    others: tuple[str, ...] = ()
    """The columns of texts, numbers and bytes that have no part in the log."""
    ids: tuple[str, ...] = ()
    """Those of them whose keys are read with the rows."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.n

    def batches(self, size: int) -> Iterator[LoggedData]:
        """Yield the rows, ``size`` at a time, checked like any log."""
        done = 0
        for table in cut(self._tables(size), size):
            yield self._log(table, done)
            done += len(table)
        if done != self.n:
            raise DataError(
                f"`{self.path}` must not change while it is in use; got {done:,} rows in a part "
                f"that had {self.n:,} when it was scanned. Scan the files again."
            )

    def with_ids(self, names: Sequence[str]) -> ParquetPartition:
        """Return the same rows, with the keys of other columns."""
        return replace(self, ids=tuple(name for name in names if name in self.others))

    def may_be_ids(self, rows: int) -> list[str]:
        """Return which other columns may be ids by the first rows, those called so first.

        The first rows of an id may be alone in a long log: only what has few values, or is neither
        a text nor a whole number in each of them, is seen to be none.
        """
        if not self.others:
            return []
        table = next(cut(self._read(rows, self.others), rows))
        each = keys_of({name: features.as_array(table[name]) for name in self.others})
        keys = {name: own[~are_alone(own)] for name, own in each.items()}
        most = ROWS_OF_ID[1]
        found = [name for name, own in keys.items() if len(own) <= most * len(np.unique(own))]
        return sorted(found, key=lambda name: not CALLED_ID.search(name))[:MOST_IDS]

    def _tables(self, size: int) -> Iterator[pa.Table]:
        return self._read(size, (*self.columns.needed, *self.ids))

    def _read(self, size: int, names: Sequence[str]) -> Iterator[pa.Table]:
        # Buffering ahead would hold whole row groups twice, and without a buffer their columns are
        # read as a whole: of 12 columns a thread held 63 MB and 31 MB in place of 22. A store
        # answers a few large requests sooner than many small ones.
        far = in_store(self.path)
        reading = partial(pq.ParquetFile, pre_buffer=far, buffer_size=0 if far else BUFFER)
        with reading_as("Parquet", self.path), reading(source_of(self.path)) as file:
            stored = features.stored(names, file.schema_arrow.names)
            for batch in file.iter_batches(
                size, row_groups=self.groups, columns=stored, use_threads=False
            ):
                yield pa.Table.from_batches([batch])

    def _log(self, table: pa.Table, done: int) -> LoggedData:
        try:
            first = self.first_row + done
            ids = keys_of({name: features.as_array(table[name]) for name in self.ids}, first)
            return batch_of(table, self.columns, self.limits, first, flow=self.flow, ids=ids)
        except DataError as error:
            raise DataError(
                f"In `{self.path}`, rows counted from row {self.place + done:,} of the file: "
                f"{error}"
            ) from None


class ParquetSource(TableSource):
    """A log in Parquet files; see `scan_parquet`."""


def scan_parquet(
    path: AnyPath | Iterable[AnyPath],
    columns: Columns,
    *,
    bounds: Bounds = None,
    atoms: Atoms = None,
    recipe: Recipe | None = None,
    sample_rows: int = SAMPLE,
    partition_rows: int = PARTITION,
) -> ParquetSource:
    """Return the log in Parquet files, to be read part by part wherever a `LoggedData` can be used.

    Only the columns named are read, and where there are no groups those that may be ids of who has
    several rows, to point them out. Nothing but each file's footer is read now: how many rows it
    has, and whether it has the columns. All else is checked as it is read.

    Parameters
    ----------
    path : a file, a folder for the files directly in it, a pattern such as ``logs/*.parquet`` or
        ``logs/**/*.parquet`` for all below, or several files; names that begin with ``.`` or ``_``
        are left out of folders and patterns that do not spell them out. Each may be in an object
        store: ``s3://bucket/logs/*.parquet``, ``gs://…``, ``abfs://…``
    columns : which column plays which role; a context ``sex=male`` is the 0/1 indicator of the
        value ``male`` of a text column ``sex``; all values of the column but one need an indicator
    bounds : None or a pair (lower, upper) of the range in which doses are possible, each None, a
        number, or d numbers; the same in all rows
    atoms : as those of `LoggedData`: point masses of the doses; looked for unless given
    recipe : how a log in memory, of some of the rows, made its contexts: ``log.flow.recipe``. With
        its names as contexts, gaps are filled in all rows as they were there
    sample_rows : how many rows, drawn by a hash of their number, models are fitted on that cannot
        be fitted by adding up over rows
    partition_rows : the least size of a part of a file that is worked on by itself

    >>> scan_parquet("log.parquet", Columns(treatment="dose", outcome="loss", context="age"))
    Traceback (most recent call last):
    titrant.errors.DataError: There is no file at `log.parquet`. Check the path ...
    """
    owner = "scan_parquet"
    least = _check.count(partition_rows, "partition_rows", owner)
    sample = _check.count(sample_rows, "sample_rows", owner)
    if not isinstance(columns, Columns):
        raise _check.invalid("columns", owner, "Columns(treatment=…, outcome=…, …)", columns)
    limits = validate.bound_arrays(bounds, 1, len(columns.doses))
    masses = checked_atoms(atoms, len(columns.doses), owner)
    paths = _paths(path)
    codes = () if recipe is None else recipe.codes
    footers = [_footer(one, columns, codes) for one in paths]
    say_other_columns({footer.path: footer.others for footer in footers})
    if isinstance(path, str | os.PathLike):  # files that were named one by one are meant
        check_no_copies(os.fspath(path), {footer.path: sum(footer.sizes) for footer in footers})
    flow = None if recipe is None else _flow(sum(sum(f.sizes) for f in footers), columns, recipe)
    partitions: list[ParquetPartition] = []
    for footer in footers:
        first = partitions[-1].first_row + partitions[-1].n if partitions else 0
        found = _partitions(footer, columns, limits, first, least)
        others = footer.readable
        partitions += [replace(partition, flow=flow, others=others) for partition in found]
    place = "1 file" if len(paths) == 1 else f"{len(paths):,} files"
    source = ParquetSource(columns, limits, tuple(partitions), sample, place, atoms=masses)
    validate.check_rows(len(source))
    return source


def _paths(path: AnyPath | Iterable[AnyPath]) -> list[str]:
    if isinstance(path, str | os.PathLike):
        return paths_of(os.fspath(path), only="Parquet")
    several = [os.fspath(one) for one in path]
    if not several:
        raise no_match("")
    return several


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says of itself: the columns that are not read, and the size of row groups."""

    path: str
    others: list[str]
    sizes: list[int]
    readable: tuple[str, ...]
    """Those of the others that hold texts, numbers or, as keys of 16 bytes, bytes."""


def _may_be_id(kind: pa.DataType) -> bool:
    is_a = pa.types
    of_bytes = is_a.is_binary(kind) or is_a.is_large_binary(kind) or is_a.is_fixed_size_binary(kind)
    return bool(of_bytes or features.is_text(kind) or features.is_number(kind))


def _flow(rows: int, columns: Columns, recipe: Recipe) -> Flow:
    """Return what is done to each row by a recipe; how often shows as they are read."""
    notes = [
        ColumnNote(
            name, FILLED, f"Where the context `{name}` is missing, {fill:g} stands, as was given."
        )
        for name, fill in recipe.fills.items()
        if name in columns.features
    ]
    notes += [
        ColumnNote(
            name, ENCODED, f"The context `{name}` is a code of {len(recipe.levels[name]):,} texts."
        )
        for name in recipe.codes
        if name in columns.features
    ]
    return Flow(rows, rows, (), tuple(notes), recipe, contexts=columns.features)


def _footer(path: str, columns: Columns, codes: Sequence[str]) -> Footer:
    """Return the footer of a file that has the columns."""
    with reading_as("Parquet", path), pq.ParquetFile(source_of(path)) as file:
        _check_columns(path, file.schema_arrow, columns, codes)
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        names = file.schema_arrow.names
        stored = set(features.stored(columns.needed, names))
        others = [name for name in names if name not in stored]
        readable = tuple(n for n in others if _may_be_id(file.schema_arrow.field(n).type))
        return Footer(path, others, sizes, readable)


def _partitions(
    footer: Footer, columns: Columns, limits: tuple[Array, Array], first_row: int, least: int
) -> Iterator[ParquetPartition]:
    """Yield the partitions of one file: runs of row groups with at least so many rows."""
    place = 0
    for run in _runs(footer.sizes, least):
        n = sum(footer.sizes[i] for i in run)
        yield ParquetPartition(footer.path, run, n, first_row + place, place, columns, limits)
        place += n


def _runs(sizes: Sequence[int], least: int) -> Iterator[tuple[int, ...]]:
    """Yield consecutive row groups together until they have ``least`` rows; none without rows."""
    run: list[int] = []
    rows = 0
    for i, size in enumerate(sizes):
        run.append(i)
        rows += size
        if rows >= least:
            yield tuple(run)
            run, rows = [], 0
    if rows:
        yield tuple(run)


def _check_columns(path: str, schema: pa.Schema, columns: Columns, codes: Sequence[str]) -> None:
    """Refuse a file that lacks a column, or has one that does not hold numbers."""
    made = {name for name in columns.needed if name not in schema.names}
    sources = {name: features.source_of(name, schema.names)[0] for name in columns.features}
    for role, name in columns.roles:
        indicator = role == "context" and name in made and sources[name] in schema.names
        if name in made and not indicator:
            raise DataError(f"In `{path}`: {missing_column(name, role, schema.names)}")
        number = indicator or name in codes or features.is_number(schema.field(name).type)
        if not number and role != "groups":
            raise DataError(
                f"In `{path}`: the {role} column `{name}` must be numeric; got type "
                f"{schema.field(name).type}. Convert the column to numbers, or leave the file out."
            )


def batch_of(
    table: pa.Table,
    columns: Columns,
    limits: tuple[Array, Array],
    first_row: int,
    *,
    flow: Flow | None = None,
    ids: Mapping[str, Keys] | None = None,
) -> LoggedData:
    """Return some rows of a log, checked; ``limits`` are the bounds of each dose, (1, d) each."""
    names = columns.features
    recipe = None if flow is None else flow.recipe
    made = features.with_features(table, names, recipe)
    parts, labels = frames.read(made, columns)
    texts = features.texts_of(table, names)
    clocks = features.clocks_of(table, names) if recipe is None else recipe.clocks
    return checked_batch(
        parts, names, limits, labels, first_row, texts=texts, clocks=clocks, flow=flow, ids=ids
    )


def cut(tables: Iterator[pa.Table], size: int) -> Iterator[pa.Table]:
    """Yield tables of exactly ``size`` rows, the last one shorter: no row group shows through."""
    held: list[pa.Table] = []
    rows = 0
    for table in tables:
        held.append(table)
        rows += len(table)
        while rows >= size:
            whole = pa.concat_tables(held)
            yield whole.slice(0, size)
            held, rows = [whole.slice(size)], rows - size
    if rows:
        yield pa.concat_tables(held)
