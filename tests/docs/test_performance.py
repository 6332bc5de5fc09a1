"""The page on performance: it is that of the results, and hides neither their age nor a miss."""

from __future__ import annotations

import json

import pytest
from benchmarks.speed import page

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
    times = {"before": 0.2, "now": 0.25, "source": "b"}
    calls = {"old": times, "new": {"cannot": "before", "reason": "…", "source": "b"}}
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
