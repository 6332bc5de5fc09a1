"""Columns whose dates are after that of the treatment."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import titrant as tt

N = 400
RNG = np.random.default_rng(11)
AGE = RNG.uniform(20.0, 80.0, N)
DAYS = RNG.integers(0, 700, N)
TREATED = pd.Timestamp("2023-01-01") + pd.to_timedelta(DAYS, "D")
BASE = {
    "age": AGE,
    "dose": 2.0 + AGE / 20.0 + RNG.normal(size=N),
    "loss": RNG.normal(size=N),
    "given": TREATED,
}
ROLES = {"treatment": "dose", "outcome": "loss"}


def moved(days, first: int = N):
    """Dates so many days after the treatment in the first rows, and a month before in others."""
    by = np.where(np.arange(N) < first, days, -30)
    return TREATED + pd.to_timedelta(by, "D")


def log_of(table, **how) -> tt.LoggedData:
    with pytest.warns(tt.TableWarning):
        return tt.LoggedData.from_frame(table, **ROLES, treated_on="given", **how)


def dated_of(table, **how) -> dict[str, tuple[int, int]]:
    return {one.column: (one.later, one.rows) for one in log_of(table, **how).flow.dated}


KINDS = {
    "timestamps": lambda dates: dates,
    "dates": lambda dates: dates.date,
    "texts": lambda dates: dates.strftime("%Y-%m-%d"),
    "German texts": lambda dates: dates.strftime("%d.%m.%Y"),
    "with a zone": lambda dates: dates.tz_localize("Europe/Berlin"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_dates_are_compared_however_they_are_held(kind, other):
    # 300 of 400 dates are later, whatever type either column has.
    table = pd.DataFrame(
        {**BASE, "given": KINDS[kind](TREATED), "seen": KINDS[other](moved(9, 300))}
    )
    assert dated_of(table) == {"seen": (300, N)}


@pytest.mark.parametrize("context", [None, ["age", "left", "entered"]])
def test_a_date_mostly_after_the_treatment_is_no_context(context):
    table = pd.DataFrame({**BASE, "left": moved(5, 201), "entered": moved(-3)})
    log = log_of(table, context=context)
    assert log.after == ("left",)
    assert not any(name.startswith("left") for name in log.names)
    assert any(name.startswith("entered") for name in log.names)
    assert any(name.startswith("given") for name in log.names) is (context is None)
    text = "its date is after `given` in 201 of 400 rows (50.2%)"
    assert text in str(log.flow)
    assert "left" in log.flow.left_out
    report = tt.describe(log).doubts
    assert "late_dates" not in report.names
    assert any("so not used as context: 'left'" in note for note in report.notes)


def test_half_is_not_most():
    log = log_of(pd.DataFrame({**BASE, "seen": moved(5, 200)}))
    assert log.after == ()
    assert "`seen` is after `given` in 200 of 400 rows (50.0%): it stays" in str(log.flow)


@pytest.mark.parametrize(("rows", "doubted"), [(21, True), (20, False), (0, False)])
def test_a_date_partly_after_is_named_with_its_share(rows, doubted):
    # More than a twentieth of the rows is doubted, less is noted.
    log = log_of(pd.DataFrame({**BASE, "seen": moved(5, rows)}))
    assert "seen.days" in log.names
    report = tt.describe(log).doubts
    assert ("late_dates" in report.names) is doubted
    if doubted:
        assert "'seen' in 21 of 400 rows (5.2%)" in report["late_dates"].message
        assert report["late_dates"].verdict.value == "warn"
    said = "The date 'seen' is after that of the treatment in 20 of 400 rows (5.0%)."
    assert (said in report.notes) is (rows == 20)


def test_the_day_of_the_treatment_is_not_after_it():
    hours = TREATED + pd.to_timedelta(RNG.uniform(1.0, 23.0, N), "h")
    assert dated_of(pd.DataFrame({**BASE, "seen": hours})) == {"seen": (0, N)}
    # With a time of day on both sides an hour is.
    late = {"given": hours, "seen": hours + pd.to_timedelta(1, "h")}
    assert dated_of(pd.DataFrame({**BASE, **late})) == {"seen": (N, N)}


def test_zones_are_compared_by_instants():
    here = (TREATED + pd.to_timedelta(12, "h")).tz_localize("UTC")
    there = here.tz_convert("Asia/Tokyo")  # nine hours later by the clock, and the same moment
    assert dated_of(pd.DataFrame({**BASE, "given": here, "seen": there})) == {"seen": (0, N)}


def test_rows_without_one_of_the_dates_do_not_count():
    seen = pd.Series(moved(5, 300)).where(np.arange(N) % 4 > 0)
    given = pd.Series(TREATED).where(np.arange(N) % 5 > 0)
    both = (np.arange(N) % 4 > 0) & (np.arange(N) % 5 > 0)
    table = pd.DataFrame({**BASE, "given": given, "seen": seen, "never": pd.Series([pd.NaT] * N)})
    assert dated_of(table) == {"seen": (np.count_nonzero(both[:300]), np.count_nonzero(both))}


def test_few_dates_as_texts_are_dates_here():
    waves = ["2022-12-01", "2025-03-01", "2025-06-01"]
    table = pd.DataFrame({**BASE, "wave": [waves[i % 3] for i in range(N)]})
    log = log_of(table)
    assert log.after == ("wave",)
    assert not any(name.startswith("wave") for name in log.names)


def test_the_date_of_the_treatment_may_be_left_out_of_the_context():
    table = {**BASE, "seen": moved(5)}
    log = log_of(table, context=["age", "seen"])
    assert log.names == ("age",)
    assert log.after == ("seen",)
    aside = log_of(table, after="given")
    assert aside.names == ("age",)
    assert aside.after == ("given", "seen")


def test_several_outcomes_have_the_same_contexts():
    table = pa.table({**BASE, "pain": AGE, "seen": pa.array(moved(5))})
    with pytest.warns(tt.TableWarning):
        logs = tt.LoggedData.from_frame(
            table, treatment="dose", outcome=["loss", "pain"], treated_on="given"
        )
    assert {log.names for log in logs.values()} == {logs["loss"].names}
    assert logs["pain"].after == ("loss", "seen")


def test_nothing_to_compare_is_said():
    assert "No column beside `given` that may be a context holds dates" in str(log_of(BASE).flow)


@pytest.mark.parametrize(
    ("change", "treated_on", "said"),
    [
        ({}, "givn", "The treatment date column `givn` is not in the table; did you mean `given`"),
        ({}, "age", "date of the treatment, must hold dates; got values such as "),
        ({}, "dose", "one role; got `dose` as treatment and as treatment date"),
        ({}, 3, "name of the treatment date column must be text"),
        ({"given": [None] * N}, "given", "must hold dates; got no value in any row"),
        ({"given": ["a", "b"] * (N // 2)}, "given", "got values such as 'a'"),
        ({"given": ["01/02/2023", "03/04/2023"] * (N // 2)}, "given", "tells the day from"),
    ],
)
def test_what_holds_no_dates_is_refused(change, treated_on, said):
    with pytest.raises(tt.DataError, match=said):
        tt.LoggedData.from_frame({**BASE, **change}, **ROLES, treated_on=treated_on)
