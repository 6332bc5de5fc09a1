"""Every kind of table gives the same arrays, bit for bit, and only the named columns are read."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from titrant.data import LoggedData, frames
from titrant.errors import DataError

N = 50
RNG = np.random.default_rng(20180218)
COLUMNS = {
    "id": np.arange(N),
    "age": RNG.integers(18, 90, N),
    "bmi": RNG.normal(27.0, 4.0, N),
    "carrier": RNG.random(N) < 0.3,
    "dose": RNG.lognormal(3.0, 0.4, N),
    "second": RNG.normal(size=N).astype(np.float32),
    "loss": RNG.normal(size=N),
    "q": RNG.random(N) + 0.01,
    "comment": np.array([f"patient {i}" for i in range(N)]),
}
ROLES = {
    "treatment": "dose",
    "outcome": "loss",
    "context": ["bmi", "age", "carrier"],
    "propensity": "q",
}


class ForeignStream:
    """A table of some other library: it speaks the Arrow protocol and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def arrow(columns):
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def chunked(columns):
    table = arrow(columns)
    return pa.concat_tables([table.slice(0, 7), table.slice(7, 1), table.slice(8)])


def duck(columns):
    table = arrow(columns)
    connection = duckdb.connect()
    return connection.from_arrow(table).filter("id >= 0")


