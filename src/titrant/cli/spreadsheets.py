"""Texts that a spreadsheet would run as formulas, made harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from typing import Any

FORMULA = r"^[=+\-@\t\r]"
"""How a cell begins that a spreadsheet takes for a formula."""
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
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
    runs = pc.and_not(
        pc.match_substring_regex(texts, FORMULA), pc.match_substring_regex(texts, NUMBER)
    )
    quoted = pc.binary_join_element_wise(
        pa.scalar(GUARD, texts.type), texts, pa.scalar("", texts.type)
    )
    return pc.if_else(pc.fill_null(runs, fill_value=False), quoted, texts)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
