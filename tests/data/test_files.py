"""Files of every format give the same log; broken ones are refused with the path and the reason."""

from __future__ import annotations

import gzip
import io
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.parquet as pq
import pytest

from titrant.data import Columns, LoggedData
from titrant.data.files import FORMATS, FilesWarning, read_log, read_table
from titrant.errors import DataError

N = 40
RNG = np.random.default_rng(7)
TABLE = pa.table({
    "id": np.arange(N),
    "age": RNG.integers(18, 90, N),
    "bmi": RNG.normal(27.0, 4.0, N),
    "dose": RNG.lognormal(3.0, 0.4, N),
    "loss": RNG.normal(size=N),
    "q": RNG.random(N) + 0.01,
    "comment": [f"patient {i}" for i in range(N)],
})  # fmt: skip
COLUMNS = Columns(treatment="dose", outcome="loss", context=["bmi", "age"], propensity="q")


def csv_bytes(table=TABLE, delimiter=","):
    sink = io.BytesIO()
    pa_csv.write_csv(table, sink, pa_csv.WriteOptions(delimiter=delimiter))
    return sink.getvalue()


def write_stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


def write_file(table, path):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


WRITERS = {
    "log.csv": lambda path: path.write_bytes(csv_bytes()),
    "LOG.CSV": lambda path: path.write_bytes(csv_bytes()),
    "bom.csv": lambda path: path.write_bytes(b"\xef\xbb\xbf" + csv_bytes()),
    "crlf.csv": lambda path: path.write_bytes(csv_bytes().replace(b"\n", b"\r\n")),
    "pandas.csv": lambda path: TABLE.to_pandas().to_csv(path, index=False),
    "log.csv.gz": lambda path: path.write_bytes(gzip.compress(csv_bytes())),
    "log.tsv": lambda path: path.write_bytes(csv_bytes(delimiter="\t")),
    "log.parquet": lambda path: pq.write_table(TABLE, path),
    "pandas.parquet": lambda path: TABLE.to_pandas().set_index("id").to_parquet(path),
    "many groups.pq": lambda path: pq.write_table(TABLE, path, row_group_size=7),
    "log.feather": lambda path: pa_feather.write_feather(TABLE, path),
    "log.arrow": lambda path: write_file(TABLE, path),
    "stream.arrow": lambda path: write_stream(TABLE, path),
    "brackets[1].csv": lambda path: path.write_bytes(csv_bytes()),
}


def same(log, bounds=None):
    roles = {"treatment": "dose", "outcome": "loss", "context": ["bmi", "age"], "propensity": "q"}
    reference = LoggedData.from_frame(TABLE, **roles, bounds=bounds)
    for name in ("context", "treatment", "outcome", "propensity", "lower", "upper"):
        np.testing.assert_array_equal(getattr(log, name), getattr(reference, name), strict=True)
    assert log.names == ("bmi", "age")


