"""Tables in files: read whole, or as streams of small tables."""

from __future__ import annotations

import glob
import io
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from titrant.data.columns import check_present
from titrant.data.files import written
from titrant.data.files.paths import (
    ENDINGS,
    check_no_copies,
    format_of,
    paths_of,
    say_other_columns,
)
from titrant.data.files.stores import StorePath, in_store, name_of, opened, source_of
from titrant.data.files.written import AS_IT_SEEMS, Written
from titrant.data.frames import noted, without_views
from titrant.data.logged import LoggedData
from titrant.data.validate import first_line, listed, reading_as
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import BinaryIO

    from titrant.data.columns import Columns, Roles
    from titrant.data.validate import Bounds

    Typed = Collection[str] | None
    """The columns of a CSV that are not kept as text; None for all."""

# Which columns of a CSV are read as what they seem to be, and which stay as they are written.


def conversion(
    source: str | BinaryIO | pa.NativeFile,
    parse: pa_csv.ParseOptions,
    typed: Collection[str] | None,
    mark: str = written.POINT,
    unread: Collection[str] = (),
) -> pa_csv.ConvertOptions:
    """Return how to read the columns of a CSV: all but the `typed` ones as text.

    A key such as 007 would lose its zeros, and one of twenty digits its last ones, if it were read
    as a number. Without `typed` every column is what its values look like, by the decimal mark.
    """
    if typed is None and not unread:
        return pa_csv.ConvertOptions(decimal_point=mark)
    with pa_csv.open_csv(source, parse_options=parse) as reader:
        names = list(reader.schema.names)
    as_written = {} if typed is None else {n: pa.string() for n in names if n not in typed}
    wanted = [name for name in names if name not in unread]
    return pa_csv.ConvertOptions(
        column_types=as_written, decimal_point=mark, include_columns=wanted
    )


# One file as a stream of small tables, so that a file larger than memory can pass through.

ROWS = 65_536
"""Of one table of a stream."""
BLOCK = 16 << 20
"""Bytes of a CSV that are parsed at a time; the first block decides the types of the columns."""


def stream_of(
    path: str, above: int, typed: Typed = None
) -> Callable[[], Iterator[pa.Table]] | None:
    """Return how to read one file of more than ``above`` bytes part by part.

    None for a smaller file, and for anything that can only be read as a whole. With `typed`, all
    other columns of a CSV stay text, as they are written.
    """
    if in_store(path):
        store = StorePath.of(path)
        size = None if glob.has_magic(store.key) else store.size()
    else:
        size = Path(path).stat().st_size if Path(path).is_file() else None
    if size is None or size <= above:
        return None
    lowered = name_of(path).lower()
    for endings, read in _READERS.items():
        if lowered.endswith(endings):
            return lambda: _guarded(path, read, typed)
    return None


def _guarded(
    path: str, read: Callable[[str, Typed], Iterator[pa.Table]], typed: Typed
) -> Iterator[pa.Table]:
    with reading_as("a table", path):
        for table in read(path, typed):
            check_present((), table.column_names)
            yield table


def _csv_stream(path: str, typed: Typed) -> Iterator[pa.Table]:
    read, parse = pa_csv.ReadOptions(block_size=BLOCK), pa_csv.ParseOptions()
    convert = conversion(source_of(path), parse, typed)
    with pa_csv.open_csv(source_of(path), read, parse, convert) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _parquet(path: str, _: Typed) -> Iterator[pa.Table]:
    with pq.ParquetFile(source_of(path)) as file:
        for batch in file.iter_batches(ROWS):
            yield without_views(pa.Table.from_batches([batch]))


def _arrow(path: str, _: Typed) -> Iterator[pa.Table]:
    with opened(path) if in_store(path) else pa.memory_map(path) as source:
        reader = pa.ipc.open_file(source)
        for i in range(reader.num_record_batches):
            yield without_views(pa.Table.from_batches([reader.get_batch(i)]))


_READERS: dict[tuple[str, ...], Callable[[str, Typed], Iterator[pa.Table]]] = {
    (".csv",): _csv_stream,
    (".parquet", ".pq"): _parquet,
    (".arrow", ".feather"): _arrow,
}


