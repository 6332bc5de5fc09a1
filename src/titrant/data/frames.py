"""Tables of other libraries as float64 columns.

narwhals knows which columns a table has and picks the needed ones; the Arrow C stream carries
them over without a library-specific line. What cannot travel that way (an old pandas without the
stream, a sparse or mixed column) comes column by column through numpy.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from titrant.data import features, validate
from titrant.data.columns import (
    TREATED_ON,
    ColumnNote,
    check_present,
    check_roles,
    context_roles,
)
from titrant.data.keys import group_keys
from titrant.data.validate import Labels, Parts, first_non_number, not_numeric
from titrant.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data.columns import Columns, Recipe, Roles


_TEXT = ("string", "large_string", "string_view")
WORDY = ("context", TREATED_ON)
"""Roles of columns that may hold texts and dates."""


@runtime_checkable
class ArrowStream(Protocol):
    """A table that hands over its batches by the Arrow PyCapsule protocol."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the capsule of an Arrow C stream."""


def read(frame: object, columns: Columns) -> tuple[Parts, Labels]:
    """Return the needed columns of a table by role; nothing but their type is checked here."""
    by_name = _columns(frame, columns.roles)
    names = columns.features
    return parts_of(columns, names, by_name), part_labels(columns, names)


def parts_of(columns: Columns, context: Sequence[str], by_name: Mapping[str, Any]) -> Parts:
    """Return columns (n,) by role; ``context`` are the names of the contexts."""
    doses = [by_name[name] for name in columns.doses]

    def of(name: str | None) -> Any:  # noqa: ANN401  (numbers or keys)
        return None if name is None else by_name[name]

    return Parts(
        context=stacked([by_name[name] for name in context], len(doses[0])),
        treatment=doses[0] if len(doses) == 1 else stacked(doses, len(doses[0])),
        outcome=by_name[columns.outcome],
        propensity=of(columns.propensity),
        weights=of(columns.weights),
        groups=of(columns.groups),
    )


def part_labels(columns: Columns, context: Sequence[str]) -> Labels:
    """Return what sentences call the columns; ``context`` are the names of the contexts."""
    label = labels_of(columns.roles)
    return Labels(
        treatment=tuple(label[name] for name in columns.doses),
        outcome=label[columns.outcome],
        propensity="" if columns.propensity is None else label[columns.propensity],
        context=tuple(labels_of(context_roles(context)).values()),
        weights="" if columns.weights is None else label[columns.weights],
    )


def read_context(frame: object, names: Sequence[str]) -> Array:
    """Return the contexts (n, p) of a table that holds nothing else, such as new patients."""
    by_name = _context_columns(frame, names)
    labeled = {what: by_name[name] for name, what in labels_of(context_roles(names)).items()}
    validate.check_finite(labeled, "the contexts of a policy")
    return stacked([by_name[name] for name in names], len(by_name[names[0]]))


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table of contexts, as it was given, and the names of its columns."""

    frame: Any
    names: tuple[Any, ...]
    """Texts, as far as they are used."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return _count_rows(self.frame, self.names)

    def read(self, wanted: Sequence[str], recipe: Recipe | None = None) -> Array:
        """Return the contexts ``wanted`` (n, p), which must be present and finite.

        A name such as ``sex=male`` that is no column is made of one; see `titrant.data.features`.
        The ``recipe`` is that of the log from which the wanted names come.
        """
        return read_context(self._with_features(wanted, recipe), wanted)

    def columns(self, wanted: Sequence[str]) -> Array:
        """Return the columns ``wanted`` (n, p), NaN where a value is missing."""
        by_name = _context_columns(self.frame, wanted)
        return stacked([by_name[name] for name in wanted], len(by_name[wanted[0]]))

    def unseen(self, levels: Mapping[str, Sequence[str]]) -> dict[str, NDArray[np.bool_]]:
        """Return for each column with known texts, where it is there, which rows have others."""
        there = {name: known for name, known in levels.items() if name in self.names}
        table = as_arrow(self.frame, context_roles(there)).table
        return features.unseen(table, there)

    def texts(self, name: str) -> list[str | None]:
        """Return the texts of a column, row by row."""
        table = as_arrow(self.frame, context_roles([name])).table
        found: list[str | None] = features.as_text(table[name]).to_pylist()
        return found

    def _with_features(self, wanted: Sequence[str], recipe: Recipe | None) -> object:
        """Return the table with every feature among ``wanted`` that it does not hold as it is."""
        stored = features.stored(wanted, self.names)
        remade = () if recipe is None else (*recipe.fills, *recipe.codes)
        if stored == list(wanted) and not set(remade).intersection(wanted):
            return self.frame
        roles = context_roles(stored)
        check_present(roles, self.names)
        table = as_arrow(self.frame, roles).table
        return features.with_features(table, wanted, recipe)