def shuffled_index(columns):
    return pd.DataFrame(columns).set_index(pd.Index(RNG.permutation(N) // 2, name="age_at_visit"))


FRAMES = {
    "dict of arrays": dict,
    "dict of lists": lambda c: {name: column.tolist() for name, column in c.items()},
    "dict of series": lambda c: {name: pd.Series(column) for name, column in c.items()},
    "dict of Arrow arrays": lambda c: {name: pa.array(column) for name, column in c.items()},
    "pandas": pd.DataFrame,
    "pandas with repeated labels": shuffled_index,
    "pandas nullable": lambda c: pd.DataFrame(c).convert_dtypes(),
    "pandas on Arrow": lambda c: pd.DataFrame(c).convert_dtypes(dtype_backend="pyarrow"),
    "pandas objects": lambda c: pd.DataFrame(c).astype(object),
    "pandas, every other row": lambda c: pd.DataFrame(c).iloc[np.repeat(np.arange(N), 2)][::2],
    "polars": pl.DataFrame,
    "polars in chunks": lambda c: pl.concat(
        [pl.DataFrame(c)[:9], pl.DataFrame(c)[9:]], rechunk=False
    ),
    "polars lazy": pl.LazyFrame,
    "Arrow table": arrow,
    "Arrow chunks": chunked,
    "Arrow batch": lambda c: arrow(c).to_batches()[0],
    "Arrow reader": lambda c: chunked(c).to_reader(),
    "duckdb": duck,
    "foreign Arrow stream": lambda c: ForeignStream(chunked(c)),
}  # fmt: skip


def same(log, reference):
    for name in ("context", "treatment", "outcome", "propensity"):
        a, b = getattr(log, name), getattr(reference, name)
        np.testing.assert_array_equal(a, b, strict=True)
        assert a.flags.c_contiguous
        assert not a.flags.writeable
    assert log.names == reference.names


def reference(doses=("dose",)):
    return LoggedData(
        np.column_stack([COLUMNS["bmi"], COLUMNS["age"], COLUMNS["carrier"]]),
        np.column_stack([COLUMNS[name] for name in doses]),
        COLUMNS["loss"],
        COLUMNS["q"],
        names=["bmi", "age", "carrier"],
    )


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_every_table_gives_the_same_log(make):
    same(LoggedData.from_frame(make(COLUMNS), **ROLES), reference())


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_every_table_gives_the_same_vector_doses(make):
    roles = ROLES | {"treatment": ["dose", "second"]}
    same(LoggedData.from_frame(make(COLUMNS), **roles), reference(("dose", "second")))


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_every_table_suggests_the_closest_column(make):
    table = make(COLUMNS)
    with pytest.raises(DataError, match="column `Bmi ` is not in the table; did you mean `bmi`"):
        LoggedData.from_frame(table, **(ROLES | {"context": ["age", "Bmi "]}))
    # Nothing has been read: the same table still makes a log.
    same(LoggedData.from_frame(table, **ROLES), reference())


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_every_table_refuses_text_with_the_value(make):
    with pytest.raises(DataError, match=r"outcome column `comment` must be numeric.*'patient 0'"):
        LoggedData.from_frame(make(COLUMNS), **(ROLES | {"context": "age", "outcome": "comment"}))


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_every_table_may_come_without_context(make):
    log = LoggedData.from_frame(make(COLUMNS), treatment="dose", outcome="loss", context=[])
    assert log.context.shape == (N, 0)


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_contexts_alone(make):
    X = frames.read_context(make(COLUMNS), ["bmi", "age", "carrier"])
    np.testing.assert_array_equal(X, reference().context, strict=True)
    with pytest.raises(DataError, match="`weight` is not in the table"):
        frames.read_context(make(COLUMNS), ["weight"])


def test_contexts_alone_are_checked():
    with pytest.raises(DataError, match="1 of 3 rows"):
        frames.read_context({"age": [30, None, 40]}, ["age"])
    with pytest.raises(DataError, match="got `age` twice as context"):
        frames.read_context({"age": [30, 35, 40]}, ["age", "age"])


# ── one kind of table at a time ──────────────────────────────────────────────────────────────────
def test_pandas_without_the_arrow_stream_comes_through_numpy(monkeypatch):
    monkeypatch.setattr(frames, "ArrowStream", ())  # nothing is an instance of no class
    for name in ("pandas", "pandas with repeated labels", "pandas nullable", "pandas objects"):
        same(LoggedData.from_frame(FRAMES[name](COLUMNS), **ROLES), reference())


def test_a_relation_without_the_arrow_stream_is_collected(monkeypatch):
    monkeypatch.setattr(frames, "ArrowStream", ())
    same(LoggedData.from_frame(duck(COLUMNS), **ROLES), reference())


def test_columns_that_are_not_named_may_hold_anything():
    df = pd.DataFrame(COLUMNS)
    df["junk"] = [object() if i % 2 else {"a": 1} for i in range(N)]
    df[7] = 1
    df["when"] = pd.Timestamp("2018-02-18")
    same(LoggedData.from_frame(df, **ROLES), reference())


def test_pandas_columns_by_their_index_object():
    df = pd.DataFrame(COLUMNS)
    log = LoggedData.from_frame(df, **(ROLES | {"context": df.columns[1:3]}))
    assert log.names == ("age", "bmi")


def test_sparse_pandas_columns_have_no_arrow_form_and_still_come():
    df = pd.DataFrame({"dose": [1.0, 2.0, 4.0], "loss": [0.0, 1.0, 0.0],
                       "flag": pd.arrays.SparseArray([0.0, 0.0, 1.0])})  # fmt: skip
    log = LoggedData.from_frame(df, treatment="dose", outcome="loss", context="flag")
    np.testing.assert_array_equal(log.context[:, 0], [0.0, 0.0, 1.0])


def test_decimals_and_wide_integers_of_a_query_are_numbers():
    relation = duckdb.connect().sql(
        "select 1.5 + i as dose, i::hugeint as loss, i::utinyint as age, i % 2 = 0 as flag "
        "from range(4) rows(i)"
    )
    log = LoggedData.from_frame(relation, treatment="dose", outcome="loss", context=["age", "flag"])
    np.testing.assert_array_equal(log.treatment, [1.5, 2.5, 3.5, 4.5])
    np.testing.assert_array_equal(log.outcome, [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(log.context, [[0, 1], [1, 0], [2, 1], [3, 0]])
    decimals = {"dose": [Decimal("0.1"), Decimal("0.2"), Decimal("0.4")], "loss": [1, 2, 3]}
    for table in (decimals, pd.DataFrame(decimals), pl.DataFrame(decimals), pa.table(decimals)):
        log = LoggedData.from_frame(table, treatment="dose", outcome="loss", context=[])
        np.testing.assert_array_equal(log.treatment, [0.1, 0.2, 0.4])


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.int8(), pa.uint64(), pa.int64(),
                                  pa.decimal128(9, 2), pa.decimal256(40, 2)])  # fmt: skip
def test_every_numeric_arrow_type(kind):
    table = pa.table({"dose": pa.array([1, 2, 4], pa.int8()).cast(kind), "loss": [0.0, 1.0, 0.0]})
    log = LoggedData.from_frame(table, treatment="dose", outcome="loss", context=[])
    np.testing.assert_array_equal(log.treatment, [1.0, 2.0, 4.0], strict=True)


def test_integers_beyond_the_precision_of_float64_are_rounded():
    # 2^53 + 1 has no float64; Arrow's safe cast would refuse it in its own words.
    ids = np.array([2**53 + 1, 2**63, 2**64 - 1], dtype=np.uint64)
    table = pa.table({"dose": [1, 2, 3], "loss": [1, 2, 3], "id": ids})
    log = LoggedData.from_frame(table, treatment="dose", outcome="loss", context="id")
    np.testing.assert_array_equal(log.context[:, 0], ids.astype(np.float64))


def test_an_arrow_column_without_gaps_is_not_copied():
    dose = pa.array(np.arange(5.0))
    table = pa.table({"dose": dose, "loss": np.ones(5)})
    log = LoggedData.from_frame(table, treatment="dose", outcome="loss", context=[])
    assert np.shares_memory(log.treatment, dose.to_numpy())


def test_a_relation_is_run_once():
    # Two runs of this query differ; dose and loss must come from the same one.
    relation = duckdb.connect().sql("select u as dose, u as loss from (select random() u "
                                    "from range(100))")  # fmt: skip
    log = LoggedData.from_frame(relation, treatment="dose", outcome="loss", context=[])
    np.testing.assert_array_equal(log.treatment, log.outcome)


def test_arrays_need_no_table_library():
    code = (
        "import sys, titrant.data as d; d.LoggedData([1, 2], [1, 2], [1, 2]); "
        "print(sorted({'pyarrow', 'narwhals', 'pandas', 'scipy', 'polars'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"
