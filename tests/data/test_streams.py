"""A file in parts holds what the whole file holds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.parquet as pq
import pytest

import titrant as tt
from titrant.data import files
from titrant.data.files import read_table

TABLE = pa.table({"a": np.arange(5000.0), "b": [f"text {i}" for i in range(5000)]})
WRITERS = {
    "log.csv": pa_csv.write_csv,
    "log.parquet": pq.write_table,
    "log.arrow": lambda table, path: pa_feather.write_feather(table, path, chunksize=700),
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_parts_make_the_whole(name, tmp_path, monkeypatch):
    monkeypatch.setattr(files.reading, "BLOCK", 8192)
    monkeypatch.setattr(files.reading, "ROWS", 512)
    path = str(tmp_path / name)
    WRITERS[name](TABLE, path)
    parts = list(files.stream_of(path, above=0)())
    assert len(parts) > 3
    assert pa.concat_tables(parts).equals(read_table(path))


def test_small_files_pipes_and_patterns_are_read_as_a_whole(tmp_path):
    path = tmp_path / "log.csv"
    pa_csv.write_csv(TABLE, path)
    assert files.stream_of(str(path), above=path.stat().st_size) is None
    assert files.stream_of(str(path), above=path.stat().st_size - 1) is not None
    for other in ("-", str(tmp_path / "*.csv"), str(tmp_path), str(tmp_path / "none.csv")):
        assert files.stream_of(other, above=0) is None
    (tmp_path / "log.txt").write_text("a\n1\n")
    assert files.stream_of(str(tmp_path / "log.txt"), above=0) is None


def test_parts_that_do_not_fit_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(files.reading, "BLOCK", 1000)
    path = tmp_path / "log.csv"
    path.write_text("a\n" + "1\n" * 2000 + "one\n")
    with pytest.raises(tt.DataError, match="cannot be read"):
        list(files.stream_of(str(path), above=0)())
