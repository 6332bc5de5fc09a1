"""A small seeded slice of the benchmark of structure, and that its page is that of its records.

The full run is `python -m benchmarks.structure --replications 300`.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.confounding.records import Task, records_in
from benchmarks.confounding.study import RECORDS as CONFOUNDING
from benchmarks.structure.designs import DESIGNS, GROUPS, POINT_MASSES
from benchmarks.structure.page import COPIED, OWN, PAGE, page
from benchmarks.structure.study import RECORDS, VERSIONS, study
from benchmarks.widths import RECORDS as WIDTHS

import titrant as tt
from sweeps import long

SEED = 79
SHORT = ("ten rows a patient", "capped doses")
OTHERS = [name for name in DESIGNS if name not in SHORT]


def test_every_design_is_shown() -> None:
    assert {name for names in GROUPS.values() for name in names} == set(DESIGNS)


@pytest.mark.parametrize("name", POINT_MASSES)
def test_both_versions_are_of_the_same_rows(name: str) -> None:
    one, other = DESIGNS[name].versions(200, [SEED])
    np.testing.assert_array_equal(one.outcome, other.outcome)
    np.testing.assert_array_equal(one.treatment, other.treatment)


def test_the_page_is_that_of_the_records() -> None:
    records = map(records_in, (RECORDS, WIDTHS, CONFOUNDING))
    assert PAGE.read_text(encoding="utf-8") == page(*records)


def test_doses_at_point_masses_are_told_from_those_between() -> None:
    none, list_price = DESIGNS["some without a dose"], DESIGNS["nine list prices"]
    assert [none.on_masses(name) for name in ("0", "0.6")] == [1.0, 0.0]
    assert none.on_masses("0 or 1.2") == pytest.approx(0.5, abs=0.08)  # of 1,000 rows, 5 SE
    assert [list_price.on_masses(name) for name in ("7.99 or 9.99", "9.5")] == [1.0, 0.0]


def widths(records: list, design: str) -> np.ndarray:
    """The widths of the intervals with the remedy, (logs, policies)."""
    own = [r["with"] for r in records if r["design"] == design]
    return np.array([np.subtract(r["high"], r["low"]) for r in own])


def test_a_row_that_is_there_four_times_is_worth_one_in_the_records() -> None:
    records = records_in(RECORDS)
    copied, single = (np.median(widths(records, name), axis=0) for name in (COPIED, OWN))
    assert (copied >= 1.8 * single).all()


@pytest.mark.slow
@pytest.mark.long
def test_a_row_that_is_there_four_times_is_worth_one_by_the_default_call() -> None:
    tasks = [Task(name, 1000, i, SEED) for i in range(12) for name in (COPIED, OWN)]
    records = []
    for task in tasks:
        log = DESIGNS[task.design].versions(task.n, [SEED, task.replication])[0]
        found = tt.compare(log, DESIGNS[task.design].policies, allow_untrusted=True)
        low, high = np.transpose([found[name].interval() for name in DESIGNS[task.design].policies])
        records.append({"design": task.design, "with": {"low": low, "high": high}})
    # Over policies, too: a width varies by a third of itself from log to log.
    copied, single = (np.log(widths(records, name)).mean() for name in (COPIED, OWN))
    assert np.exp(copied - single) >= 1.8


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SHORT, *long(*OTHERS)])
def test_a_log_of_each_design(name: str, replications) -> None:
    found = [study(Task(name, 600, i, SEED)) for i in range(replications(1, 20))]
    for record in found:
        for version in VERSIONS:
            assert len(record[version]["value"]) == len(DESIGNS[name].policies)
    error = [np.subtract(r["with"]["value"], r["truth"]) for r in found]
    width = [np.subtract(r["with"]["high"], r["with"]["low"]) for r in found]
    # An interval is about four SE wide: five SE are passed by chance once in a million.
    assert (np.abs(error) < 1.25 * np.array(width)).all()