def pipe(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


# ── what can be read ─────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_log(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    same(read_log(str(path), COLUMNS, (0, None)), (0, None))


def test_csv_from_a_pipe(monkeypatch):
    pipe(monkeypatch, csv_bytes())
    same(read_log("-", COLUMNS))


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("means", ["*.{}", "part-[0-9].{}", "", "**/*.{}"])
def test_many_files_are_one_table_in_order_of_their_names(tmp_path, ending, means):
    folder = tmp_path / "log"
    folder.mkdir()
    for i, cut in enumerate([TABLE.slice(0, 15), TABLE.slice(15, 1), TABLE.slice(16)]):
        path = folder / f"part-{i}.{ending}"
        if ending == "csv":
            path.write_bytes(csv_bytes(cut))
        elif ending == "parquet":
            pq.write_table(cut, path)
        else:
            write_file(cut, path)
    (folder / "_SUCCESS").write_text("")
    same(read_log(str(folder / means.format(ending)), COLUMNS))


def test_files_of_one_table_may_order_their_columns_differently_and_hold_more(tmp_path):
    pq.write_table(TABLE.slice(0, 15), tmp_path / "a.parquet")
    other = TABLE.slice(15).select(TABLE.column_names[::-1]).append_column("new", [[1] * (N - 15)])
    pq.write_table(other, tmp_path / "b.parquet")
    with pytest.warns(FilesWarning, match=r"1 of 2 files lacks .*a\.parquet` without `new`\. Col"):
        same(read_log(str(tmp_path / "*.parquet"), COLUMNS))
    with pytest.warns(FilesWarning, match="without `new`"):
        assert read_table(str(tmp_path / "*.parquet")).column_names == TABLE.column_names


def test_integers_in_one_file_and_decimals_in_the_next(tmp_path):
    (tmp_path / "a.csv").write_text("dose,loss\n1,2\n3,4\n")
    (tmp_path / "b.csv").write_text("dose,loss\n1.5,2\n")
    log = read_log(str(tmp_path / "*.csv"), Columns(treatment="dose", outcome="loss", context=[]))
    np.testing.assert_array_equal(log.treatment, [1.0, 3.0, 1.5])


def test_the_whole_table_without_roles(tmp_path):
    pq.write_table(TABLE, tmp_path / "log.parquet")
    assert read_table(str(tmp_path / "log.parquet")).equals(TABLE)


def test_decimals_far_down_a_column_of_integers(tmp_path):
    # Types are inferred beyond the first megabyte.
    lines = "\n".join(["1,2,3"] * 400_000)
    path = tmp_path / "long.csv"
    path.write_text(f"dose,loss,age\n{lines}\n1.5,2,3\n")
    log = read_log(str(path), Columns(treatment="dose", outcome="loss", context="age"))
    assert log.treatment[-1] == 1.5
    assert len(log) == 400_001


def test_column_names_with_dots_and_spaces(tmp_path):
    odd = {"the dose.mg": [1.0, 2.0], "a.b": [1.0, 2.0], "a": [3.0, 4.0]}
    pq.write_table(pa.table(odd), tmp_path / "odd.parquet")
    roles = Columns(treatment="the dose.mg", outcome="a.b", context="a")
    log = read_log(str(tmp_path / "odd.parquet"), roles)
    np.testing.assert_array_equal(log.context[:, 0], [3.0, 4.0])


def test_gaps_in_a_csv_count_as_missing(tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("dose,loss\n1,2\n,NA\n3,4\nnan,5\n")
    with pytest.raises(DataError, match=r"treatment column `dose` .* missing in 2 of 4 rows"):
        read_log(str(path), Columns(treatment="dose", outcome="loss", context=[]))


# ── what cannot ──────────────────────────────────────────────────────────────────────────────────
HEADER = "dose,loss,bmi,age,q\n"
BROKEN = {
    "empty.csv": (b"", "`{path}` is empty. A CSV begins with a line of column names."),
    "blank.csv": (b" \n\n", "`{path}` is empty. A CSV begins with a line of column names."),
    "header.csv": (
        HEADER.encode(),
        ("A log must have at least 2 rows; got an empty table. "
        "Check the filter or the query that made it."),
    ),
    "short row.csv": (
        (HEADER + "1,2,3,4,5\n1,2\n").encode(),
        ("`{path}` cannot be read as CSV: CSV parse error: Row #3: Expected 5 columns, got 2: 1,2. "
        "Check that it is complete and in this format."),
    ),
    "repeated.csv": (
        b"dose,loss,bmi,age,q,age\n1,2,3,4,5,6\n",
        ("The column names of a table must differ; got `age` 2 times. "
        "Rename or drop the repeated ones."),
    ),
    "missing.csv": (
        b"dose,loss,bmi,aged,q\n1,2,3,4,5\n",
        ("The context column `age` is not in the table; did you mean `aged`? "
        "The table has 5 columns: `dose`, `loss`, `bmi`, `aged`, `q`."),
    ),
    "text.csv": (
        (HEADER + "1,2,3,4,5\n1,?,3,4,5\n").encode(),
        ("The outcome column `loss` must be numeric; got values of type text, first '?' in row 1, "
        "counting from 0. Convert it to numbers: without units, yes and no as 1 and 0."),
    ),
    "log.ods": (
        b"PK",
        ("The format of `{path}` is not known from its name; got an ending other than .csv, .tsv, "
        ".xlsx, .parquet, .arrow. Rename or convert the file, or pipe CSV to `-`."),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_get_a_sentence(tmp_path, name):
    path = tmp_path / name
    content, sentence = BROKEN[name]
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_log(str(path), COLUMNS)
    assert str(error.value) == sentence.format(path=path)


@pytest.mark.parametrize("name", ["no.parquet", "no.arrow", "half.parquet", "no.csv.gz", "no.xlsx"])
def test_files_that_are_not_what_they_say(tmp_path, name):
    path = tmp_path / name
    pq.write_table(TABLE, tmp_path / "whole")
    content = {"half.parquet": (tmp_path / "whole").read_bytes()[:200]}
    path.write_bytes(content.get(name, b"certainly something else"))
    with pytest.raises(DataError, match=rf"{name}` cannot be read as \w+: .+\. Check that it is"):
        read_log(str(path), COLUMNS)


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("dose,größe\n1,2\n".encode("latin-1"), "its column names hold other bytes"),
        # The reader alone would call this column binary, and no context could be made of it.
        ("dose,sex\n1,männlich\n".encode("latin-1"), "its column `sex` holds other bytes"),
        ("dose,größe\n1,2\n".encode("utf-16"), "it begins as a file in UTF-16 does"),
    ],
)
def test_other_encodings(tmp_path, content, where):
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_table(str(path))
    assert str(error.value).startswith(f"`{path}` is not in UTF-8: {where}. Name its encoding")


def test_an_empty_pipe(monkeypatch):
    pipe(monkeypatch, b"")
    with pytest.raises(DataError, match="`-` is empty"):
        read_log("-", COLUMNS)


def test_a_path_with_nothing_there(tmp_path):
    (tmp_path / "visits.csv").write_bytes(csv_bytes())
    with pytest.raises(DataError) as error:
        read_log(str(tmp_path / "visit.csv"), COLUMNS)
    assert str(error.value) == (
        f"There is no file at `{tmp_path}/visit.csv`; did you mean `{tmp_path}/visits.csv`? "
        "Check the path and the working directory."
    )
    with pytest.raises(DataError, match=r"There is no file at `no/such/place`\. Check"):
        read_table("no/such/place")


@pytest.mark.parametrize("means", ["*.csv", ""])
def test_a_pattern_or_folder_without_files(tmp_path, means):
    pattern = str(tmp_path / means)
    with pytest.raises(DataError) as error:
        read_table(pattern)
    assert str(error.value) == (
        f"No file matches `{pattern}`. Quote the pattern and check the working directory."
    )


def test_files_of_one_table_must_have_the_same_columns(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pq.write_table(TABLE.drop_columns(["bmi", "q"]), tmp_path / "b.parquet")
    with pytest.raises(DataError) as error:
        read_log(str(tmp_path / "*.parquet"), COLUMNS)
    assert str(error.value) == (
        f"All files of a table must have the same columns; got `{tmp_path}/b.parquet` without "
        f"`q`, `bmi`, which `{tmp_path}/a.parquet` has. Narrow the pattern, or add the column."
    )


def test_files_of_one_table_must_have_types_that_combine(tmp_path):
    (tmp_path / "a.csv").write_text("dose,loss\n1,2\n3,4\n")
    (tmp_path / "b.csv").write_text("dose,loss\nhigh,2\n")
    with pytest.raises(DataError, match=r"types that combine; got .*a\.csv.*Convert the files"):
        read_table(str(tmp_path / "*.csv"))


def test_endings_belong_to_one_format():
    endings = [ending for form in FORMATS for ending in form.endings]
    assert len(set(endings)) == len(endings)


def test_a_pandas_index_is_a_column_of_its_parquet_file(tmp_path):
    frame = pd.DataFrame(
        {"dose": [1.0, 2.0], "loss": [3.0, 4.0]}, index=pd.Index([7, 9], name="id")
    )
    frame.to_parquet(tmp_path / "log.parquet")
    roles = Columns(treatment="dose", outcome="loss", context="id")
    assert read_log(str(tmp_path / "log.parquet"), roles).context[:, 0].tolist() == [7.0, 9.0]
