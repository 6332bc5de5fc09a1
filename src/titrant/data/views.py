"""Columns of Arrow's view types as the plain ones that every function and format knows."""

from __future__ import annotations

import pyarrow as pa


def without_views(table: pa.Table) -> pa.Table:
    """Return the table with views of texts and bytes as texts and bytes."""
    for i, field in enumerate(table.schema):
        if field.type in _PLAIN:
            plain = field.with_type(_PLAIN[field.type])
            table = table.set_column(i, plain, table.column(i).cast(plain.type))
    return table


_PLAIN = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
