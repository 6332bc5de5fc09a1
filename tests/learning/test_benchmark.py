"""The committed run of the learning benchmark: whole, as good as was asked, and on its page."""

from __future__ import annotations

import json

import pytest
from benchmarks.confounding.records import records_in
from benchmarks.learning import EXPERIMENTS, OUT
from benchmarks.learning_page import PAGE, page
from benchmarks.learning_rules import CONTESTANTS, PROBLEMS, RECORDS, ratios

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
        assert set(record["excess"]) >= {*CONTESTANTS, "best constant"}
        assert min(record["excess"].values()) > -1e-2  # the best dose is looked for on a grid
        assert record["excess"]["automatic"] == record["excess"][record["chosen"]]
    assert set(ratios(records, linear=True)) | set(ratios(records, linear=False)) == set(PROBLEMS)
