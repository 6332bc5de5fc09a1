"""One file as a stream of small tables, so that a file larger than memory can pass through."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from titrant.data import wording
from titrant.data.columns import check_present
from titrant.data.csv_types import conversion
from titrant.data.views import without_views

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    Typed = Collection[str] | None

ROWS = 65_536
"""Of one table of a stream."""
BLOCK = 16 << 20
"""Bytes of a CSV that are parsed at a time; the first block decides the types of the columns."""


def stream_of(
    path: str, above: int, typed: Typed = None
) -> Callable[[], Iterator[pa.Table]] | None:
    """Return how to read one file of more than ``above`` bytes part by part.

    None for a smaller file, and for anything that can only be read as a whole. With `typed`, all
    other columns of a CSV stay text, as they are written.
    """
    if not Path(path).is_file() or Path(path).stat().st_size <= above:
        return None
    lowered = path.lower()
    for endings, read in _READERS.items():
        if lowered.endswith(endings):
            return lambda: _guarded(path, read, typed)
    return None


def _guarded(
    path: str, read: Callable[[str, Typed], Iterator[pa.Table]], typed: Typed
) -> Iterator[pa.Table]:
    try:
        for table in read(path, typed):
            check_present((), table.column_names)
            yield table
    except (pa.ArrowException, OSError) as reason:
        raise wording.unreadable(path, "a table", reason) from None


def _csv(path: str, typed: Typed) -> Iterator[pa.Table]:
    read, parse = pa_csv.ReadOptions(block_size=BLOCK), pa_csv.ParseOptions()
    with pa_csv.open_csv(path, read, parse, conversion(path, parse, typed)) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _parquet(path: str, _: Typed) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(ROWS):
            yield without_views(pa.Table.from_batches([batch]))


def _arrow(path: str, _: Typed) -> Iterator[pa.Table]:
    with pa.memory_map(path) as source:
        reader = pa.ipc.open_file(source)
        for i in range(reader.num_record_batches):
            yield without_views(pa.Table.from_batches([reader.get_batch(i)]))


_READERS: dict[tuple[str, ...], Callable[[str, Typed], Iterator[pa.Table]]] = {
    (".csv",): _csv,
    (".parquet", ".pq"): _parquet,
    (".arrow", ".feather"): _arrow,
}
