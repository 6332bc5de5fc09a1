"""A small seeded slice of the benchmark of changed doses, and that its page is that of its records.

The full run is `python -m benchmarks.moves --replications 500`.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.confounding.records import Task, records_in
from benchmarks.moves.designs import DESIGNS
from benchmarks.moves.page import PAGE, page
from benchmarks.moves.study import RECORDS, study

from sweeps import long

SEED = 83


def test_the_page_is_that_of_the_records() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(records_in(RECORDS))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*list(DESIGNS)[:1], *long(*list(DESIGNS)[1:])])
def test_a_log_of_each_design(name: str, replications) -> None:
    found = [study(Task(name, 500, i, SEED)) for i in range(replications(1, 20))]
    error = [np.subtract(r["value"], r["truth"]) for r in found]
    width = [np.subtract(r["high"], r["low"]) for r in found]
    # An interval is about four SE wide: five SE are passed by chance once in a million.
    assert (np.abs(error) < 1.25 * np.array(width)).all()
