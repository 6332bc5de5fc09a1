"""Which columns of a CSV are read as what they seem to be, and which stay as they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pa_csv

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import BinaryIO


def conversion(
    source: str | BinaryIO, parse: pa_csv.ParseOptions, typed: Collection[str] | None
) -> pa_csv.ConvertOptions:
    """Return how to read the columns of a CSV: all but the `typed` ones as text.

    A key such as 007 would lose its zeros, and one of twenty digits its last ones, if it were read
    as a number. Without `typed` every column is what its values look like.
    """
    if typed is None:
        return pa_csv.ConvertOptions()
    names = _names(source, parse)
    return pa_csv.ConvertOptions(column_types={n: pa.string() for n in names if n not in typed})


def _names(source: str | BinaryIO, parse: pa_csv.ParseOptions) -> list[str]:
    with pa_csv.open_csv(source, parse_options=parse) as reader:
        return list(reader.schema.names)
