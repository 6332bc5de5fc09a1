"""Tables of other libraries as float64 columns.

narwhals knows which columns a table has and picks the needed ones; the Arrow C stream carries
them over without a library-specific line. What cannot travel that way (an old pandas without the
stream, a sparse or mixed column) comes column by column through numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from titrant.data import validate, wording
from titrant.data.arrays import first_non_number
from titrant.data.columns import check_present, check_roles, context_roles
from titrant.data.validate import Labels, Parts

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data.columns import Columns, Roles
    from titrant.errors import DataError


_TEXT = ("string", "large_string", "string_view")


@runtime_checkable
class ArrowStream(Protocol):
    """A table that hands over its batches by the Arrow PyCapsule protocol."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the capsule of an Arrow C stream."""


def read(frame: object, columns: Columns) -> tuple[Parts, Labels]:
    """Return the needed columns of a table by role; nothing but their type is checked here."""
    label = _labels(columns.roles)
    by_name = _float_columns(frame, columns.roles)
    doses = [by_name[name] for name in columns.doses]
    q = columns.propensity
    parts = Parts(
        context=_stacked([by_name[name] for name in columns.features], len(doses[0])),
        treatment=doses[0] if len(doses) == 1 else _stacked(doses, len(doses[0])),
        outcome=by_name[columns.outcome],
        propensity=None if q is None else by_name[q],
    )
    labels = Labels(
        treatment=tuple(label[name] for name in columns.doses),
        outcome=label[columns.outcome],
        propensity="" if q is None else label[q],
        context=tuple(label[name] for name in columns.features),
    )
    return parts, labels


def read_context(frame: object, names: Sequence[str]) -> Array:
    """Return the contexts (n, p) of a table that holds nothing else, such as new patients."""
    roles = context_roles(names)
    check_roles(roles)
    by_name = _float_columns(frame, roles)
    validate.check_finite({_labels(roles)[name]: by_name[name] for name in names})
    return _stacked([by_name[name] for name in names], len(by_name[names[0]]))


def _labels(roles: Roles) -> dict[str, str]:
    return {name: f"{role} column `{name}`" for role, name in roles}


def _float_columns(frame: object, roles: Roles) -> dict[str, Array]:
    """Return each needed column (n,) by name."""
    label = _labels(roles)
    if isinstance(frame, Mapping):
        check_present(roles, list(frame))
        by_name = {name: validate.vector(frame[name], what) for name, what in label.items()}
        validate.check_lengths({label[name]: len(column) for name, column in by_name.items()})
        return by_name
    table = _needed(frame, roles)
    if isinstance(table, pa.Table):
        return {name: _from_arrow(table[name], what) for name, what in label.items()}
    return {name: validate.vector(table[name].to_numpy(), what) for name, what in label.items()}


def _needed(frame: object, roles: Roles) -> pa.Table | nw.DataFrame[Any]:
    """Return a table of the needed columns, after their names have been checked."""
    wanted = [name for _, name in roles]
    if nw.dependencies.is_pandas_like_dataframe(frame) or nw.dependencies.is_duckdb_relation(frame):
        # Asked first: narwhals refuses repeated names in its own words, or drops one of them.
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
    except (pa.ArrowException, TypeError):
        # Objects of mixed types and sparse columns have no Arrow form; numpy reads or names them.
        return frame


def _opened(frame: object) -> pa.RecordBatchReader:
    if isinstance(frame, pa.RecordBatchReader):
        return frame  # used as it is: a wrong column name leaves the user's reader unread
    if not isinstance(frame, ArrowStream):
        raise wording.not_a_table(frame)
    try:
        return pa.RecordBatchReader.from_stream(frame)
    except pa.ArrowInvalid:  # the stream of one column, not of a table
        raise wording.not_a_table(frame) from None


def _from_arrow(column: pa.ChunkedArray, label: str) -> Array:
    """Return an Arrow column as float64 (n,), NaN where it is null; memory is shared if it can."""
    kind = column.type
    is_a = pa.types
    if column.null_count == len(column):  # nothing there, whatever its type
        return np.full(len(column), np.nan)
    if is_a.is_floating(kind) or is_a.is_integer(kind) or is_a.is_boolean(kind):
        return _numpy(pc.cast(column, pa.float64(), safe=False))
    if is_a.is_decimal(kind):
        return _numpy(pc.cast(column, pa.float64()))
    raise _refusal(column, label)


def _numpy(column: pa.ChunkedArray) -> Array:
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _refusal(column: pa.ChunkedArray, label: str) -> DataError:
    kind, is_a = column.type, pa.types
    valid = pc.is_valid(column).to_numpy()
    row = int(np.argmax(valid))
    if is_a.is_dictionary(kind):
        return wording.not_numeric(label, "category", _value(column, row), row, wording.CATEGORIES)
    if is_a.is_temporal(kind):
        return wording.not_numeric(label, kind, _value(column, row), row, wording.MOMENTS)
    if str(kind) not in _TEXT:
        return wording.not_numeric(label, kind, _value(column, row), row, wording.OTHER)
    bad = first_non_number(column.to_pylist())
    remedy = wording.NUMBERS_AS_TEXT if bad is None else wording.TEXT
    row = row if bad is None else bad
    return wording.not_numeric(label, "text", _value(column, row), row, remedy)


def _value(column: pa.ChunkedArray, row: int) -> object:
    return column[row].as_py()


def _stacked(columns: Sequence[Array], n: int) -> Array:
    """Return the columns side by side as one C-contiguous array (n, p)."""
    out = np.empty((n, len(columns)))
    for j, column in enumerate(columns):
        out[:, j] = column
    return out
