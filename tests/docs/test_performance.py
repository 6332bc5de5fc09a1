"""The page on performance: it is that of the results, and hides neither their age nor a miss."""

from __future__ import annotations

import json
import time

import pytest
from benchmarks.__main__ import steps
from benchmarks.speed import page, profile

TABLE = json.loads(page.RESULTS.read_text())


def test_the_page_is_that_of_the_results():
    assert page.PAGE.read_text() == page.text(TABLE)


def test_every_missed_target_is_explained():
    missed = {
        name
        for name, step in TABLE["steps"].items()
        if any(line["goal"] and not line["passed"] for line in step["lines"])
    }
    assert missed <= set(page.WHY)


def test_every_call_that_became_slower_is_explained():
    assert set(page.slower(json.loads(page.SINCE.read_text()))) <= set(page.SLOWER)


def test_what_one_of_two_sources_cannot_be_asked_is_told_so():
    facts = {"source": "b", "date": "2026-11-19"}
    refused = {"cannot": "before", "reason": "…"}
    calls = {"old": facts | {"before": 0.2, "now": 0.25}, "new": facts | refused}
    table = {"command": "c", "before": {"commit": "x", "source": "a"}, "calls": calls}
    assert "| old | 0.2 s | 0.25 s | 1.25 |" in page.changed(table)
    assert "| new | cannot be asked before |  |  |" in page.changed(table)
    assert page.slower(table) == ["old"]


@pytest.mark.parametrize("others", ["one", "another"])
def test_steps_of_several_sources_are_told_apart(others):
    steps = {name: step | {"source": others} for name, step in TABLE["steps"].items()}
    steps["3"] = steps["3"] | {"source": "one"}
    told = page.text(TABLE | {"steps": steps})
    assert ("- `one`: a self-normalized `evaluate()`" in told) == (others == "another")
    assert ("- `another`: " in told) == (others == "another")


def test_every_step_has_a_name_by_which_it_is_missed():
    assert set(page.EVERY) == set(steps(quick=False))
    without = {name: step for name, step in TABLE["steps"].items() if name != "calls-1e3-3"}
    told = page.text(TABLE | {"steps": without})
    assert "- calls from Python on 1,000 rows with 3 contexts" in told


def test_a_page_says_when_and_on_which_source_it_was_measured():
    steps = {
        name: step | {"source": "abc", "date": "2026-11-20"}
        for name, step in TABLE["steps"].items()
    }
    told = "Measured on git tree `abc` of `src/titrant`, 2026-11-20."
    assert told in page.text(TABLE | {"steps": steps})
    steps["3"] = steps["3"] | {"date": "2026-11-18"}
    assert "`src/titrant`, 2026-11-18 to 2026-11-20." in page.text(TABLE | {"steps": steps})


def test_numbers_have_the_digits_that_tell_them_from_the_target():
    line = {"step": "12", "goal": 12, "work": "a path", "asked": "≤ 10 × ours", "passed": False}
    assert "| a path | 10.02 | ≤ 10 × ours |" in page._lines([line | {"ratio": 10.0187}], "target")
    assert "| a path | 9.99 | ≤ 10 × ours |" in page._lines([line | {"ratio": 9.9871}], "target")


def test_cpu_time_belongs_to_the_part_that_the_stack_shows():
    def spin(seconds):
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    def outer():
        spin(0.1)  # of `spin`, wherever it is called from: the first part that fits
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass

    found = profile.watched(outer, {"spinning": ":spin\n", "outer": ":outer\n"})
    assert set(found) <= {"spinning", "outer", profile.REST}
    # Two looks lie 2 ms apart, on a busy machine as well: the clock is that of the processor.
    assert found["spinning"] == pytest.approx(0.1, abs=0.02)
    assert found["outer"] == pytest.approx(0.3, abs=0.02)


def test_shares_are_those_of_rows_with_a_reason_and_add_up_to_the_call():
    kept = json.loads(page.SHARES.read_text())
    assert set(kept) == set(profile.ROWS) <= set(page.WHY)
    assert [sum(one["shares"].values()) for one in kept.values()] == pytest.approx([1] * len(kept))
    told = page.told_shares({"shares": {"asking": 0.614, "fitting": 0.386}})
    assert told == "\n  CPU time: asking 61%, fitting 39%."