# Whole tables, of one file or of many by a pattern; CSV from a pipe.

STDIN = "-"
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file whose column names are known; `load` reads some columns of it, or all."""

    names: list[str]
    load: Callable[[list[str] | None], pa.Table]

    @classmethod
    def of(cls, table: pa.Table) -> OpenedFile:
        """Return a file that had to be read as a whole."""
        return cls(
            table.column_names, lambda names: table if names is None else table.select(names)
        )


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: what to call it, the endings of its files, and how one is opened."""

    name: str
    endings: tuple[str, ...]
    open: Callable[[str, Typed, Written], OpenedFile]
    takes: tuple[str, ...] = ()
    """What a user may say of how it is written."""


def read_log(
    path: str, columns: Columns, bounds: Bounds = None, *, how: Written = AS_IT_SEEMS
) -> LoggedData:
    """Return the log in a file, in all files that match a pattern, or from the pipe ``-``."""
    return LoggedData.from_frame(
        read_table(path, columns.roles, others=False, how=how),
        treatment=columns.doses,
        outcome=columns.outcome,
        context=columns.features,
        propensity=columns.propensity,
        weights=columns.weights,
        groups=columns.groups,
        bounds=bounds,
    )


def read_table(
    path: str,
    roles: Roles = (),
    typed: Typed = None,
    *,
    others: bool = True,
    how: Written = AS_IT_SEEMS,
) -> pa.Table:
    """Return the table in a file, in a folder or in all files that match a pattern.

    None of the columns in `roles`, pairs (role, column name), may be missing; without `others`,
    only these are kept. With `typed`, all other columns of a CSV stay text, as they are written.
    `frames.notes_of` the table say what was found out of `how` it is written.
    """
    reading = Reading(roles, typed, others, how)
    if path == STDIN:
        content = sys.stdin.buffer.read()
        piped = Format("CSV", (), lambda *given: _csv(content, ",", *given), _SAID_OF_CSV)
        return reading.load(path, piped).table
    first, *rest = paths_of(path)
    if not rest:
        return reading.load(first, _format(first)).table
    try:
        before = reading.load(first, _format(first))
    except DataError as error:
        named = f"`{first}`" in str(error)
        raise (error if named else DataError(f"In `{first}`: {error}")) from None
    loaded = [before, *(reading.load(one, _format(one), before) for one in rest)]
    check_no_copies(path, {one.path: len(one.table) for one in loaded})
    return _joined(loaded)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The columns that were read of a file, and the names of all that it has."""

    path: str
    names: list[str]
    table: pa.Table


@dataclass(frozen=True, slots=True)
class Reading:
    """Which columns are read of each file."""

    roles: Roles
    typed: Typed
    others: bool
    how: Written = field(default=AS_IT_SEEMS)

    def load(self, path: str, form: Format, first: Loaded | None = None) -> Loaded:
        """Return the columns of a file; of several, those that were read of the first."""
        self.how.check_used(path, form.name, form.takes)
        with reading_as(form.name, path):
            opened = form.open(path, self.typed, self.how)
            wanted = None if self.others else [name for _, name in self.roles]
            if first is None:
                check_present(self.roles, opened.names)
            else:
                wanted = first.table.column_names
                if lacking := [name for name in wanted if name not in opened.names]:
                    raise DataError(
                        f"All files of a table must have the same columns; got `{path}` without "
                        f"{listed(lacking)}, which `{first.path}` has. Narrow the pattern, or add "
                        "the column."
                    )
            if wanted is None and self.how.unread:
                wanted = [name for name in opened.names if name not in self.how.unread]
            return Loaded(path, opened.names, opened.load(wanted))


def _joined(loaded: Sequence[Loaded]) -> pa.Table:
    say_other_columns({one.path: one.names for one in loaded})
    paths, tables = [one.path for one in loaded], [one.table for one in loaded]
    try:
        return _concatenated(tables)
    except pa.ArrowException as reason:
        raise DataError(
            "The columns of all files of a table must have types that combine; got one in "
            f"`{_odd(paths, tables)}` that differs from `{paths[0]}` ({first_line(reason)}). "
            "Convert the files to the same types."
        ) from None


def _concatenated(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="permissive")


def _odd(paths: Sequence[str], tables: list[pa.Table]) -> str:
    """Return the first file whose table does not go with the tables before it."""
    for i, path in enumerate(paths, start=1):
        try:
            _concatenated([table.slice(0, 0) for table in tables[:i]])
        except pa.ArrowException:
            return path
    return paths[-1]


def _format(path: str) -> Format:
    name = format_of(path)
    for form in FORMATS:
        if form.name == name:
            return form
    known = ", ".join(form.endings[0] for form in FORMATS)
    raise DataError(
        f"The format of `{path}` is not known from its name; got an ending other than {known}. "
        "Rename or convert the file, or pipe CSV to `-`."
    )


# How a file of each format is opened


def _open_csv(usual: str, path: str, typed: Typed, how: Written) -> OpenedFile:
    compression = _COMPRESSIONS.get(Path(name_of(path)).suffix.lower())
    with pa.input_stream(source_of(path), compression=compression) as stream:
        return _csv(stream.read(), usual, path, typed, how)


def _csv(content: bytes, usual: str, path: str, typed: Typed, how: Written) -> OpenedFile:
    if not content.strip():
        raise DataError(f"`{path}` is empty. A CSV begins with a line of column names.")
    content = written.in_utf8(path, content, how.encoding)
    delimiter, notes = written.separator(path, content, usual, how.separator)

    def parsed(mark: str) -> pa.Table:
        return noted(_parsed(content, delimiter, typed, mark, how.unread), notes)

    table = written.settled(parsed, how.decimal, typed)
    _check_texts(path, table)
    return OpenedFile.of(table)


def _parsed(
    content: bytes, delimiter: str, typed: Typed, mark: str, unread: Collection[str]
) -> pa.Table:
    parse = pa_csv.ParseOptions(delimiter=delimiter)
    convert = conversion(io.BytesIO(content), parse, typed, mark, unread)
    # Only the reader with one thread can say in which row it failed.
    every, one = pa_csv.ReadOptions(), pa_csv.ReadOptions(use_threads=False)
    try:
        return pa_csv.read_csv(io.BytesIO(content), every, parse, convert)
    except pa.ArrowInvalid:
        return pa_csv.read_csv(io.BytesIO(content), one, parse, convert)


def _check_texts(path: str, table: pa.Table) -> None:
    """Refuse texts that are not UTF-8, which the reader takes for bytes of no meaning."""
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        if pa.types.is_binary(kind):
            raise written.not_utf8(path, f"its column `{name}` holds other bytes")


def _open_excel(path: str, typed: Typed, how: Written) -> OpenedFile:
    table = written.sheet_of(path, how.sheet, how.unread)
    return OpenedFile.of(written.settled(lambda _: table, how.decimal, typed))


def _open_parquet(path: str, *_: object) -> OpenedFile:
    file = pq.ParquetFile(source_of(path))
    return OpenedFile(file.schema_arrow.names, lambda names: without_views(file.read(names)))


def _open_arrow(path: str, *_: object) -> OpenedFile:
    with opened(path) as source:
        try:
            table = without_views(pa.ipc.open_file(source).read_all())
        except pa.ArrowInvalid:  # the same format without a footer, as written to a pipe
            source.seek(0)
            table = without_views(pa.ipc.open_stream(source).read_all())
    return OpenedFile.of(table)


_SAID_OF_CSV = ("separator", "decimal", "encoding")
FORMATS = (
    Format("CSV", ENDINGS["CSV"], partial(_open_csv, ","), _SAID_OF_CSV),
    Format("TSV", ENDINGS["TSV"], partial(_open_csv, "\t"), _SAID_OF_CSV),
    Format("Excel", ENDINGS["Excel"], _open_excel, ("decimal", "sheet")),
    Format("Parquet", ENDINGS["Parquet"], _open_parquet),
    Format("Arrow", ENDINGS["Arrow"], _open_arrow),
)
