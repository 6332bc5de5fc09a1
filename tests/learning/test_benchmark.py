"""The committed run of the learning benchmark: whole, as good as was asked, and on its page."""

from __future__ import annotations

import json

import pytest
from benchmarks.confounding.records import records_in
from benchmarks.learning import EXPERIMENTS, OUT
from benchmarks.learning_page import PAGE, page
from benchmarks.rules.found import found_in
from benchmarks.rules.measure import CONTESTANTS, RECORDS
from benchmarks.rules.problems import PROBLEMS

RESULT = json.loads(OUT.read_text())
FOUND = {found["name"]: found for found in RESULT["experiments"]}


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)
def test_every_experiment_is_there_with_all_replications(experiment):
    found = FOUND[experiment.name]
    assert found["replications"] >= experiment.replications
    for key, goal in experiment.at_most.items():
        assert found["mean"][key] <= goal
    for key, goal in experiment.at_least.items():
        assert found["mean"][key] >= goal


def test_the_page_is_written_from_the_results():
    assert PAGE.read_text() == page(RESULT)


def test_the_records_of_rules_are_whole():
    # Every problem has draws, each with the excess risk of every contestant, none below 0.
    records = records_in(RECORDS)
    assert {record["design"] for record in records} == set(PROBLEMS)
    for record in records:
        assert set(record["excess"]) >= {*CONTESTANTS}
        assert min(record["excess"].values()) > -1e-2  # the best dose is looked for on a grid
        assert record["excess"]["automatic"] == record["excess"][record["chosen"]]
        # No rule within the doses is better than the best one, and no constant than the best line.
        truth = record["truth"]
        assert truth["line"] >= truth["within"] - 1e-2
        assert truth["constant"] >= truth["line"] - 1e-2
    assert [one.name for one in found_in(records, [])] == list(PROBLEMS)