def named(contexts: object) -> NamedTable | None:
    """Return a table by the names of its columns; a Series is a table of one column.

    None for what is no table, and for one whose columns are only numbered: that is an array.
    """
    frame, names = with_names(contexts)
    return NamedTable(frame, tuple(names)) if any(isinstance(n, str) for n in names) else None


def is_table(contexts: object) -> bool:
    """Whether something has columns that are called something but 0, 1, 2, …, as in an array."""
    names = list(with_names(contexts)[1])
    return names != list(range(len(names)))


def with_names(contexts: Any) -> tuple[object, Sequence[object]]:  # noqa: ANN401
    """Return a table as it can be read, and what its columns are called: nothing if it is none."""
    if isinstance(contexts, Mapping):
        return contexts, list(contexts)
    if _names_itself(contexts):
        return contexts, list(contexts.columns)
    known = nw.from_native(contexts, pass_through=True, allow_series=True)
    if isinstance(known, nw.Series):
        return {known.name: known.to_numpy()}, [known.name]
    if isinstance(known, nw.DataFrame | nw.LazyFrame):
        return contexts, known.collect_schema().names()
    return _streamwith_names(contexts)


def read_once(frame: object) -> object:
    """Return a table that can be read several times; a stream is read here."""
    readable, _ = with_names(frame)
    return readable.read_all() if isinstance(readable, pa.RecordBatchReader) else readable


def _streamwith_names(contexts: object) -> tuple[object, Sequence[object]]:
    if not isinstance(contexts, ArrowStream):
        return contexts, ()
    try:
        reader = _opened(contexts)  # once: some streams can be read a single time
    except DataError:  # the stream of one column
        return contexts, ()
    return reader, reader.schema.names


def _count_rows(frame: Any, names: Sequence[str]) -> int:  # noqa: ANN401  (a table of any library)
    if isinstance(frame, Mapping):
        return len(frame[names[0]])
    known = nw.from_native(frame, pass_through=True)
    if isinstance(known, nw.LazyFrame):
        return int(known.select(nw.len()).collect().item())
    return len(known) if isinstance(known, nw.DataFrame) else len(frame.read_all())


def _context_columns(frame: object, names: Sequence[str]) -> dict[str, Array]:
    """Return the contexts of a table, each (n,) by name."""
    roles = context_roles(names)
    check_roles(roles)
    return _columns(frame, roles)


def labels_of(roles: Roles) -> dict[str, str]:
    """Return what sentences call each column, by name."""
    return {name: f"{role} column `{name}`" for role, name in roles}


def _columns(frame: object, roles: Roles) -> dict[str, Any]:
    """Return each needed column (n,) by name: keys of groups, and else numbers."""
    label = labels_of(roles)
    keys = {name for role, name in roles if role == "groups"}
    if isinstance(frame, Mapping):
        check_present(roles, list(frame))
        by_name = {
            name: group_keys(frame[name], what)
            if name in keys
            else validate.vector(frame[name], what)
            for name, what in label.items()
        }
        validate.check_lengths({label[name]: len(column) for name, column in by_name.items()})
        return by_name
    table = _needed(frame, roles)
    if isinstance(table, pa.Table):
        return {
            name: group_keys(table[name].to_numpy(), what)
            if name in keys
            else from_arrow(table[name], what)
            for name, what in label.items()
        }
    return {
        name: group_keys(table[name].to_numpy(), what)
        if name in keys
        else validate.vector(table[name].to_numpy(), what)
        for name, what in label.items()
    }


@dataclass(frozen=True, slots=True)
class ArrowColumns:
    """The needed columns of a table as Arrow holds them; ids of groups, which it may not, apart."""

    table: pa.Table
    ids: dict[str, Any]
    """The ids of groups (n,) by column."""

    def rows(self, kept: NDArray[np.bool_]) -> ArrowColumns:
        """Return the rows that a mask (n,) keeps."""
        ids = {name: column[kept] for name, column in self.ids.items()}
        return ArrowColumns(without_views(self.table).filter(pa.array(kept)), ids)


