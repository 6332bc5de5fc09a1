"""Which files a folder or a pattern means: those of the user, once each, of one format.

Every law holds for logs in memory, for logs in parts, and for the commands.
"""

from __future__ import annotations

import gzip
import json
import shutil
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from titrant.cli import run
from titrant.data import Columns
from titrant.data.files import FilesWarning, paths_of, read_log, read_table
from titrant.data.files.scan import scan_parquet
from titrant.errors import DataError

COLUMNS = Columns(treatment="dose", outcome="loss", context=["age"])
ROWS = 60  # of a file


def table(seed=0):
    rng = np.random.default_rng(seed)
    return pa.table({name: rng.normal(size=ROWS) for name in ("dose", "loss", "age")})


def write(path, content=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    content = table(crc32(str(path).encode())) if content is None else content
    if ".csv" in path.name:
        pa_csv.write_csv(content, path)
    else:
        pq.write_table(content, path)


def in_memory(path):
    return len(read_log(str(path), COLUMNS))


def in_parts(path):
    return len(scan_parquet(str(path), COLUMNS))


READERS = [in_memory, in_parts]
every_reader = pytest.mark.parametrize("rows_of", READERS, ids=lambda f: f.__name__)


@pytest.fixture
def folder(tmp_path):
    """A folder with two files of a log."""
    for number in range(2):
        write(tmp_path / "log" / f"{number}.parquet", table(number))
    return tmp_path / "log"


OWN = [
    ".hidden.parquet",
    "_metadata.parquet",
    ".ipynb_checkpoints/0-checkpoint.parquet",
    "_temporary/0/part-0.parquet",
    "_delta_log/00000.checkpoint.parquet",
    "_started_1/part-0.parquet",
    ".4711.2.parquet",  # a draft of titrant's own
]


@every_reader
@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("means", [".", "*", "*.parquet", "**/*.parquet", "../log", "[01]*"])
def test_what_programs_keep_for_themselves_is_not_of_the_log(folder, rows_of, own, means):
    write(folder / own)
    assert rows_of(folder / means) == 2 * ROWS


@every_reader
@pytest.mark.parametrize("own", OWN)
def test_it_is_read_when_it_is_spelled_out(folder, rows_of, own):
    write(folder / own)
    assert rows_of(folder / own) == ROWS
    last = (folder / own).name
    assert rows_of((folder / own).parent / f"{last[:3]}*.parquet") == ROWS


@every_reader
def test_a_pattern_goes_deeper_only_if_it_says_so(folder, rows_of):
    write(folder / "2025" / "0.parquet")
    assert rows_of(folder / "*.parquet") == 2 * ROWS
    assert rows_of(folder / "*" / "*.parquet") == ROWS
    assert rows_of(folder / "**" / "*.parquet") == 3 * ROWS
    with pytest.warns(FilesWarning, match=r"directly in .* not those in 1 folder of it, .*25"):
        assert rows_of(folder) == 2 * ROWS


@every_reader
def test_a_folder_whose_tables_lie_deeper(tmp_path, rows_of):
    write(tmp_path / "2024" / "0.parquet")
    write(tmp_path / "2025" / "07" / "0.parquet")
    with pytest.raises(DataError, match=r"No table lies directly in .* 2 folders .*2024`\. Give"):
        rows_of(tmp_path)


@every_reader
def test_folders_that_stand_for_the_values_of_a_column(tmp_path, rows_of):
    for year in (2024, 2025):
        write(tmp_path / f"year={year}" / "0.parquet")
    with pytest.raises(DataError, match=r"split into folders such as .*year=2024`.*column `year`"):
        rows_of(tmp_path)
    with pytest.warns(FilesWarning, match=r"from `year=2024` to `year=2025`: `year` is not read"):
        assert rows_of(tmp_path / "**" / "*.parquet") == 2 * ROWS
    # One of them alone has nothing to lose.
    assert rows_of(tmp_path / "year=2024" / "*.parquet") == ROWS
    assert rows_of(tmp_path / "year=2024") == ROWS


@every_reader
@pytest.mark.parametrize("means", [".", "*"])
def test_one_format(folder, rows_of, means):
    write(folder / "2.csv")
    with pytest.raises(DataError, match=r"have one format; got .* 2 Parquet .* 1 CSV .*2\.csv"):
        rows_of(folder / means)
    assert rows_of(folder / "*.parquet") == 2 * ROWS


@every_reader
@pytest.mark.parametrize("nothing", ["", "  "])
def test_an_empty_path_is_no_folder(folder, monkeypatch, rows_of, nothing):
    monkeypatch.chdir(folder)
    with pytest.raises(DataError, match=r"The path of the table is empty\. Name a file, a folder"):
        rows_of(nothing)


@every_reader
def test_a_link_beside_its_file_is_the_same_rows(folder, rows_of):
    (folder / "latest.parquet").symlink_to(folder / "1.parquet")
    with pytest.raises(DataError, match=r"once; got .*1\.parquet` and .*latest\.parquet`"):
        rows_of(folder)


@every_reader
def test_a_link_to_nowhere_is_named(folder, rows_of):
    (folder / "2.parquet").symlink_to(folder / "gone")
    with pytest.raises(DataError, match=r"2\.parquet` cannot be read as Parquet"):
        rows_of(folder)


def test_a_table_beside_itself_compressed(tmp_path):
    for name in ("log.csv", "log.csv.gz"):
        write(tmp_path / name)
    with pytest.raises(DataError, match=r"once; got .*log\.csv` and .*log\.csv\.gz`"):
        in_memory(tmp_path)


@every_reader
def test_a_folder_with_the_name_of_a_table_is_not_passed_over(folder, rows_of):
    write(folder / "2.parquet" / "part-0.parquet")
    with pytest.raises(DataError, match=r"matches the folder .*2\.parquet`"):
        rows_of(folder / "*.parquet")
    with pytest.warns(FilesWarning, match=r"first .*2\.parquet`"):
        assert rows_of(folder) == 2 * ROWS


def test_only_parquet_is_read_part_by_part(tmp_path):
    write(tmp_path / "log.csv")
    with pytest.raises(DataError, match=r"Only Parquet files .* first .*log\.csv"):
        in_parts(tmp_path)


def test_endings_in_capitals_count(tmp_path):
    for name in ("a.csv", "B.CSV"):
        write(tmp_path / name.lower())
        (tmp_path / name.lower()).rename(tmp_path / name)
    assert len(paths_of(str(tmp_path))) == 2


def test_compression_in_capitals_counts(tmp_path):
    write(tmp_path / "log.csv")
    (tmp_path / "LOG.CSV.GZ").write_bytes(gzip.compress((tmp_path / "log.csv").read_bytes()))
    assert in_memory(tmp_path / "LOG.CSV.GZ") == ROWS


@every_reader
@pytest.mark.parametrize("part", ["**.parquet", "0**"])
def test_two_stars_beside_letters_are_refused(folder, rows_of, part):
    # They mean what one means: files that lie deeper would be left out.
    write(folder / "2025" / "0.parquet")
    with pytest.raises(DataError) as error:
        rows_of(folder / part)
    assert "`**` must be a whole part of a path" in str(error.value)
    assert f"Write `**/{part.replace('**', '*')}` to read files at any depth" in str(error.value)


@every_reader
def test_folders_that_a_pattern_matches_are_said(folder, rows_of):
    write(folder / "2025" / "07" / "0.parquet")
    (folder / "empty").mkdir()
    with pytest.warns(FilesWarning, match=r"matches 1 folder with tables that are not .*2025`"):
        assert rows_of(folder / "*") == 2 * ROWS
    assert rows_of(folder / "**") == rows_of(folder / "**" / "*") == 3 * ROWS


@every_reader
@pytest.mark.parametrize("name", ["2.parquet.gz", "2.csv.xz", "2.csv.ZIP"])
def test_tables_in_another_compression_are_said(folder, rows_of, name):
    (folder / name).write_bytes(b"")
    with pytest.warns(FilesWarning, match=rf"^1 table in .*, first `.*{name}`, is not read: only"):
        assert rows_of(folder) == 2 * ROWS


@every_reader
@pytest.mark.parametrize("means", [".", "*", "**/*.parquet"])
def test_a_copy_of_a_file_is_refused(folder, rows_of, means):
    shutil.copy(folder / "1.parquet", folder / "1 copy.parquet")
    with pytest.raises(DataError, match=r"once; got .*1 copy\.parquet` and .*1\.parquet`"):
        rows_of(folder / means)


def test_files_that_differ_in_the_middle_are_no_copies(tmp_path):
    # As long as each other, with the same beginning and the same end.
    lines = ["dose,loss,age", *(f"{i % 10},{i % 7},1" for i in range(50_000))]
    for k in range(2):
        lines[25_000] = f"{k},0,1"
        (tmp_path / f"{k}.csv").write_text("\n".join(lines) + "\n")
    assert in_memory(tmp_path) == 100_000
    shutil.copy(tmp_path / "0.csv", tmp_path / "2.csv")
    with pytest.raises(DataError, match=r"once; got .*0\.csv` and .*2\.csv`"):
        in_memory(tmp_path)


@every_reader
def test_files_without_rows_may_be_alike(folder, rows_of):
    for k in (2, 3):
        write(folder / f"{k}.parquet", table().slice(0, 0))
    assert rows_of(folder) == 2 * ROWS


# Columns


@every_reader
@pytest.mark.parametrize("number", [0, 1])
def test_a_named_column_that_a_file_lacks(folder, rows_of, number):
    odd = folder / f"{number}.parquet"
    write(odd, table().drop_columns("age"))
    with pytest.raises(DataError, match=rf"{odd}`.*`age`"):
        rows_of(folder)


@pytest.mark.parametrize("number", [0, 1])
def test_a_named_column_that_a_file_lacks_when_all_columns_are_read(folder, number):
    odd = folder / f"{number}.parquet"
    write(odd, table().drop_columns("age"))
    with pytest.raises(DataError, match=rf"{odd}`.*`age`"):
        read_table(str(folder), COLUMNS.roles)


@every_reader
@pytest.mark.parametrize("number", [0, 1])
def test_another_column_that_a_file_lacks_is_said(folder, rows_of, number):
    more = table().append_column("site", pa.array(range(ROWS)))
    write(folder / f"{number}.parquet", more)
    said = rf"1 of 2 files lacks .*{1 - number}\.parquet` without `site`\. .* not read"
    with pytest.warns(FilesWarning, match=said):
        assert rows_of(folder) == 2 * ROWS


# The commands


def evaluated(log, capsys, *words):
    columns = ["--treatment", "dose", "--outcome", "loss", "--context", "age"]
    how = ["--estimator", "sn", "--propensity-model", "linear-gaussian", "--bandwidth", "1"]
    policy = ["--policy", "constant:0", "--allow-untrusted", "--json", "-"]
    code = run(["evaluate", str(log), *columns, *how, *policy, *words])
    said = capsys.readouterr()
    return code, said


@pytest.mark.parametrize("words", [[], ["--in-parts"]], ids=["in memory", "in parts"])
def test_a_command_counts_each_row_once(folder, capsys, words):
    write(folder / ".ipynb_checkpoints" / "0-checkpoint.parquet")
    code, said = evaluated(folder, capsys, *words)
    assert code == 0, said.err
    assert json.loads(said.out)["rows"] == 2 * ROWS


@pytest.mark.parametrize("words", [[], ["--in-parts"]], ids=["in memory", "in parts"])
def test_a_command_with_an_empty_path(folder, monkeypatch, capsys, words):
    monkeypatch.chdir(folder)
    code, said = evaluated("", capsys, *words)
    assert code == 2
    assert "The path of the table is empty." in said.err


def test_paths_are_paths_or_texts(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"dose": [1.0, 2, 3], "loss": [0.1, 0.2, 0.3], "age": [1, 2, 3]}), path)
    for given in (path, str(path), [path], tmp_path):
        assert len(scan_parquet(given, COLUMNS)) == 3
