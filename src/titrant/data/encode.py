"""Contexts that are not numbers: text columns as 0/1 indicators, one a level but the first.

The indicator of level ``male`` of column ``sex`` is called ``sex=male``. Its name alone says how
to make it, so a policy saved with such names can be applied to a table with the column ``sex``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from titrant.data.columns import check_present, context_roles, duplicate_names
from titrant.data.phrases import first_rows, listed, of_rows
from titrant.data.texts import Texts
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray


MOST_LEVELS = 20
"""A text column with more levels looks like a name or a key, not like a category."""
FEWEST_TEXTS = 8
"""Rows from which on texts that hardly ever repeat look like names, too."""
MOSTLY = 0.9
"""Share of numbers from which on a column of texts is one of numbers with some not written so."""
_NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
_WITH_SIGNS = r"^\s*[-+$€£]?\s*(\d{1,3}([ ,.'’]\d{3})+|\d+)([.,]\d+)?\s*[%€£]?\s*$"
"""A number with separators of thousands, a decimal comma, or a sign of percent or currency."""
FEWEST_NUMBERED = 20
"""Rows from which on whole numbers one after another are no accident."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A table whose contexts are numbers."""

    table: pa.Table
    names: tuple[str, ...]
    """The context columns."""
    levels: dict[str, tuple[str, ...]]
    """The texts of each column that was encoded, the reference first."""
    notes: tuple[str, ...]
    """Sentences for the user: what was encoded, and what was left out."""


def encode(table: pa.Table, context: Sequence[str] | None, taken: Collection[str]) -> Encoded:
    """Return the table with indicators in place of the text columns of its context.

    Without `context`, all columns but the `taken` ones are used that are numbers or categories.
    """
    names, notes = _usable(table, taken) if context is None else (list(context), [])
    check_present(context_roles(names), table.column_names)
    texts = [name for name in names if _is_text(table[name].type)]
    levels = {name: _levels(table[name], name) for name in texts}
    notes += [_encoding_note(name, found) for name, found in levels.items()]
    columns = [f for name in names for f in _features(name, levels.get(name))]
    kept = [name for name in table.column_names if name not in levels]
    made = [f for f in columns if f not in names]
    if clash := [name for name in made if name in table.column_names]:
        raise duplicate_names([*table.column_names, *clash])
    return Encoded(_with(table.select(kept), table, made), tuple(columns), levels, tuple(notes))


def with_features(table: pa.Table, features: Iterable[str]) -> pa.Table:
    """Return the table with every indicator among `features` that it does not hold yet."""
    return _with(table, table, [f for f in features if f not in table.column_names])


def stored(features: Iterable[str], available: Sequence[str]) -> list[str]:
    """Return the columns of a table from which features are made: an indicator from its text."""
    names = (name if name in available else split(name, available)[0] for name in features)
    return list(dict.fromkeys(names))


def texts_of(table: pa.Table, features: Iterable[str]) -> tuple[Texts, ...]:
    """Return the texts of every column from which `with_features` makes indicators."""
    named: dict[str, list[str]] = {}
    for feature in features:
        column, level = split(feature, table.column_names)
        if feature not in table.column_names and column in table.column_names:
            named.setdefault(column, []).append(level)
    return tuple(
        Texts.of(column, levels, pc.unique(_texts(table[column], column)).to_pylist())
        for column, levels in named.items()
    )


def unseen(table: pa.Table, levels: Mapping[str, Sequence[str]]) -> dict[str, NDArray[np.bool_]]:
    """Return for each column with known levels, where the table has it, which rows have others."""
    return {
        name: ~pc.is_in(_texts(table[name], name), pa.array(known, pa.string())).to_numpy()
        for name, known in levels.items()
        if name in table.column_names
    }


