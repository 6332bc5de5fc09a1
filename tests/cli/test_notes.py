"""A table in Python and the same table in a file: one log, and the same said of it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import titrant as tt
from titrant.cli.app import as_typed

N = 400
RNG = np.random.default_rng(8)
AGE = RNG.uniform(30.0, 70.0, N).round(1)
TABLE = pd.DataFrame(
    {
        "patient_id": [f"id-{i:04d}" for i in range(N)],
        "row": np.arange(N),
        "dose": (20.0 + 0.2 * AGE + 4.0 * RNG.normal(size=N)).round(2),
        "loss": RNG.normal(size=N).round(3),
        "age": np.where(np.arange(N) % 40 == 7, np.nan, AGE),
        "sex": pd.Series(RNG.choice(["f", "m"], N)).where(np.arange(N) % 50 != 3, None),
        "place": [f"p{i % 60:02d}" for i in range(N)],
        "visit": pd.Timestamp("2024-01-31") + pd.to_timedelta(np.arange(N) * 7 % 365, "D"),
        "unit": "mg",
    }
)
CHANGES = {
    "as it is": ({}, ()),
    "contexts named": ({"context": ["sex", "age"]}, ("--context", "sex,age")),
    "after": ({"after": "visit"}, ("--after", "visit")),
    "treated on": ({"treated_on": "visit"}, ("--treated-on", "visit")),
    "in steps": ({}, ()),
    "gaps": ({"missing_outcome": "drop"}, ("--missing-outcome", "drop")),
    "plain": ({"context": "age"}, ("--context", "age")),
}


def table_of(case: str) -> pd.DataFrame:
    if case == "treated on":
        days = pd.to_timedelta(np.arange(N) % 10 - 2, "D")
        return TABLE.assign(left=TABLE["visit"] + days, born=TABLE["visit"] - 4 * days)
    if case == "in steps":
        return TABLE.assign(dose=np.arange(N) % 5 * 10.0)
    if case == "gaps":
        return TABLE.assign(loss=TABLE["loss"].where(np.arange(N) % 9 > 0))
    return TABLE.assign(age=AGE) if case == "plain" else TABLE


def said_of(call) -> tuple[tt.LoggedData, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        log = call()
    assert all(issubclass(w.category, tt.TableWarning) for w in caught)
    assert all(w.filename == __file__ for w in caught)  # at the user's own line
    lines = [line for w in caught for line in str(w.message).splitlines()]
    return log, lines[1:]


@pytest.mark.parametrize("case", CHANGES)
def test_a_frame_and_its_file_become_the_same_log(case, call, tmp_path, monkeypatch):
    mine, typed = CHANGES[case]
    table, path = table_of(case), tmp_path / "log.csv"
    table.to_csv(path, index=False)
    roles = {"treatment": "dose", "outcome": "loss"}
    log, notes = said_of(lambda: tt.LoggedData.from_frame(table, **roles, **mine))
    opened, describe = [], tt.describe
    monkeypatch.setattr(
        tt, "describe", lambda log, **how: opened.append(log) or describe(log, **how)
    )
    said = call("describe", path, "--treatment", "dose", "--outcome", "loss", *typed)
    assert said.code == 0
    lines = [s for s in said.err.splitlines() if not s.startswith(("Doubt: ", "Note: "))]
    assert lines == [as_typed(note) for note in notes]
    (filed,) = opened
    assert log.names == filed.names
    assert log.flow.to_dict() == filed.flow.to_dict()
    assert log.flow.recipe == filed.flow.recipe
    assert log.after == filed.after
    for part in ("context", "treatment", "outcome"):
        np.testing.assert_allclose(getattr(log, part), getattr(filed, part), rtol=1e-15)
    assert bool(notes) is (case != "plain")


def test_what_nobody_asked_for_is_said_in_one_warning():
    with pytest.warns(tt.TableWarning, match="Notes on the table") as caught:
        tt.LoggedData.from_frame(TABLE, treatment="dose", outcome="loss")
    (one,) = caught
    said = str(one.message)
    assert "Column `patient_id` is left out of the context: it looks like a key." in said
    assert "Column `sex` is text: encoded 0/1 as" in said
    assert "Column `age` is missing in 10 of 400 rows: the median" in said
    assert "Choose others with `context=[…]`." in said
