"""The committed run of the learning benchmark: whole, as good as was asked, and on its page."""

from __future__ import annotations

import json

import pytest
from benchmarks.learning import EXPERIMENTS, OUT
from benchmarks.learning_page import PAGE, page

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
