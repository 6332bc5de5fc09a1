"""Contexts made of the columns of a table, each by its name and the recipe of its log.

| name             | what it is                                                          |
|------------------|---------------------------------------------------------------------|
| `age`            | the column, with the recipe's number where it is missing            |
| `age is missing` | 1 where the column has no value, else 0                             |
| `sex=male`       | 1 where the column `sex` has the text `male`, else 0                |
| `state`          | of many texts: the place in the recipe's list, its end if it is new |
| `visit.month`    | of a date: `year`, `month`, `day` (of the month), `weekday` (Monday |
|                  | is 1), `hour`, or `days`, the running time: whole ones since 1970   |

All but codes and fills need no recipe: a policy saved with such names can be applied to a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from titrant.data.columns import IS_MISSING, Recipe, Texts, zone_called
from titrant.data.validate import first_rows, of_rows
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array

Scalar = TypeVar("Scalar", bound=np.generic)

MISSING = "missing"
"""The level of a text that is not there. It comes last, so that it is never the reference."""
MARKS = ("#N/A", "#NA", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null")
"""Texts that stand for a value that is not there, as they do among the numbers of a CSV."""
PARTS = ("year", "month", "day", "weekday", "hour", "days")
"""Of a date. Without the running time, what changed over time would be in no context."""


def with_features(
    table: pa.Table, features: Iterable[str], recipe: Recipe | None = None
) -> pa.Table:
    """Return the table with every feature that its columns allow, made anew where it must be."""
    known = Recipe() if recipe is None else recipe
    wanted = tuple(features)
    result = table
    for feature in wanted:
        column = _made(table, feature, wanted, known)
        if column is not None:
            result = _put(result, feature, column)
    return result


def _put(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


def _made(
    table: pa.Table, feature: str, wanted: Collection[str], recipe: Recipe
) -> pa.ChunkedArray | None:
    """Return a feature, None where the table holds it as it is, or has no column for it."""
    available = table.column_names
    if feature in available:
        return _stored(table[feature], feature, recipe)
    source, part = source_of(feature, available)
    if source not in available:
        return None
    column = table[source]
    if part == IS_MISSING:
        return _floats(gaps(column))
    if part in PARTS and feature == f"{source}.{part}":
        if is_text(column.type) and source in recipe.dates:
            column = read_dates(column, source, recipe.dates[source])
        if source in recipe.clocks:
            column = _by_clock(column, source, recipe.clocks[source])
        return _filled(date_part(column, source, part), recipe.fills.get(feature))
    levels = recipe.levels.get(source, ())
    may_miss = MISSING in levels or f"{source}={MISSING}" in wanted
    found = _as_known(texts(column, source, may_miss=may_miss), levels)
    return pc.cast(pc.equal(found, part), pa.float64())


def _stored(column: pa.ChunkedArray, name: str, recipe: Recipe) -> pa.ChunkedArray | None:
    if name in recipe.codes:
        levels = recipe.levels[name]
        found = _as_known(texts(column, name, may_miss=MISSING in levels), levels)
        place = pc.index_in(found, value_set=pa.array(levels, pa.string()))
        return pc.cast(pc.fill_null(place, fill_value=len(levels)), pa.float64())
    fill = recipe.fills.get(name)
    return None if fill is None or not is_number(column.type) else _filled(column, fill)


def _filled(column: pa.ChunkedArray, fill: float | None) -> pa.ChunkedArray:
    numbers = pc.cast(column, pa.float64(), safe=False)
    if fill is None:
        return numbers
    return pc.if_else(pc.is_null(numbers, nan_is_null=True), fill, numbers)


def _floats(mask: NDArray[np.bool_]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(mask.astype(np.float64))])


def decoded(
    x: NDArray[np.float64], names: Sequence[str], recipe: Recipe | None = None
) -> dict[str, NDArray[Any]]:
    """Return the columns that contexts (n, p) called ``names`` were made of, as far as they tell.

    The way back: indicators and codes are texts again, and what was filled is missing, as NaN or
    None. Dates stay the parts that were made of them.
    """
    known = Recipe() if recipe is None else recipe
    place = {name: j for j, name in enumerate(names)}
    found: dict[str, NDArray[Any]] = {}
    for name, j in place.items():
        column = column_of(name)
        missing = place.get(f"{column}{IS_MISSING}")
        if name in known.codes:
            found[name] = _level_at(known.levels[name], x[:, j].astype(np.intp))
        elif column in known.levels and name != column:
            if column not in found:
                levels, which = known.levels[column], np.zeros(len(x), dtype=np.intp)
                for k, level in enumerate(levels):
                    own = place.get(f"{column}={level}")
                    which = which if own is None else np.where(x[:, own] > 0.0, k, which)
                found[column] = _level_at(levels, which)
        elif missing is None:
            found[name] = x[:, j]
        elif missing != j:
            found[name] = np.where(x[:, missing] > 0.0, np.nan, x[:, j])
    return found


def _level_at(levels: Sequence[str], place: NDArray[np.intp]) -> NDArray[Any]:
    """Return the text at each place (n,), None where it was missing."""
    there = [None if level == MISSING else level for level in levels]
    return np.array([*there, None], dtype=object)[np.minimum(place, len(there))]


def source_of(feature: str, available: Collection[str]) -> tuple[str, str]:
    """Return the column that a feature is made of, and what of it: a level, a part, or the gaps.

    A feature that no column is there for comes back itself, with an empty text.
    """
    base = feature.removesuffix(IS_MISSING)
    if base != feature and base in available:
        return base, IS_MISSING
    column, level = split(feature, available)
    if column != feature:
        return column, level
    base, _, part = feature.rpartition(".")
    return (base, part) if part in PARTS and base in available else (feature, "")


def column_of(feature: str) -> str:
    """Return the column that a feature's name says it is made of, with no table at hand."""
    column, equals, _ = feature.removesuffix(IS_MISSING).partition("=")
    base, _, part = column.rpartition(".")
    return base if base and part in PARTS and not equals else column or feature


