"""Predictions of a log in files are made once, whatever the number of passes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import titrant as tt
from titrant.data.simulate import Quadratic
from titrant.evaluation.models import kept
from titrant.evaluation.models.nuisance import Nuisances

pytestmark = pytest.mark.usefixtures("plain_models")
POLICIES = {"half": tt.Constant(0.5), "none": tt.Constant(0.0)}


@pytest.fixture
def source(tmp_path):
    log = Quadratic().draw(1_200, seed=2)
    table = pa.table(log.to_columns(treatment="dose", outcome="loss"))
    for k in range(3):
        pq.write_table(table.slice(400 * k, 400), tmp_path / f"{k}.parquet")
    columns = tt.Columns(treatment="dose", outcome="loss", context=log.names)
    return tt.scan_parquet(tmp_path, columns, sample_rows=400)


def compared(source) -> list[object]:
    model = tt.LinearGaussian()
    found = tt.compare(source, POLICIES, propensity=model, allow_untrusted=True)
    return [found[name].to_dict() for name in POLICIES]


def test_each_row_is_predicted_once(source, monkeypatch):
    rows: Counter[int] = Counter()
    prepare = Nuisances.prepare

    def counting(self, log, numbers=None, *, by=None):
        if numbers is None and by is None and len(log) == 400:
            rows[log.first_row] += 1
        return prepare(self, log, numbers, by=by)

    monkeypatch.setattr(Nuisances, "prepare", counting)
    compared(source)
    assert rows == {0: 1, 400: 1, 800: 1}


def test_what_is_kept_changes_no_bit(source, monkeypatch):
    known = compared(source)
    monkeypatch.setattr(kept, "MOST", 0)  # nothing is kept: every pass predicts
    assert compared(source) == known
    monkeypatch.setattr(kept, "MOST", 30_000)  # one block of two
    assert compared(source) == known
    monkeypatch.setattr(kept, "TemporaryFile", _nowhere)
    assert compared(source) == known


def _nowhere() -> None:
    raise FileNotFoundError("No usable temporary directory found")


def test_numbers_come_back_as_they_were_and_only_for_as_many_rows():
    store = kept.Kept()
    numbers = np.random.default_rng(0).standard_normal((3, 7))
    store.put((0, 0), numbers)
    store.put((0, 1), 2.0 * numbers)
    assert np.array_equal(store.get((0, 1), 7), 2.0 * numbers)
    assert store.get((0, 1), 6) is None
    assert store.get((7, 0), 7) is None
    store.close()
    store.put((9, 9), numbers)
    assert store.get((0, 0), 7) is None


def test_few_evaluations_are_remembered_and_an_ended_one_is_forgotten():
    names = [f"of this test {k}" for k in range(kept.EVALUATIONS + 1)]
    first = kept.memory().of(names[0])
    for name in names[1:]:
        kept.memory().of(name)
    assert first.file.closed
    for name in names:
        kept.forget(name)
    assert not set(names) & set(kept.memory().kept)
