"""A small seeded slice of the calibration benchmark, and the bands its committed results must keep.

The slice would catch a broken interval or selector, not a shift of one percent: 60 replications
know a coverage to ± .03 and an RMSE to ± 10 %. The full run is `python -m benchmarks.coverage`.
"""

import json
import math

import pytest
from benchmarks.coverage.designs import CASES
from benchmarks.coverage.page import PAGE, RESULTS, page
from benchmarks.coverage.replication import replicate
from benchmarks.coverage.summary import DEFAULT, DEFAULT_INTERVAL, keeps_its_band, summarize

from sweeps import long

SEED = 77
BY_NAME = {case.name: case for case in CASES}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "estimator"),
    [
        ("smooth quadratic", "self-normalized"),
        *long(("bounded, near an edge", "self-normalized"), ("smooth sinus", "doubly robust")),
    ],
)
def test_a_slice_covers_and_finds_a_good_bandwidth(design, estimator, replications):
    case, r = BY_NAME[design], replications(60, 500)
    found = summarize(case.truth(), [replicate(case, 400, estimator, i, SEED) for i in range(r)])
    # .95 less three Monte-Carlo standard errors, less .01 for the small n
    assert found["intervals"][DEFAULT_INTERVAL]["coverage"] >= 0.94 - 3 * math.sqrt(0.95 * 0.05 / r)
    assert found["selectors"][DEFAULT]["rmse_over_oracle"] < 1.5


RESULT = json.loads(RESULTS.read_text())
CELLS = [c for c in RESULT["cells"] if c["sound"]]


def test_the_committed_run_is_a_full_one():
    assert len({c["design"] for c in CELLS}) >= 10
    assert {c["n"] for c in CELLS} == {200, 1000, 5000}
    assert all(c["replications"] >= 500 for c in CELLS)


def test_the_default_interval_keeps_its_band():
    assert [(c["design"], c["n"], c["estimator"]) for c in CELLS if not keeps_its_band(c)] == []


def test_the_default_selector_is_near_the_best_bandwidth():
    ratio = [c["selectors"][DEFAULT]["rmse_over_oracle"] for c in CELLS if c["n"] >= 1000]
    assert sum(ratio) / len(ratio) <= 1.15
    smooth = [
        c["selectors"][DEFAULT]["rmse_over_oracle"] for c in CELLS if c["n"] >= 1000 and c["smooth"]
    ]
    assert max(smooth) <= 1.4


def test_the_trust_rules_separate_good_from_bad():
    assert coverage_among("ok") >= 0.93
    assert coverage_among("refuse") < coverage_among("ok") - 0.1


def coverage_among(verdict):
    found = [c["verdicts"][verdict] for c in RESULT["cells"]]
    return sum(v["covered"] for v in found) / sum(v["with_interval"] for v in found)


def test_the_page_is_written_from_the_results():
    assert PAGE.read_text() == page(RESULT)