def split(feature: str, available: Collection[str]) -> tuple[str, str]:
    """Return column and level of an indicator's name; either may contain an equals sign."""
    cuts = [i for i, letter in enumerate(feature) if letter == "="]
    for i in cuts:
        if feature[:i] in available:
            return feature[:i], feature[i + 1 :]
    return feature, ""


def stored(features: Iterable[str], available: Sequence[str]) -> list[str]:
    """Return the columns of a table from which features are made."""
    names = (name if name in available else source_of(name, available)[0] for name in features)
    return list(dict.fromkeys(names))


def typed(features: Iterable[str]) -> list[str]:
    """Return the columns that are not read as texts for the sake of features."""
    found: list[str] = []
    for feature in features:
        base, _, part = feature.rpartition(".")
        found += [feature, feature.removesuffix(IS_MISSING), *([base] if part in PARTS else [])]
    return list(dict.fromkeys(found))


def texts_of(table: pa.Table, features: Iterable[str]) -> tuple[Texts, ...]:
    """Return the texts of every column from which `with_features` makes indicators."""
    named: dict[str, list[str]] = {}
    for feature in features:
        column, level = split(feature, table.column_names)
        if feature not in table.column_names and column in table.column_names:
            named.setdefault(column, []).append(level)
    return tuple(
        Texts.of(column, levels, _unique(table[column], column, may_miss=MISSING in levels))
        for column, levels in named.items()
    )


def clocks_of(table: pa.Table, features: Iterable[str]) -> dict[str, str]:
    """Return the time zone of each column of dates from which features are made."""
    found = {}
    for feature in features:
        source, part = source_of(feature, table.column_names)
        if feature not in table.column_names and part in PARTS and source in table.column_names:
            found[source] = clock_of(table[source].type)
    return found


def _unique(column: pa.ChunkedArray, name: str, *, may_miss: bool) -> list[str]:
    found: list[str] = pc.unique(texts(column, name, may_miss=may_miss)).to_pylist()
    return found


