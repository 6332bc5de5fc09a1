"""`titrant sensitivity` and `titrant stress` print what the library returns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import titrant as tt

FLAT = ("--policy", "flat=constant:35")


def test_sensitivity_is_that_of_the_python_interface(call, csv_log, log, plain):
    quick = ("--bandwidth", "8", "--no-benchmarks")
    said = call("sensitivity", csv_log, *plain, *FLAT, *quick, "--json", "-")
    assert said.code == 0
    found = json.loads(said.out)
    asked = {"estimator": tt.SelfNormalized(), "bandwidth": 8.0, "benchmarks": ()}
    expected = tt.sensitivity(log, tt.Constant(35.0), **asked).to_dict()
    called = {
        "policy": "flat",
        "sentence": expected["sentence"].replace("Constant(dose=35.0)", "flat"),
    }
    assert found == expected | called


def test_sensitivity_against_another_policy(call, csv_log, plain):
    said = call(
        *("sensitivity", csv_log, *plain, *FLAT, "--against", "more=constant:50"),
        *("--bandwidth", "8", "--benchmark", "weight", "--gamma", "1,1.3", "--json", "out.json"),
    )
    assert said.code == 0
    found = json.loads(Path("out.json").read_text("utf-8"))
    assert found["against"] == "more"
    assert list(found["benchmarks"]) == ["weight"]
    first = [line.split()[0] for line in said.out.splitlines() if line.strip()]
    assert {"1", "1.3", "weight"} <= set(first)
    assert "2" not in first
    words = " ".join(said.out.split())
    assert found["sentence"] in words


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--gamma", "0.5"), "is no list of numbers ≥ 1"),
        (("--gamma", "much"), "is no list of numbers ≥ 1"),
        (("--policy", "b=constant:2"), "One policy is doubted at a time"),
        (("--benchmark", "height"), "cannot leave out 'height'"),
    ],
)
def test_what_sensitivity_refuses(call, csv_log, plain, more, said):
    found = call("sensitivity", csv_log, *plain, *FLAT, "--bandwidth", "8", *more)
    assert found.code == 2
    assert said in found.err


def test_the_status_quo_is_not_doubted(call, csv_log, plain):
    found = call("sensitivity", csv_log, *plain, "--policy", "status-quo", "--no-benchmarks")
    assert found.code == 2
    assert "what was observed" in found.err


def test_stress(call, csv_log, plain):
    said = call(
        *("stress", csv_log, *plain, *FLAT, "--bandwidth", "8", "--draws", "1"),
        *("--leave-out", "weight", "--placebo-outcome", "age", "--json", "out.json"),
    )
    assert said.code == 0
    found = json.loads(Path("out.json").read_text("utf-8"))
    changes = [trial["change"] for trial in found["trials"]]
    assert changes == [
        "doses permuted",
        "age as the outcome",
        "1 draw of outcomes with a known truth",
        "without weight",
        "with an outcome model",
    ]
    assert all(change in said.out for change in changes)
    assert found["sentence"] in " ".join(said.out.split())


@pytest.mark.long
def test_a_page_with_doubts(call, csv_log, plain):
    said = call("evaluate", csv_log, *plain, *FLAT, "--bandwidth", "8", "--sensitivity")
    assert said.code == 2
    assert "`--html FILE`" in said.err
    said = call(
        *("evaluate", csv_log, *plain, *FLAT, "--bandwidth", "8"),
        *("--sensitivity", "--html", "page.html"),
    )
    assert said.code == 0
    page = Path("page.html").read_text("utf-8")
    assert "What if we are wrong?" in page
    assert "Bounds under a hidden cause" in page
    assert "Trials of the estimate" not in page
