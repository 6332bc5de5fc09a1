"""Paths in object stores, read from a server on this machine."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import titrant as tt
from data.store import LOCKED, serving
from titrant.cli import run
from titrant.data.files import FilesWarning, paths_of, read_table, stream_of
from titrant.data.files.stores import StorePath

COLUMNS = tt.Columns(treatment="t", outcome="y", context=["x"], propensity="q")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    x, e = rng.standard_normal((2, 600))
    t = 0.5 * x + e
    q = np.exp(-0.5 * e**2) / np.sqrt(2 * np.pi)
    return pa.table({"x": x, "t": t, "y": (t - x) ** 2, "q": q})


@pytest.fixture(scope="module")
def folder(tmp_path_factory, table):
    """The buckets: the same rows as one CSV and as three Parquet files."""
    root = tmp_path_factory.mktemp("store")
    logs = root / "bucket" / "logs"
    for place in (logs / "deep", root / "bucket" / "two words", root / "bucket" / "split/day=1"):
        place.mkdir(parents=True)
    for k in range(3):
        pq.write_table(table.slice(200 * k, 200), logs / f"{k}.parquet")
    pq.write_table(table, logs / "_temporary.parquet")
    pa_csv.write_csv(table, root / "bucket" / "two words" / "a log.csv")
    pa_csv.write_csv(table, root / "bucket" / "log.csv")
    pq.write_table(table.slice(0, 100), root / "bucket" / "split" / "day=1" / "0.parquet")
    tt.Linear(coef=[0.5], intercept=0.0, features=("x",)).save(root / "bucket" / "policy.json")
    return root


@pytest.fixture
def options(folder, monkeypatch):
    """The options that lead to the server; no other credentials are looked for."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_LOCKED_ACCESS_KEY", "word")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with serving(folder) as (options, _):
        yield options


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("logs", ["logs/0.parquet", "logs/1.parquet", "logs/2.parquet"]),
        ("logs/", ["logs/0.parquet", "logs/1.parquet", "logs/2.parquet"]),
        ("logs/[12].parquet", ["logs/1.parquet", "logs/2.parquet"]),
        ("logs/_*.parquet", ["logs/_temporary.parquet"]),
        ("**/0.parquet", ["logs/0.parquet", "split/day=1/0.parquet"]),
        ("logs/1.parquet", ["logs/1.parquet"]),
        ("two%20words/*.csv", ["two%20words/a%20log.csv"]),
    ],
)
def test_files_folders_and_patterns_mean_what_they_mean_on_disk(options, path, meant):
    assert paths_of(f"s3://bucket/{path}{options}") == [f"s3://bucket/{m}{options}" for m in meant]


@pytest.mark.parametrize("path", ["log.csv", "two%20words/a%20log.csv", "logs/*.parquet"])
def test_a_table_is_read_as_from_disk(options, table, path):
    read = read_table(f"s3://bucket/{path}{options}")
    assert read.column_names == table.column_names
    assert all(np.array_equal(read[n], table[n]) for n in table.column_names)


def test_a_stream_has_all_rows(options):
    path = f"s3://bucket/log.csv{options}"
    assert stream_of(path, above=1 << 30) is None
    assert sum(len(part) for part in stream_of(path, above=0)()) == 600
    assert sum(len(part) for part in stream_of(path, 0, ["x"])()) == 600


def test_an_estimate_has_the_bits_of_that_from_disk(options, folder):
    policy = tt.load_policy(f"s3://bucket/policy.json{options}")
    far = tt.scan_parquet(f"s3://bucket/logs/*.parquet{options}", COLUMNS)
    near = tt.scan_parquet(folder / "bucket" / "logs", COLUMNS)
    found, known = (
        tt.evaluate(log, policy, estimator=tt.SelfNormalized(), allow_untrusted=True)
        for log in (far, near)
    )
    assert found.value == known.value
    assert found.interval() == known.interval()
    # A partition that was sent elsewhere finds its rows by itself.
    sent = pickle.loads(pickle.dumps(far.partitions[0]))  # noqa: S301
    assert sum(map(len, sent.batches(64))) == 200