def unseen(table: pa.Table, levels: Mapping[str, Sequence[str]]) -> dict[str, NDArray[np.bool_]]:
    """Return for each column with known levels, where the table has it, which rows have others."""

    def strange(name: str, known: Sequence[str]) -> NDArray[np.bool_]:
        column = table[name]
        found = texts(column, name, may_miss=True) if MISSING in known else as_text(column)
        return ~flags(pc.is_in(_as_known(found, known), pa.array(known, pa.string())))

    there = {name: known for name, known in levels.items() if name in table.column_names}
    return {name: strange(name, known) for name, known in there.items()}


def texts(column: pa.ChunkedArray, name: str, *, may_miss: bool) -> pa.ChunkedArray:
    """Return the values of a column as text, `MISSING` where there is none if it may miss.

    If it may not, "NA" is a text like others: so it was in tables without gaps.
    """
    found, missing = as_text(column), without_text(column, may_miss=may_miss)
    if not missing.any():
        return found
    if not may_miss:
        raise DataError(
            f"The context column `{name}` must name a category in every row; got none in "
            f"{of_rows(missing)} ({first_rows(missing)}). Drop these rows, or give them a category "
            "of their own."
        )
    return pc.if_else(pa.array(missing), MISSING, found)


def spellings(level: str, levels: Sequence[str]) -> tuple[str, ...]:
    """Return how else a known level may be written: 7 as 7.0, unless that is a level of its own.

    A column of whole numbers with a gap becomes one of floats, and a file or a database shows so.
    """
    other = f"{level}.0"
    whole = level in levels and level.removeprefix("-").isdecimal()
    return (other,) if whole and other not in levels else ()


def _as_known(found: pa.ChunkedArray, levels: Sequence[str]) -> pa.ChunkedArray:
    """Return texts with each level as it is written among the levels."""
    known = {other: level for level in levels for other in spellings(level, levels)}
    if not known:
        return found
    place = pc.index_in(found, value_set=pa.array(list(known), pa.string()))
    return pc.coalesce(pc.take(pa.array(list(known.values()), pa.string()), place), found)


def without_text(column: pa.ChunkedArray, *, may_miss: bool) -> NDArray[np.bool_]:
    """Return where a column names no category (n,), by what `texts` takes for none."""
    return gaps(column) if may_miss or not is_text(column.type) else _blank(as_text(column))


def gaps(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return where a column has no value (n,): null, not a number, a blank text or a mark."""
    if not is_text(column.type):
        return flags(pc.is_null(column, nan_is_null=True))
    found = as_text(column)
    marked = pc.is_in(pc.utf8_trim_whitespace(found), value_set=pa.array(MARKS))
    return np.asarray(_blank(found) | flags(marked))


def _blank(found: pa.ChunkedArray) -> NDArray[np.bool_]:
    blank = pc.equal(pc.utf8_trim_whitespace(found), "")
    return flags(pc.fill_null(blank, fill_value=True))


# From Arrow to numpy. pyarrow's own `to_numpy` imports pandas wherever that is installed: half a
# second.


def flags(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return a column of flags, none of them null, as an array (n,)."""
    return _values(pc.cast(column, pa.uint8()), np.bool_)


def numbers(column: pa.ChunkedArray) -> Array:
    """Return a column of float64 as an array (n,), NaN where it is null; memory is shared."""
    return _values(pc.fill_null(column, np.nan) if column.null_count else column, np.float64)


def as_array(column: pa.ChunkedArray) -> NDArray[np.generic]:
    """Return a column of any type as pyarrow's `to_numpy` does."""
    if column.type == pa.float64():
        return numbers(column)
    if column.type == pa.int64() and not column.null_count:
        return _values(column, np.int64)
    return np.asarray(column.to_numpy())


def _values(column: pa.ChunkedArray, kind: type[Scalar]) -> NDArray[Scalar]:
    size = np.dtype(kind).itemsize
    parts: list[NDArray[Scalar]] = [
        np.frombuffer(part.buffers()[1], kind, len(part), size * part.offset)
        for part in column.chunks
        if len(part)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, kind), *parts])


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts or categories as plain texts, null where there is none; of whole numbers, 7."""
    if pa.types.is_floating(column.type):
        column = _whole(column)
    if not pa.types.is_dictionary(column.type):
        return pc.cast(column, pa.string())
    # Not by `cast`, which does not know dictionaries of the view types that polars has.
    chunks = [chunk.dictionary.cast(pa.string()).take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(chunks, pa.string())


def _whole(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers as whole ones, null where there is none, if they are: 1e16 is no other id."""
    there = pc.if_else(pc.is_nan(column), None, column)
    try:
        return pc.cast(there, pa.int64())
    except pa.ArrowInvalid:
        return column