def without_views(table: pa.Table) -> pa.Table:
    """Return the table with Arrow's views of texts and bytes as texts and bytes."""
    for i, field in enumerate(table.schema):
        if field.type in _PLAIN:
            plain = field.with_type(_PLAIN[field.type])
            table = table.set_column(i, plain, table.column(i).cast(plain.type))
    return table


_PLAIN = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
"""The plain types that every function and format knows."""


def as_arrow(frame: object, roles: Roles) -> ArrowColumns:
    """Return the needed columns of a table of any library, with texts and dates where they may be.

    Columns of every other role than `WORDY` are numbers, or refused.
    """
    label, role = labels_of(roles), {name: role for role, name in roles}
    keys = {name for name in role if role[name] == "groups"}
    if isinstance(frame, Mapping):
        check_present(roles, list(frame))
        whole: Any = frame
    else:
        whole = _needed(frame, roles)
    if isinstance(whole, pa.Table):
        ids = {name: whole[name].to_numpy() for name in keys}
        return ArrowColumns(whole.select([name for name in label if name not in keys]), ids)
    held = {n: whole[n] if isinstance(frame, Mapping) else whole[n].to_numpy() for n in label}
    ids = {name: _ids(held[name]) for name in keys}
    columns = {
        name: _arrow_column(held[name], what, other=role[name] in WORDY)
        for name, what in label.items()
        if name not in keys
    }
    validate.check_lengths({label[n]: len(column) for n, column in {**columns, **ids}.items()})
    return ArrowColumns(pa.table(columns), ids)


