"""Tables as files: the format follows the ending of the name."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import click

from titrant.cli.writing import STDOUT, check_writable, draft

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa


def check_table_path(option: str, path: str) -> None:
    """Refuse a path whose ending names no format, or that cannot be written to."""
    check_writable(option, path)
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
        _csv(table, text)
        click.echo(text.getvalue().decode(), nl=False)
        return
    write = next(w for ending, w in _WRITERS.items() if path.lower().endswith(ending))
    with draft(path) as temporary:
        write(table, str(temporary))


def _csv(table: pa.Table, target: Any) -> None:  # noqa: ANN401  (a path or a stream)
    from pyarrow.csv import write_csv  # noqa: PLC0415

    write_csv(table, target)


def _parquet(table: pa.Table, target: str) -> None:
    from pyarrow.parquet import write_table as write_parquet  # noqa: PLC0415

    write_parquet(table, target)


def _arrow(table: pa.Table, target: str) -> None:
    from pyarrow.feather import write_feather  # noqa: PLC0415

    write_feather(table, target, compression="uncompressed")


_WRITERS: dict[str, Callable[[pa.Table, str], None]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
}