def read_dates(column: pa.ChunkedArray, name: str, how: str) -> pa.ChunkedArray:
    """Return texts as dates of one format, null where there is none; refuse others."""
    missing = gaps(column)
    known = pc.if_else(pa.array(missing), None, pc.utf8_trim_whitespace(as_text(column)))
    found = pc.strptime(known, format=how, unit="s", error_is_null=True)
    strange = gaps(found) & ~missing
    if strange.any():
        first = str(known[int(np.argmax(strange))])
        raise DataError(
            f"The dates of the column `{name}` must be written as {how}; got others in "
            f"{of_rows(strange)} (first {first!r}; {first_rows(strange)}). Write all of them alike."
        )
    return found


def date_part(column: pa.ChunkedArray, name: str, part: str) -> pa.ChunkedArray:
    """Return a part of the dates in a column as numbers, null where there is no date."""
    if not is_date(column.type):
        raise DataError(
            f"The context `{name}.{part}` is made of a date; the column `{name}` holds values of "
            f"type {column.type}. Write its dates as 2024-12-31 or 2024-12-31 23:59:00."
        )
    if pa.types.is_time(column.type):
        return pc.cast(pc.hour(column), pa.float64())
    moments = column if pa.types.is_timestamp(column.type) else pc.cast(column, pa.timestamp("s"))
    taken = {
        "year": pc.year,
        "month": pc.month,
        "day": pc.day,
        "weekday": _weekday,
        "hour": pc.hour,
        "days": _days,
    }[part](moments)
    return pc.cast(taken, pa.float64())


def _by_clock(column: pa.ChunkedArray, name: str, clock: str) -> pa.ChunkedArray:
    """Return dates by the clock of the log: the same moment has another hour in another zone."""
    own = clock_of(column.type)
    if own == clock or not is_date(column.type):
        return column
    if not own or not clock:
        raise DataError(
            f"The dates of the column `{name}` must be of the time zone that those of the log were "
            f"of, or their hours would be others; the zone of the log is {zone_called(clock)}, and "
            f"here it is {zone_called(own)}. Convert the column, or name its zone."
        )
    return pc.cast(column, pa.timestamp(column.type.unit, clock))


def _weekday(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.day_of_week(moments, count_from_zero=False)


def _days(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the days from 1970-01-01 on, of the calendar that the hours are of."""
    return pc.cast(pc.cast(moments, pa.date32(), safe=False), pa.int32())


def date_parts(kind: pa.DataType) -> tuple[str, ...]:
    """Return the parts that values of a type have."""
    return ("hour",) if pa.types.is_time(kind) else PARTS


def clock_of(kind: pa.DataType) -> str:
    """Return the time zone of dates of a type, "" where they have none."""
    return getattr(kind, "tz", None) or ""


def is_date(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds dates or times of a day."""
    is_a = pa.types
    return bool(is_a.is_date(kind) or is_a.is_timestamp(kind) or is_a.is_time(kind))


def is_day(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds dates, not times of any day."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column of this type is read as numbers."""
    is_a = pa.types
    return bool(
        is_a.is_floating(kind)
        or is_a.is_integer(kind)
        or is_a.is_boolean(kind)
        or is_a.is_decimal(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds texts or categories."""
    return str(kind) in {"string", "large_string", "string_view"} or pa.types.is_dictionary(kind)