def unused(frame: object, taken: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return the columns (n,) of a table that are not taken; none of a stream, read only once."""
    if isinstance(frame, Mapping):
        names = [name for name in frame if isinstance(name, str)]
        return {name: _ids(frame[name]) for name in names if name not in taken}
    if isinstance(frame, pa.Table):
        return {n: features.as_array(frame[n]) for n in frame.column_names if n not in taken}
    if _names_itself(frame) and not all(isinstance(n, str) for n in cast("Any", frame).columns):
        return {}
    known = nw.from_native(frame, pass_through=True)
    if not isinstance(known, nw.DataFrame):
        return {}
    return {name: known[name].to_numpy() for name in known.columns if name not in taken}


def _ids(value: Any) -> NDArray[Any]:  # noqa: ANN401
    """Return ids as they are: numpy would make texts of numbers that stand beside texts."""
    if isinstance(value, np.ma.MaskedArray):
        ids: NDArray[Any] = value.data.astype(object)
        ids[np.ma.getmaskarray(value)] = None
        return ids
    return np.array(value, dtype=object) if isinstance(value, list | tuple) else np.asarray(value)


def _arrow_column(value: Any, label: str, *, other: bool) -> pa.Array | pa.ChunkedArray:  # noqa: ANN401
    """Return a column in Arrow: numbers, or ``other`` values too."""
    if other and (found := _other_than_numbers(value)) is not None:
        return found
    return pa.array(validate.vector(value, label))


def _other_than_numbers(value: Any) -> pa.Array | pa.ChunkedArray | None:  # noqa: ANN401
    """Return a column of texts, categories or dates in Arrow, None for anything else."""
    if isinstance(value, np.ma.MaskedArray):
        return None
    if not isinstance(value, pa.Array | pa.ChunkedArray):
        array = np.array(value, dtype=object) if isinstance(value, list | tuple) else value
        array = np.asarray(array)
        if array.dtype.kind in "biuf" or array.ndim != 1:
            return None
        try:
            value = pa.array(
                array if array.dtype.kind in "OM" else array.tolist(), from_pandas=True
            )
        except (pa.ArrowException, OverflowError, TypeError):
            return None
    kind = value.type
    return value if features.is_text(kind) or features.is_date(kind) else None


def _needed(frame: object, roles: Roles) -> pa.Table | nw.DataFrame[Any]:
    """Return a table of the needed columns, after their names have been checked."""
    wanted = [name for _, name in roles]
    if _names_itself(frame):
        check_present(roles, list(cast("Any", frame).columns))
    known = frame if isinstance(frame, pa.Table) else nw.from_native(frame, pass_through=True)
    if isinstance(known, nw.LazyFrame):
        check_present(roles, known.collect_schema().names())
        return _from_lazy(known.select(*wanted))
    if isinstance(known, nw.DataFrame):
        check_present(roles, known.columns)
        return _from_eager(known.select(*wanted))
    reader = _opened(frame)
    check_present(roles, reader.schema.names)
    return reader.read_all().select(wanted)


def _names_itself(frame: object) -> bool:
    """Return whether to ask a table for its columns before narwhals sees it.

    narwhals refuses repeated names in its own words, or drops one of them.
    """
    known = nw.dependencies
    return known.is_pandas_like_dataframe(frame) or known.is_duckdb_relation(frame)


def _from_lazy(frame: nw.LazyFrame[Any]) -> pa.Table:
    native = frame.to_native()
    if isinstance(native, ArrowStream):
        return pa.RecordBatchReader.from_stream(native).read_all()
    return frame.collect(backend="pyarrow").to_native()


def _from_eager(frame: nw.DataFrame[Any]) -> pa.Table | nw.DataFrame[Any]:
    native = frame.to_native()
    if not isinstance(native, ArrowStream):
        return frame
    try:
        return pa.RecordBatchReader.from_stream(native).read_all()
    except (pa.ArrowException, TypeError, OverflowError):
        # Objects of mixed types, huge integers and sparse columns have no Arrow form; numpy reads
        # or names them.
        return frame


def _opened(frame: object) -> pa.RecordBatchReader:
    if isinstance(frame, pa.RecordBatchReader):
        return frame  # used as it is: a wrong column name leaves the user's reader unread
    try:
        if isinstance(frame, ArrowStream):
            return pa.RecordBatchReader.from_stream(frame)
    except pa.ArrowInvalid:  # the stream of one column, not of a table
        pass
    kind = type(frame).__name__
    got = f"the text {frame!r}" if isinstance(frame, str) else f"an object of type `{kind}`"
    raise DataError(
        "The `frame` of `LoggedData.from_frame` must be a pandas, polars, pyarrow or duckdb table, "
        f"an Arrow stream or a dict of columns; got {got}. Read files with "
        "`titrant.data.files.read_log`, and arrays with `LoggedData(context, treatment, outcome)`."
    )


def from_arrow(column: pa.ChunkedArray, label: str) -> Array:
    """Return an Arrow column as float64 (n,), NaN where it is null; memory is shared if it can."""
    kind = column.type
    is_a = pa.types
    if column.null_count == len(column):  # nothing there, whatever its type
        return np.full(len(column), np.nan)
    if is_a.is_floating(kind) or is_a.is_integer(kind) or is_a.is_boolean(kind):
        return features.numbers(pc.cast(column, pa.float64(), safe=False))
    if is_a.is_decimal(kind):
        return features.numbers(pc.cast(column, pa.float64()))
    raise _refusal(column, label)


def _refusal(column: pa.ChunkedArray, label: str) -> DataError:
    kind, is_a = column.type, pa.types
    valid = features.flags(pc.is_valid(column))
    row = int(np.argmax(valid))
    if is_a.is_dictionary(kind):
        return not_numeric(label, "category", _value(column, row), row, validate.CATEGORIES)
    if is_a.is_temporal(kind):
        return not_numeric(label, kind, _value(column, row), row, validate.MOMENTS)
    if str(kind) not in _TEXT:
        return not_numeric(label, kind, _value(column, row), row, validate.OTHER)
    bad = first_non_number(column.to_pylist())
    remedy = validate.NUMBERS_AS_TEXT if bad is None else validate.TEXT
    row = row if bad is None else bad
    return not_numeric(label, "text", _value(column, row), row, remedy)


def _value(column: pa.ChunkedArray, row: int) -> object:
    return column[row].as_py()


def stacked(columns: Sequence[Array], n: int) -> Array:
    """Return the columns side by side as one C-contiguous array (n, p)."""
    out = np.empty((n, len(columns)))
    for j, column in enumerate(columns):
        out[:, j] = column
    return out


# Notes on how a table was read from its file, which go with it.

_NOTES = b"titrant.notes"


def noted(table: pa.Table, notes: Iterable[ColumnNote]) -> pa.Table:
    """Return the table with these notes behind those that it has."""
    every = [asdict(note) for note in (*notes_of(table), *notes)]
    if not every:
        return table
    metadata = table.schema.metadata or {}
    return table.replace_schema_metadata({**metadata, _NOTES: json.dumps(every)})


def notes_of(frame: object) -> tuple[ColumnNote, ...]:
    """Return the notes on how a table was read, but for columns that it has not any more."""
    if not isinstance(frame, pa.Table):
        return ()
    content = (frame.schema.metadata or {}).get(_NOTES, b"[]")
    notes = (ColumnNote(**entry) for entry in json.loads(content))
    return tuple(note for note in notes if note.column in {"", *frame.column_names})
