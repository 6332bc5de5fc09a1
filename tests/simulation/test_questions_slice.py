"""A small seeded slice of the benchmark of questions, its truths, and that its page is its records.

The full run is `python -m benchmarks.questions --replications 300`.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.confounding.records import Task, records_in
from benchmarks.questions.designs import BEST, DESIGNS, LOSS, POLICY, Parts
from benchmarks.questions.page import PAGE, page
from benchmarks.questions.study import DEFAULT, RECORDS, study

SEED = 89


def test_the_page_is_that_of_the_records() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(records_in(RECORDS))


@pytest.mark.parametrize("name", [name for name, d in DESIGNS.items() if isinstance(d, Parts)])
def test_what_is_true_of_parts_is_what_a_large_log_has(name: str) -> None:
    design = DESIGNS[name]
    log = design.draw(200_000, [SEED])
    x, third = log.context[:, :2], log.context[:, 2]
    off = design.slope * (third - 0.5)
    change = 0.5 * (POLICY.dose - BEST - off) ** 2 - 0.5 * (log.treatment - BEST - off) ** 2
    part = np.digitize(third, design.cuts)
    found = [change[part == k].mean() for k in range(design.parts)]
    # The sd of a change is about 2: four standard errors of 40,000 rows and more.
    np.testing.assert_allclose(found, design.truths(), atol=0.04)
    assert abs((x @ LOSS).mean()) < 0.01


def test_what_is_true_of_risk_is_what_a_large_draw_has() -> None:
    design = DESIGNS["risk"]
    rng = np.random.default_rng(SEED)
    noise = design.noise * rng.normal(size=200_000)
    y = 0.5 * (POLICY.dose - BEST) ** 2 + rng.normal(size=(200_000, 2)) @ LOSS + noise
    q = np.quantile(y, [0.5, 0.9])
    found = [np.mean(y > 1.0), *q, y[y > q[1]].mean()]
    np.testing.assert_allclose(found, list(design.truths().values()), atol=0.02)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", ["alike, 5 parts", "elsewhere"])
def test_a_log_holds_the_truth_within_twice_its_interval(name: str) -> None:
    design = DESIGNS[name]
    found = study(Task(name, design.rows, 0, SEED))
    ends, truth = np.array(found[DEFAULT]["ends"]), np.array(found["truth"])
    middle, half = ends.mean(axis=-1), np.diff(ends)[..., 0] / 2
    assert (np.abs(middle - truth) < 2.0 * half).all()
