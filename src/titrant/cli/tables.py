"""Tables as files: the format follows the ending of the name."""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING, Any

import click

from titrant._writing import draft
from titrant.cli.terminal import put
from titrant.cli.writing import STDOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    Writer = Callable[[IO[bytes], pa.Schema], Any]


def check_format(option: str, path: str) -> None:
    """Refuse a path whose ending names no format."""
    if path != STDOUT and not path.lower().endswith(tuple(_WRITERS)):
        raise click.BadParameter(
            f"The ending of `{path}` names no format. Give a name that ends in "
            f"{', '.join(_WRITERS)}, or - for CSV on standard output.",
            param_hint=f"'{option}'",
        )


def write_table(path: str, table: pa.Table) -> None:
    """Write a table as a whole or not at all; ``-`` is CSV on standard output."""
    if path == STDOUT:
        text = io.BytesIO()
        _write_all(_csv, text, iter([table]))
        put(text.getvalue().decode())
        return
    write_tables(path, iter([table]))


def write_tables(path: str, tables: Iterator[pa.Table]) -> None:
    """Write like tables under each other to a file, as a whole or not at all, one at a time."""
    opened = next(w for ending, w in _WRITERS.items() if path.lower().endswith(ending))
    with draft(path) as stream:
        _write_all(opened, stream, tables)


def _write_all(opened: Writer, stream: IO[bytes], tables: Iterator[pa.Table]) -> None:
    """Write like tables under each other; refuse values that the format cannot hold."""
    import pyarrow as pa  # noqa: PLC0415

    table = next(tables)
    try:
        with opened(stream, table.schema) as writer:
            writer.write_table(table)
            for table in tables:
                writer.write_table(table)
    except pa.ArrowException as reason:
        raise _unfit(opened, table, reason) from None


def _unfit(opened: Writer, table: pa.Table, reason: Exception) -> Exception:
    """Return the refusal of the first column that cannot be written even by itself."""
    import pyarrow as pa  # noqa: PLC0415

    for name in table.column_names:
        alone = table.select([name])
        try:
            with opened(io.BytesIO(), alone.schema) as writer:
                writer.write_table(alone)
        except pa.ArrowException as why:
            return click.BadParameter(
                f"The column `{name}` of type {alone.schema.types[0]} cannot be written in this "
                f"format: {str(why).splitlines()[0].rstrip('.')}. Drop the column, or give another "
                "format by the ending of `-o`.",
                param_hint="'TABLE'",
            )
    return reason


def _csv(target: IO[bytes], schema: pa.Schema) -> Any:  # noqa: ANN401
    from pyarrow.csv import CSVWriter  # noqa: PLC0415

    return CSVWriter(target, schema)


def _parquet(target: IO[bytes], schema: pa.Schema) -> Any:  # noqa: ANN401
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415

    return ParquetWriter(target, schema)


def _arrow(target: IO[bytes], schema: pa.Schema) -> Any:  # noqa: ANN401
    from pyarrow.ipc import new_file  # noqa: PLC0415

    return new_file(target, schema)


_WRITERS: dict[str, Writer] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
}