def test_a_policy_that_cannot_be_read_is_refused_in_the_words_of_the_store(options):
    with pytest.raises(tt.PolicyFileError, match=r"^The store does not let you read"):
        tt.load_policy(f"s3://{LOCKED}/policy.json{options}")


def test_commands_take_such_paths(options, monkeypatch, capsys):
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{options.partition('=')[2].partition('&')[0]}")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    asked = ["--treatment", "t", "--outcome", "y", "--context", "x", "--propensity", "q"]
    asked += ["--estimator", "sn", "--policy", "s3://bucket/policy.json", "--allow-untrusted"]
    for path, more in (("s3://bucket/log.csv", []), ("s3://bucket/logs", ["--in-parts"])):
        assert run(["evaluate", path, *asked, *more]) == 0
        assert "600" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("s3://nowhere/log.csv", "There is no bucket `s3://nowhere`"),
        ("s3://nowhere/*.csv", "There is no bucket `s3://nowhere`"),
        ("s3://bucket/nothing.csv", "There is no file at `s3://bucket/nothing.csv"),
        ("s3://bucket/logs/*.csv", "No file matches `s3://bucket/logs/"),
        ("s3://bucket/split", "folders such as `s3://bucket/split/day=1"),
        ("s3://bucket/logs**/x", r"`\*\*` must be a whole part"),
        (f"s3://{LOCKED}/log.csv", "The store does not let you read"),
        (f"s3://{LOCKED}/*.csv", "The store does not let you read"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(options, path, said):
    with pytest.raises(tt.DataError, match=said):
        paths_of(path + options)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("ftp://host/log.csv", "No file system is known for `ftp://host/log.csv`"),
        ("s3:///log.csv", "names no bucket"),
        ("s3://key:word@bucket/log.csv", "must not hold a secret"),
        ("s3://bucket/log.csv?nonsense=1", r"cannot be read \(Unexpected query parameter"),
        ("s3://bucket/x?endpoint_override=127.0.0.1:9&scheme=http", "cannot be read"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(monkeypatch, path, said):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_LOCKED_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    with pytest.raises(tt.DataError, match=said) as refused:
        paths_of(path)
    assert "word" not in str(refused.value)


def test_a_pyarrow_without_the_file_system_is_named(monkeypatch):
    def lacking(_: str) -> None:
        raise NotImplementedError("Got GCS URI but Arrow compiled without GCS support")

    monkeypatch.setattr("titrant.data.files.stores._file_system", lacking)
    with pytest.raises(tt.DataError, match="installed pyarrow has no file system for `gs://b/x"):
        paths_of("gs://b/x.csv")


@pytest.mark.parametrize(
    ("path", "kind", "place"),
    [
        ("gs://anonymous@bucket/a%20b.csv", "GcsFileSystem", "bucket/a b.csv"),
        ("abfs://box@account.dfs.core.windows.net/logs/x.csv", "AzureFileSystem", "box/logs/x.csv"),
        ("abfs://account.blob.core.windows.net/box/x.csv", "AzureFileSystem", "box/x.csv"),
    ],
)
def test_other_stores_are_found_by_their_scheme(path, kind, place):
    system, there = StorePath.of(path)._place()
    assert (type(system).__name__, there) == (kind, place)


def test_tables_deeper_in_a_folder_are_told_of(options, folder, table):
    pq.write_table(table.slice(0, 10), folder / "bucket" / "logs" / "deep" / "3.parquet")
    with pytest.warns(FilesWarning, match="not those in 1 folder of it, first `s3://bucket/logs/d"):
        assert len(paths_of(f"s3://bucket/logs{options}")) == 3
    (folder / "bucket" / "logs" / "deep" / "3.parquet").unlink()
