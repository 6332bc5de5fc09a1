from __future__ import annotations

import json
from pathlib import Path

import pytest

from studies.against import contradictions
from titrant.paper import STUDIES

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="session")
def results() -> Path:
    """Where the committed results lie."""
    return RESULTS


@pytest.fixture
def committed():
    """Run a study for a moment; its numbers must not contradict the committed ones."""

    def check(name, folder, replications):
        old = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        new = STUDIES[name].run(quick=True, replications=replications, folder=folder)
        assert contradictions(new, old) == []
        assert (RESULTS / f"{name}.svg").is_file()
        assert (RESULTS / f"{name}.png").is_file()

    return check
