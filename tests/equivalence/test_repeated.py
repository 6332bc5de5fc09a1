"""Rows that belong together are pointed out over files as they are in memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import titrant as tt
from titrant.data.files.paths import FilesWarning
from titrant.data.keys import WholeKeys, are_alone, keys_of
from titrant.evaluation import shared
from titrant.evaluation.survey import survey_of
from titrant.execute import Engine

CLOSE = 1e-6  # models of the same rows; of single precision
N = 1000
QUICK = {"estimator": tt.SelfNormalized(), "bandwidth": 0.5}
ROLES = {"treatment": "t", "outcome": "y", "propensity": "q"}


def visits(*, effect=2.0, patients=N // 10, rows=10, seed=4):
    """A panel, its rows in random order, with columns that have no part in the log."""
    rng = np.random.default_rng(seed)
    n = patients * rows
    who = rng.permutation(np.repeat(np.arange(patients), rows))
    t = rng.normal(size=n)
    return {
        "age": rng.normal(size=n),
        "patient": np.array([f"P-{k}" for k in who]),
        "number": 1000.0 + who,
        "t": t,
        "y": t**2 + effect * rng.normal(size=patients)[who] + 0.3 * rng.normal(size=n),
        "q": stats.norm.pdf(t),
        "clinic": rng.integers(0, 5, n),
        "visit": np.arange(n),
        "note": np.where(rng.random(n) < 0.1, None, "seen"),
        "cost": rng.normal(size=n),
    }


def stored(table, folder, files=3):
    """The table in that many files, each of several row groups."""
    whole = pa.table({k: pa.array(v) for k, v in table.items()})
    ends = np.linspace(0, len(whole), files + 1).astype(int)
    for k in range(files):
        part = whole.slice(ends[k], ends[k + 1] - ends[k])
        pq.write_table(part, folder / f"{k}.parquet", row_group_size=90)
    return str(folder)


def asked(log, executor=None):
    return tt.evaluate(log, tt.Constant(0.0), **QUICK, executor=executor).diagnostics


def of_bytes(table):
    """The panel, its ids as keys of 16 bytes."""
    ids = pa.array([str(k).encode().rjust(16) for k in table["patient"]], pa.binary(16))
    return table | {"patient": ids}


def with_gaps(table, seed=0):
    """The panel, its ids missing in one of fifty rows."""
    gap = np.random.default_rng(seed).random(len(table["t"])) < 0.02
    patient = np.where(gap, None, table["patient"].astype(object))
    return table | {"patient": patient, "number": np.where(gap, np.nan, table["number"])}


PANELS = {
    "id beside the log, of text": (visits(), "age", ["patient", "number"]),
    "id among the contexts": (visits(), ["age", "number"], ["number", "patient"]),
    "ids of bytes": (of_bytes(visits()), "age", ["patient", "number"]),
    "ids that some rows lack": (with_gaps(visits()), "age", ["patient", "number"]),
    "ids without an effect": (visits(effect=0.0), "age", []),
}


@pytest.mark.parametrize(("table", "context", "named"), PANELS.values(), ids=PANELS)
def test_ids_in_files_are_those_in_memory(table, context, named, tmp_path):
    roles = ROLES | {"context": context}
    inside = asked(tt.LoggedData.from_frame(pa.table(table), **roles))
    files = tt.scan_parquet(stored(table, tmp_path), tt.Columns(**roles), partition_rows=100)
    assert len(files.partitions) > 5
    with ThreadPoolExecutor(2) as threads:
        for executor in (None, threads):
            over = asked(files, executor)
            assert over.verdict == inside.verdict
            messages = [c.message for c in over if c.name == "repeated_rows"]
            assert messages == [c.message for c in inside if c.name == "repeated_rows"]
            assert len(messages) == len(named)
            for name, message in zip(named, messages, strict=True):
                assert f"`{name}` repeats each of 100 values" in message
            said = [note for note in over.notes if "`patient`" in note]
            assert said == [note for note in inside.notes if "`patient`" in note]
            assert bool(said) != bool(named)


def test_rows_without_an_id_stand_for_themselves():
    # A block may be one row, which lacks an id; whole numbers beyond all floats are none of a row.
    hashed = np.uint64(2**63) + np.arange(40, dtype=np.uint64) // np.uint64(2)
    columns = {
        "text": np.array([None, "", "a", *"bcdefghijkl" * 3, *"mnop"], dtype=object),
        "number": np.where(np.arange(40) == 7, np.nan, np.arange(40) // 2),
        "hashed": hashed,
        "absurd": np.where(np.arange(40) == 7, 1e300, np.arange(40) // 2),
    }
    whole = keys_of(columns)
    assert list(whole) == ["text", "number", "hashed"]
    assert [int(are_alone(keys).sum()) for keys in whole.values()] == [2, 1, 0]
    assert [len(np.unique(keys)) for keys in whole.values()] == [18, 21, 20]
    for name, keys in whole.items():
        each = [keys_of({name: columns[name][k : k + 1]}, first_row=k)[name] for k in range(40)]
        np.testing.assert_array_equal(np.concatenate(each), keys)


def test_a_panel_in_files_is_warned_of_by_the_default_call(tmp_path):
    table = {k: v for k, v in visits(patients=50, rows=8).items() if k not in {"q", "number"}}
    roles = {"treatment": "t", "outcome": "y", "context": "age"}
    inside = tt.evaluate(tt.LoggedData.from_frame(table, **roles), tt.Constant(0.0)).diagnostics
    files = tt.scan_parquet(stored(table, tmp_path), tt.Columns(**roles))
    over = tt.evaluate(files, tt.Constant(0.0)).diagnostics
    assert over.verdict == inside.verdict
    assert over["repeated_rows"].message == inside["repeated_rows"].message
    assert over["repeated_rows"].value == pytest.approx(inside["repeated_rows"].value, rel=CLOSE)


def copied(times):
    table = {k: v for k, v in visits(effect=0.0).items() if k in {"age", "t", "y", "q"}}
    order = np.random.default_rng(0).permutation(np.tile(np.arange(N), times))
    return {k: v[order] for k, v in table.items()}


@pytest.mark.parametrize("times", [1, 4])
def test_copies_in_files_are_those_in_memory(times, tmp_path):
    roles, table = ROLES | {"context": "age"}, copied(times)
    inside = asked(tt.LoggedData.from_frame(table, **roles))
    folder = stored(table, tmp_path)
    with ThreadPoolExecutor(2) as threads:
        for files, executor in (
            (tt.scan_parquet(folder, tt.Columns(**roles), partition_rows=100), threads),
            (tt.scan_parquet(folder, tt.Columns(**roles)), None),
        ):
            over = asked(files, executor)
            assert ("repeated_rows" in over.names) == (times > 1)
            assert over.verdict == inside.verdict
            if times > 1:
                assert over["repeated_rows"].value == pytest.approx(times)
                assert over["repeated_rows"].message == inside["repeated_rows"].message


def test_of_more_rows_than_fit_whole_ids_are_drawn(monkeypatch, tmp_path):
    monkeypatch.setattr(shared, "MOST", 600)
    table = visits(patients=400)
    roles = ROLES | {"context": ["age"]}
    inside = asked(tt.LoggedData.from_frame(table, **roles))
    folder = stored(table, tmp_path)
    found = []
    for rows in (100, 10_000):
        log = tt.scan_parquet(folder, tt.Columns(**roles), partition_rows=rows)
        drawn = survey_of(log, Engine(), shared=True).sums.shared
        for name in ("patient", "number"):
            keys = drawn[shared.Kind(name)]
            assert 200 < len(keys.keys) <= 600
            assert set(np.unique(keys.keys, return_counts=True)[1]) == {10}
            assert keys.values == pytest.approx(400, rel=0.4)
        level = drawn.get(shared.Kind("clinic"))
        assert level is None or not len(level.keys)
        found.append(asked(log)["repeated_rows"])
    assert found[0].message == found[1].message  # in any cut
    assert found[0].value == pytest.approx(inside["repeated_rows"].value, rel=0.5)
    assert "repeats each of about" in found[0].message
    monkeypatch.setattr(shared, "MOST", 500)
    four = tmp_path / "four"
    four.mkdir()
    log = tt.scan_parquet(stored(copied(4), four), tt.Columns(**roles), partition_rows=300)
    assert asked(log)["repeated_rows"].value == pytest.approx(4.0)


def test_clean_files_and_groups_that_are_given_are_silent(tmp_path):
    table = visits(effect=0.0)
    table["patient"] = np.array([f"P-{k}" for k in range(N)])
    del table["number"]
    folder = stored(table, tmp_path)
    found = asked(tt.scan_parquet(folder, tt.Columns(**ROLES, context="age")))
    assert "repeated_rows" not in found.names
    assert not any("groups=" in note for note in found.notes)
    other = tmp_path / "panel"
    other.mkdir()
    panel = tt.scan_parquet(
        stored(visits(), other), tt.Columns(**ROLES, context="age", groups="patient")
    )
    assert "repeated_rows" not in asked(panel).names
    assert not survey_of(panel, Engine(), shared=True).sums.shared


def test_a_file_that_lacks_the_column_takes_it_from_all(tmp_path):
    table = visits()
    some = tt.Columns(**ROLES, context="age")
    folder = stored(table, tmp_path)
    path = tmp_path / "1.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["patient"]), path)
    with pytest.warns(FilesWarning, match="without `patient`"):
        log = tt.scan_parquet(folder, some)
    found = survey_of(log, Engine(), shared=True).sums.shared
    assert {kind.name for kind in found} == {"", "number", "clinic", "visit"}


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=80),
    st.lists(st.integers(0, 80), max_size=4),
    st.integers(1, 40),
)
def test_keys_drawn_whole_are_the_same_in_any_cut(keys, cuts, most):
    keys, numbers = np.array(keys), np.arange(len(keys))
    whole = WholeKeys(keys, numbers, most).fitting
    ends = [0, *sorted(min(c, len(keys)) for c in cuts), len(keys)]
    parts = [WholeKeys(keys[a:b], numbers[a:b], most).fitting for a, b in pairwise(ends)]
    total = parts[0]
    for part in parts[1:]:
        total += part
    # Law: of a key that is there all rows are, and parts add up to the whole.
    assert (total.halvings, total.numbers.tolist()) == (whole.halvings, whole.numbers.tolist())
    assert set(np.flatnonzero(np.isin(keys, total.keys))) == set(total.numbers.tolist())
    assert len(total.keys) <= most