def _usable(table: pa.Table, taken: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the columns fit to be contexts, and a sentence about each that is not."""
    names, notes = [], []
    for name in table.column_names:
        reason = None if name in taken else _by_name(name) or _unfit(table[name], name)
        if reason is not None:
            notes.append(f"Column `{name}` is left out of the context: {reason}.")
        elif name not in taken:
            names.append(name)
    return names, notes


def _by_name(name: str) -> str | None:
    """Return why a column of this name is no context unless the user says so, or None."""
    word = name.strip().casefold()
    if word == "propensity":
        return "it looks like the density of the logged dose; name it as the propensity to use it"
    return "it looks like a key" if word == "id" or word.endswith(("_id", " id")) else None


def _unfit(column: pa.ChunkedArray, name: str) -> str | None:
    """Return why a column cannot be a context, or None."""
    kind = column.type
    if pa.types.is_null(kind):
        return "it is empty"
    if is_number(kind):
        return "it numbers the rows" if _numbers_rows(column) else None
    if not _is_text(kind):
        return f"its values are of type {kind}"
    count = len(pc.unique(column))
    if count > MOST_LEVELS:
        _check_no_numbers(column, name)
        return f"its texts take {count:,} different values, over {MOST_LEVELS}"
    if len(column) >= FEWEST_TEXTS and 2 * count > len(column):
        return f"its texts take {count:,} different values in {len(column):,} rows"
    return "all its values are the same" if count <= 1 else None


def _check_no_numbers(column: pa.ChunkedArray, name: str) -> None:
    """Refuse texts that are numbers but for a few: to leave them out would lose a context."""
    texts = pc.cast(column, pa.string())
    like = _matches(texts, _NUMBER)
    if like.mean() >= MOSTLY:
        first = str(texts[int(np.argmin(like))])
        raise DataError(
            f"The column `{name}` holds numbers, but not in {of_rows(~like)} (first {first!r}; "
            f"{first_rows(~like)}). Correct or empty these, drop the rows, or name the context "
            "columns to use."
        )
    like = _matches(texts, _WITH_SIGNS)
    if like.mean() >= MOSTLY:
        row = int(np.argmax(like))
        raise DataError(
            f"The column `{name}` holds numbers with separators or signs, such as "
            f"{str(texts[row])!r} in row {row}, counting from 0. Write them with digits and a "
            "decimal point alone, or name the context columns to use."
        )


def _matches(texts: pa.ChunkedArray, pattern: str) -> NDArray[np.bool_]:
    """Return which texts (n,) look like a pattern."""
    like = pc.fill_null(pc.match_substring_regex(texts, pattern), fill_value=False)
    return np.asarray(like.to_numpy())


def _numbers_rows(column: pa.ChunkedArray) -> bool:
    """Return whether the values are whole numbers without a gap and without a repetition."""
    if not pa.types.is_integer(column.type) or len(column) < FEWEST_NUMBERED or column.null_count:
        return False
    ends = pc.min_max(column).as_py()
    no_gap = ends["max"] - ends["min"] == len(column) - 1
    return no_gap and len(pc.unique(column)) == len(column)


def _levels(column: pa.ChunkedArray, name: str) -> tuple[str, ...]:
    """Return the levels of a text column in alphabetical order."""
    levels = tuple(sorted(pc.unique(_texts(column, name)).to_pylist()))
    if len(levels) > MOST_LEVELS:
        raise DataError(
            f"The context column `{name}` must have at most {MOST_LEVELS} different texts to be "
            f"encoded; got {len(levels):,}. Group them, or leave the column out of the context."
        )
    return levels


def _features(name: str, levels: Sequence[str] | None) -> list[str]:
    """Return the columns that stand for one context; the first level is the reference."""
    return [name] if levels is None else [f"{name}={level}" for level in levels[1:]]


def _encoding_note(name: str, levels: Sequence[str]) -> str:
    made = listed(_features(name, levels)) or "nothing"
    return f"Column `{name}` is text: encoded 0/1 as {made} (all 0: `{levels[0]}`)."


def _with(table: pa.Table, source_table: pa.Table, features: Sequence[str]) -> pa.Table:
    for feature in features:
        column, level = split(feature, source_table.column_names)
        if column in source_table.column_names:
            is_level = pc.equal(_texts(source_table[column], column), level)
            table = table.append_column(feature, pc.cast(is_level, pa.float64()))
    return table


def _texts(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return the values of a column as text; none may be missing, which in a CSV is a blank."""
    kind = column.type
    values = pc.cast(column, kind.value_type) if pa.types.is_dictionary(kind) else column
    texts = pc.cast(values, pa.string())
    missing = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(texts), ""), fill_value=True).to_numpy()
    if missing.any():
        raise DataError(
            f"The context column `{name}` must name a category in every row; got none in "
            f"{of_rows(missing)} ({first_rows(missing)}). Drop these rows, or give them a category "
            "of their own."
        )
    return texts


def split(feature: str, available: Collection[str]) -> tuple[str, str]:
    """Return column and level of an indicator's name; either may contain an equals sign."""
    cuts = [i for i, letter in enumerate(feature) if letter == "="]
    for i in cuts:
        if feature[:i] in available:
            return feature[:i], feature[i + 1 :]
    return feature, ""


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column of this type is read as numbers."""
    is_a = pa.types
    return bool(
        is_a.is_floating(kind)
        or is_a.is_integer(kind)
        or is_a.is_boolean(kind)
        or is_a.is_decimal(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return str(kind) in {"string", "large_string", "string_view"} or pa.types.is_dictionary(kind)
