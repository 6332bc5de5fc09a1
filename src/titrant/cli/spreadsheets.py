"""Texts that a spreadsheet would run as formulas, made harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from typing import Any

FORMULA = r"^[\s\pZ\pC]*(=|\+|-|@|＝|＋|－|＠)|^[\t\r\n]"
"""How a cell begins that a spreadsheet takes for a formula: it drops blanks before the sign, and
some take the full-width signs of Chinese and Japanese keyboards for the narrow ones."""
NUMBER = r"^ *[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *$"
"""A number, which may begin with a sign: columns of a CSV that no one asked for are texts."""
GUARD = "'"
"""What makes a spreadsheet read the rest of a cell as it is written."""


def guarded(table: pa.Table) -> pa.Table:
    """Return a table with an apostrophe before names and texts that would run as formulas."""
    columns = [_guarded(column) if _is_text(column.type) else column for column in table.columns]
    names = _guarded(pa.array(table.column_names, pa.string())).to_pylist()
    return pa.table(columns, names=names)


def _guarded(texts: Any) -> Any:  # noqa: ANN401  (an array of texts, in chunks or not)
    if pa.types.is_dictionary(texts.type):
        texts = texts.cast(texts.type.value_type)
    if pa.types.is_fixed_size_binary(texts.type):  # an apostrophe does not fit in
        texts = texts.cast(pa.binary())
    seen = _decoded(texts)
    runs = pc.and_not(
        pc.match_substring_regex(seen, FORMULA), pc.match_substring_regex(seen, NUMBER)
    )
    quoted = pc.binary_join_element_wise(
        pa.scalar(GUARD, texts.type), texts, pa.scalar("", texts.type)
    )
    return pc.if_else(pc.fill_null(runs, fill_value=False), quoted, texts)


def _decoded(texts: Any) -> Any:  # noqa: ANN401
    """Return bytes as the text that they are, if they are one."""
    try:
        return texts.cast(pa.large_string())
    except pa.ArrowInvalid:
        return texts


def _is_text(kind: pa.DataType) -> bool:
    """Return whether a CSV shows values of this type as text; bytes are written as they are."""
    is_a = pa.types
    if is_a.is_dictionary(kind):
        return _is_text(kind.value_type)
    return any(is_one(kind) for is_one in (
        is_a.is_string, is_a.is_large_string,
        is_a.is_binary, is_a.is_large_binary, is_a.is_fixed_size_binary,
    ))  # fmt: skip
