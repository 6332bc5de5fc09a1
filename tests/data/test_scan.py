"""Parquet files as a log: the rows of a table in any cut, and errors that name the file."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from titrant.data import Columns, LoggedData
from titrant.data.columns import Texts
from titrant.data.files.scan import scan_parquet
from titrant.data.logged import joined
from titrant.errors import DataError, InvalidArgument
from titrant.evaluation.survey import survey_of
from titrant.execute import Engine, as_engine

COLUMNS = Columns(treatment="dose", outcome="loss", context=["age", "bmi"], propensity="q")
N = 50


def table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "unused": rng.normal(size=n),
            "dose": rng.uniform(0, 2, n),
            "loss": rng.normal(size=n),
            "age": rng.normal(size=n),
            "bmi": rng.integers(20, 40, n),
            "q": np.full(n, 0.5),
            "sex": rng.choice(["f", "m"], n),
        }
    )


def in_memory(frame, bounds=None):
    return LoggedData.from_frame(
        frame,
        treatment="dose",
        outcome="loss",
        context=["age", "bmi"],
        propensity="q",
        bounds=bounds,
    )


def written(folder, frame, files, row_group=None):
    """Write a table as `files` files of about equal size; return the pattern."""
    ends = np.linspace(0, len(frame), files + 1).astype(int)
    for k, (a, b) in enumerate(pairwise(ends)):
        pq.write_table(frame.slice(a, b - a), folder / f"{k:03}.parquet", row_group_size=row_group)
    return str(folder / "*.parquet")


def read(source, size):
    batches = [batch for part in source.partitions for batch in part.batches(size)]
    return batches, joined(batches)


@pytest.mark.parametrize("size", [1, 7, 1_000])
@pytest.mark.parametrize("files", [1, 5, 24])
def test_the_rows_of_the_files_are_the_rows_of_the_table(tmp_path, files, size):
    source = scan_parquet(written(tmp_path, table(), files), COLUMNS, bounds=(0, 2))
    expected = in_memory(table(), bounds=(0, 2))
    batches, log = read(source, size)
    assert len(source) == N == sum(map(len, batches))
    assert [batch.first_row for batch in batches] == np.cumsum([0, *map(len, batches)])[
        :-1
    ].tolist()
    assert all(len(batch) <= size for batch in batches)
    for part in ("context", "treatment", "outcome", "propensity", "lower", "upper"):
        assert (getattr(log, part) == getattr(expected, part)).all()
    assert (source.names, source.dimension) == (("age", "bmi"), 1)
    assert source.bounded
    assert source.has_propensity


def test_row_groups_do_not_show_through(tmp_path):
    # Row groups of 7 rows, batches of 10: no batch but the last of a partition is shorter.
    path = written(tmp_path, table(), 1, row_group=7)
    whole = scan_parquet(path, COLUMNS)
    assert [len(batch) for batch in whole.partitions[0].batches(10)] == [10] * 5
    cut = scan_parquet(path, COLUMNS, partition_rows=14)
    assert [(len(p), p.first_row) for p in cut.partitions] == [(14, 0), (14, 14), (14, 28), (8, 42)]
    assert [len(batch) for batch in cut.partitions[0].batches(10)] == [10, 4]


def test_a_partition_is_small_and_travels(tmp_path):
    source = scan_parquet(written(tmp_path, table(5_000), 1), COLUMNS, bounds=(0, None))
    packed = pickle.dumps(source.partitions[0])
    assert len(packed) < 2_000
    again = next(pickle.loads(packed).batches(10))  # noqa: S301
    assert (again.outcome == in_memory(table(5_000)).outcome[:10]).all()


def test_indicators_of_text_columns(tmp_path):
    columns = Columns(treatment="dose", outcome="loss", context=["age", "sex=m"])
    log = read(scan_parquet(written(tmp_path, table(), 3), columns), 4)[1]
    assert log.context[:, 1].tolist() == [float(s == "m") for s in table()["sex"].to_pylist()]


def test_two_doses(tmp_path):
    columns = Columns(treatment=["dose", "age"], outcome="loss", context="bmi")
    log = read(scan_parquet(written(tmp_path, table(), 2), columns, bounds=([0, None], None)), 9)[1]
    assert log.doses.shape == (N, 2)
    assert log.lower[0].tolist() == [0.0, -np.inf]


def test_a_folder_a_file_and_several_files(tmp_path):
    written(tmp_path, table(), 2)
    first = str(tmp_path / "000.parquet")
    assert len(scan_parquet(str(tmp_path), COLUMNS)) == N
    assert len(scan_parquet(first, COLUMNS)) == N // 2
    assert len(scan_parquet([first, first], COLUMNS)) == N


def test_files_without_rows_are_no_partitions(tmp_path):
    written(tmp_path, table(), 2)
    pq.write_table(table().slice(0, 0), tmp_path / "empty.parquet")
    assert len(scan_parquet(str(tmp_path), COLUMNS).partitions) == 2


# What cannot be read


def test_a_truncated_file_is_named(tmp_path):
    path = written(tmp_path, table(), 3)
    bad = tmp_path / "001.parquet"
    bad.write_bytes(bad.read_bytes()[:-30])
    with pytest.raises(DataError, match=r"001.parquet` cannot be read as Parquet"):
        scan_parquet(path, COLUMNS)


def test_a_file_that_is_damaged_inside_is_named(tmp_path):
    path = written(tmp_path, table(20_000), 1)
    bad = tmp_path / "000.parquet"
    content = bytearray(bad.read_bytes())
    content[2_000:400_000] = bytes(398_000)
    bad.write_bytes(content)
    source = scan_parquet(path, COLUMNS)
    with pytest.raises(DataError, match=r"000.parquet"):
        list(source.partitions[0].batches(1_000))


def test_a_file_without_a_column_is_named(tmp_path):
    path = written(tmp_path, table(), 3)
    pq.write_table(table().drop(["bmi"]), tmp_path / "002.parquet")
    with pytest.raises(DataError, match=r"002.parquet`: The context column `bmi` is not in"):
        scan_parquet(path, COLUMNS)


def test_a_file_with_another_type_is_named(tmp_path):
    path = written(tmp_path, table(), 3)
    other = table().set_column(1, "dose", pa.array(["low"] * N))
    pq.write_table(other, tmp_path / "002.parquet")
    with pytest.raises(
        DataError, match=r"002.parquet`: the treatment column `dose` .* type string"
    ):
        scan_parquet(path, COLUMNS)


def test_whole_numbers_beside_fractions_are_no_other_type(tmp_path):
    path = written(tmp_path, table(), 2)
    dose = pa.array(np.arange(N))
    pq.write_table(table().set_column(1, "dose", dose), tmp_path / "002.parquet")
    assert read(scan_parquet(path, COLUMNS), 9)[1].treatment[-1] == N - 1


def test_bad_rows_are_named_with_their_place(tmp_path):
    frame = table()
    loss = frame["loss"].to_numpy().copy()
    loss[33] = np.nan
    path = written(tmp_path, frame.set_column(2, "loss", pa.array(loss)), 1)
    source = scan_parquet(path, COLUMNS)
    with pytest.raises(
        DataError, match=r"000.parquet`, rows counted from row 30 .*row 3, counting from 0"
    ):
        list(source.partitions[0].batches(10))
    with pytest.raises(DataError, match=r"within its bounds"):
        read(scan_parquet(path, COLUMNS, bounds=(None, 1.0)), 10)


def test_a_file_that_changed_is_refused(tmp_path):
    path = written(tmp_path, table(), 1)
    source = scan_parquet(path, COLUMNS)
    pq.write_table(table(40), tmp_path / "000.parquet")
    with pytest.raises(DataError, match="40 rows in a part that had 50"):
        list(source.partitions[0].batches(7))


def test_settings_are_checked(tmp_path):
    path = written(tmp_path, table(), 1)
    with pytest.raises(InvalidArgument, match="`columns` of `scan_parquet`"):
        scan_parquet(path, ["dose"])
    with pytest.raises(InvalidArgument, match="`partition_rows` of `scan_parquet`"):
        scan_parquet(path, COLUMNS, partition_rows=0)
    with pytest.raises(InvalidArgument, match="`sample_rows` of `scan_parquet`"):
        scan_parquet(path, COLUMNS, sample_rows=0)
    with pytest.raises(DataError, match="The lower bound"):
        scan_parquet(path, COLUMNS, bounds=(np.zeros(N), None))
    with pytest.raises(DataError, match="No file matches"):
        scan_parquet([], COLUMNS)
    pq.write_table(table(1), tmp_path / "one.parquet")
    with pytest.raises(DataError, match="at least 2 rows"):
        scan_parquet(str(tmp_path / "one.parquet"), COLUMNS)


def test_it_says_what_it_is(tmp_path):
    source = scan_parquet(written(tmp_path, table(), 2), COLUMNS)
    assert repr(source) == (
        "ParquetSource(50 rows in 2 files; 1 dose(s); 2 context(s); propensity known)"
    )


# ── Texts behind indicators ──────────────────────────────────────────────────────────────────────


def surveyed(folder, texts, context):
    """Survey a log of three files with one text a row each."""
    n = len(texts)
    frame = table(n).set_column(6, "sex", pa.array(texts)).append_column("code", pa.array(range(n)))
    columns = Columns(treatment="dose", outcome="loss", context=context)
    return survey_of(scan_parquet(written(folder, frame, 3), columns), Engine())


def test_an_indicator_that_no_row_has_is_refused(tmp_path):
    # It would be 0 everywhere, and the confounder behind it would be gone without a word.
    with pytest.raises(DataError) as error:
        surveyed(tmp_path, ["male", "female"] * 20, ["age", "sex=mal"])
    assert str(error.value) == (
        "The context `sex=mal` would be 0 in all rows: none has the text `mal` in the column "
        "`sex`; did you mean `sex=male`? Its texts are `female`, `male`."
    )


def test_texts_that_would_count_as_one_category_are_refused(tmp_path):
    spelled = ["male", "female"] * 10 + ["MALE", "FEMALE"] * 10
    with pytest.raises(DataError) as error:
        surveyed(tmp_path, spelled, ["age", "sex=male"])
    assert str(error.value) == (
        "The column `sex` must have one text beside those of the indicators `sex=male`; got "
        "`FEMALE`, `MALE`, `female`, which would all count as one category. Spell each category in "
        "one way, and name an indicator for all but one of them."
    )


def test_a_column_of_countless_texts_keeps_a_bounded_number(tmp_path):
    with pytest.raises(DataError, match="and 39 more, which would all count"):
        surveyed(tmp_path, [f"t{i:03}" for i in range(200)], ["age", "sex=t007"])


@pytest.mark.parametrize(
    ("context", "levels"),
    [
        (["age", "sex=m"], {"sex": ("f", "m")}),
        (["age", "sex=f", "sex=m"], {"sex": ("f", "m")}),
        # The column itself is a context: its other values are not lost.
        (["code", "code=7"], {}),
        (["age"], {}),
    ],
)
def test_texts_that_an_indicator_tells_apart(tmp_path, context, levels):
    assert surveyed(tmp_path, ["m", "f"] * 20, context).recipe.levels == levels


@given(st.lists(st.text("abc", min_size=1, max_size=2), min_size=2), st.data())
def test_texts_of_parts_add_up_to_those_of_the_whole(texts, data):
    cut = data.draw(st.integers(1, len(texts) - 1))
    parts = [Texts.of("sex", ["a", "b"], some) for some in (texts[:cut], texts[cut:])]
    assert parts[0] + parts[1] == parts[1] + parts[0] == Texts.of("sex", ["a", "b"], texts)


def test_a_recipe_fills_and_encodes_every_batch_alike(tmp_path):
    rng = np.random.default_rng(2)
    n = 500
    table = pa.table(
        {
            "dose": rng.normal(size=n),
            "loss": rng.normal(size=n),
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.uniform(20, 80, n)),
            "sex": pa.array(rng.choice(["f", "m", "NA"], n)),
            "store": pa.array([f"s{i % 60:02}" for i in range(n)]),
            "day": pa.array([None if i % 50 == 3 else 86_400 * i for i in range(n)]).cast(
                pa.timestamp("s")
            ),
        }
    )
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=90)
    log = LoggedData.from_frame(table, treatment="dose", outcome="loss")
    assert log.flow.codes == ("store",)
    columns = Columns(treatment="dose", outcome="loss", context=log.names)
    recipe = log.flow.recipe
    source = scan_parquet(tmp_path / "log.parquet", columns, recipe=recipe, partition_rows=90)
    batches = [batch for part in source.partitions for batch in part.batches(64)]
    np.testing.assert_array_equal(np.concatenate([b.context for b in batches]), log.context)
    survey = survey_of(source, as_engine(None, source))
    assert survey.recipe == recipe
    assert survey.sample.log.flow.codes == ("store",)
    assert survey.sample.log.flow.rows_used == n
    # Without it, a gap is refused with what would help.
    plain = Columns(treatment="dose", outcome="loss", context=["age"])
    refused = scan_parquet(tmp_path / "log.parquet", plain)
    with pytest.raises(DataError, match=r"read the log into memory \(`LoggedData.from_frame`\)"):
        list(refused.partitions[0].batches(64))
