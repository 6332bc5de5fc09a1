"""`titrant evaluate` and `titrant compare` print what the library returns."""

from __future__ import annotations

import json

import numpy as np
import pytest

import titrant as tt
from titrant.bandwidth import RuleOfThumb, TwoBandwidth
from titrant.reporting.numbers import number


def api(log, policies, **how):
    """Return the comparison by the Python interface, with the quick estimator of these tests."""
    return tt.compare(log, policies, estimator=tt.SelfNormalized(), **how)


def test_json_is_the_dictionary_of_the_python_interface(call, csv_log, log, plain):
    said = call("evaluate", csv_log, *plain, "--policy", "flat=constant:35", "--json", "-")
    assert said.code == 0
    expected = api(log, {"flat": tt.Constant(35.0)})["flat"].to_dict()
    assert json.loads(said.out) == expected


def test_json_of_a_comparison(call, csv_log, log, plain):
    said = call(
        *("compare", csv_log, *plain, "--policy", "flat=constant:35", "--json", "out.json"),
        *("--policy", "rule=linear:intercept=25,weight=0.2,age=-0.1"),
    )
    assert said.code == 0
    rule = tt.Linear([0.2, -0.1, 0.0], 25.0)
    expected = api(log, {"flat": tt.Constant(35.0), "rule": rule}).to_dict()
    with open("out.json", encoding="utf-8") as file:  # noqa: PTH123
        assert json.load(file) == expected


def test_the_table_shows_value_interval_bandwidth_size_and_verdict(call, csv_log, log, plain):
    said = call("evaluate", csv_log, *plain, "--policy", "flat=constant:35", "--level", "0.9")
    estimate = api(log, {"flat": tt.Constant(35.0)})["flat"]
    low, high = estimate.interval(0.9)
    h = float(estimate.bandwidth.h)
    (row,) = (line for line in said.out.splitlines() if line.strip().startswith("flat"))
    assert row.split() == [
        *("flat", number(estimate.value), number(low), "…", number(high), number(h)),
        *(f"{estimate.ess:.0f}", estimate.diagnostics.verdict.value),
    ]
    assert "90% CI" in said.out


ABSURD = ("--policy", "absurd=constant:900", "--bandwidth", "5")
FLAT = ("--policy", "flat=constant:35")


@pytest.fixture
def unbounded(plain):
    """Options of a log whose doses have no bounds, so that any dose may be asked about."""
    at = plain.index("--bounds")
    return (*plain[:at], *plain[at + 2 :])


def test_a_refused_policy_is_a_row_of_the_table_with_its_reason_below(call, csv_log, unbounded):
    said = call("compare", csv_log, *unbounded, *FLAT, *ABSURD, "--json", "out.json")
    assert said.code == 0
    rows = [line.split() for line in said.out.splitlines()]
    (row,) = (row for row in rows if row[:1] == ["absurd"])
    assert row == ["absurd", "–", "–", "–", "–", "refuse"]
    out = " ".join(said.out.split())
    reason = "Refused (absurd, and every difference to it): No logged dose lies within h = 5.0"
    assert reason in out
    assert "flat − absurd" not in out
    with open("out.json", encoding="utf-8") as file:  # noqa: PTH123
        found = json.load(file)
    assert list(found["estimates"]) == ["flat"]
    assert list(found["refused"]) == ["absurd"]
    assert found["contrasts"] == []


def test_a_refusal_is_told_beside_json_on_standard_output(call, csv_log, unbounded):
    said = call("compare", csv_log, *unbounded, *FLAT, *ABSURD, "--json", "-")
    assert said.code == 0
    assert list(json.loads(said.out)["refused"]) == ["absurd"]
    assert "Refused (absurd, and every difference to it): No logged dose" in said.err


def test_a_comparison_without_any_estimate_is_a_refusal(call, csv_log, unbounded):
    said = call("compare", csv_log, *unbounded, *ABSURD, "--policy", "too=constant:901")
    assert said.code == 1
    assert said.out == ""
    assert said.err.startswith("Refused: The log answers for none of the 2 policies. Policy 'abs")


def test_a_policy_outside_the_bounds_is_named(call, csv_log, plain):
    said = call("compare", csv_log, *plain, *FLAT, *ABSURD)
    assert said.code == 2
    assert said.err.startswith("Error: Policy 'absurd': The policy gives doses outside the bounds")


@pytest.mark.parametrize("maximize", [False, True])
def test_a_comparison_names_the_better_policy_of_a_clear_pair(call, csv_log, plain, maximize):
    # The rule is the best one of the design; the same dose for all loses two days more.
    said = call(
        *("compare", csv_log, *plain, "--policy", "flat=constant:35"),
        *("--policy", "best=clipped:5,75:linear:intercept=19,weight=0.35,age=-0.2,carrier=-9"),
        *(["--maximize"] if maximize else []),
    )
    (row,) = (line for line in said.out.splitlines() if line.strip().startswith("flat − best"))
    assert row.split()[-1] == ("flat" if maximize else "best")
    assert ("higher is better" if maximize else "lower is better") in said.out


def test_names_are_shown_as_they_are(call, csv_log, plain):
    said = call("evaluate", csv_log, *plain, "--policy", "[bold]new[/]=constant:35")
    assert "[bold]new[/]" in said.out


def test_a_policy_against_itself_is_not_clear(call, csv_log, plain):
    said = call(
        *("compare", csv_log, *plain, "--policy", "a=constant:35", "--policy", "b=constant:35")
    )
    assert said.out.count("not clear") == 1


OPTIONS = [
    (("--estimator", "ipw"), {"estimator": tt.IPW()}),
    (("--estimator", "centered-ipw"), {"estimator": tt.IPW(centered=True)}),
    (("--kernel", "gaussian"), {"estimator": tt.SelfNormalized(kernel=tt.Gaussian())}),
    (("--clip", "0.01"), {"estimator": tt.SelfNormalized(clip=0.01)}),
    (("--bandwidth", "7.5"), {"bandwidth": 7.5}),
    (("--bandwidth", "rule-of-thumb"), {"bandwidth": RuleOfThumb()}),
    (("--bandwidth", "two-bandwidth"), {"bandwidth": TwoBandwidth()}),
    (("--bandwidth", "auto"), {}),
    (("--propensity-model", "linear-gaussian"), {"propensity": tt.LinearGaussian()}),
    (
        ("--propensity-model", "mixture", "--seed", "5"),
        {"propensity": tt.GaussianMixture(seed=5)},
    ),
    (
        ("--estimator", "discretized", "--propensity-model", "linear-gaussian"),
        {"estimator": tt.Discretized(), "propensity": tt.LinearGaussian()},
    ),
]


@pytest.mark.parametrize("given", OPTIONS, ids=lambda given: " ".join(given[0]))
def test_each_option_reaches_the_library(call, csv_log, log, plain, given):
    options, how = given
    said = call("evaluate", csv_log, *plain, *options, "--policy", "p=constant:35", "--json", "-")
    how = {"estimator": tt.SelfNormalized(), **how}
    assert json.loads(said.out) == tt.compare(log, {"p": tt.Constant(35.0)}, **how)["p"].to_dict()


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_the_level_asked_for_is_that_of_the_json(call, csv_log, log, plain, command):
    other = ("--policy", "status-quo") if command == "compare" else ()
    asked = ("--policy", "p=constant:35", *other, "--level", "0.8", "--json", "-")
    said = call(command, csv_log, *plain, *asked)
    result = json.loads(said.out)
    estimate = result["estimates"]["p"] if command == "compare" else result
    expected = tt.evaluate(log, tt.Constant(35.0), estimator=tt.SelfNormalized())
    interval = estimate["interval"]
    assert interval["level"] == 0.8
    assert (interval["low"], interval["high"]) == expected.interval(0.8)


def test_a_vector_of_doses(call):
    assert call("simulate", "quadratic-2d", "-n", 800, "-o", "log.parquet").code == 0
    said = call(
        *("evaluate", "log.parquet", "--treatment", "dose_0,dose_1", "--outcome", "loss"),
        *("--propensity", "propensity", "--estimator", "sn", "--bandwidth", "0.5,0.7"),
        *("--bounds", "-9,9", "--bounds", "-9,", "--policy", "constant:0.4,0.9", "--json", "-"),
    )
    assert said.code == 0, said.err
    result = json.loads(said.out)
    assert result["bandwidth"]["h"] == [0.5, 0.7]
    assert result["rows"] == 800


def test_a_refused_estimate_is_shown_when_asked_for(call, csv_log, plain):
    # Few doses were logged beside 60 mg, and a small bandwidth leaves fewer still.
    far = (*plain, "--policy", "constant:60", "--bandwidth", "2.5")
    refused = call("evaluate", csv_log, *far)
    assert refused.code == 1
    assert refused.out == ""
    assert refused.err.startswith("Refused: ")
    assert "Pass `--allow-untrusted`" in refused.err
    shown = call("evaluate", csv_log, *far, "--allow-untrusted")
    assert shown.code == 0
    assert "refuse" in shown.out
    assert "Not to be trusted (constant:60):" in shown.err


def test_no_overlap_is_refused_with_numbers(call, csv_log, plain):
    unbounded = [*plain[: plain.index("--bounds")], "--estimator", "sn", "--bandwidth", "2"]
    said = call("evaluate", csv_log, *unbounded, "--policy", "constant:900")
    assert said.code == 1
    assert "in any of 600 rows (closest" in said.err


def test_warnings_of_the_trust_checks_go_to_standard_error(call, csv_log, plain):
    said = call(
        *("evaluate", csv_log, *plain, "--policy", "constant:35", "--bandwidth", "0.4", "--json"),
        "-",
    )
    verdict = json.loads(said.out)["diagnostics"]["verdict"]
    assert verdict == "warn"
    assert said.err.startswith("Warning (constant:35): ")


def test_the_outcome_may_be_shifted(call, csv_log, plain, tmp_path):
    # Law: adding a constant to every outcome adds it to the value.
    lines = csv_log.read_text(encoding="utf-8").splitlines()
    place = lines[0].split(",").index("loss")
    moved = [lines[0]]
    for line in lines[1:]:
        cells = line.split(",")
        cells[place] = repr(float(cells[place]) + 100.0)
        moved.append(",".join(cells))
    shifted = tmp_path / "shifted.csv"
    shifted.write_text("\n".join(moved) + "\n", encoding="utf-8")
    values = [
        json.loads(call("evaluate", p, *plain, "--policy", "constant:35", "--json", "-").out)[
            "value"
        ]
        for p in (csv_log, shifted)
    ]
    np.testing.assert_allclose(values[1] - values[0], 100.0, rtol=1e-9)  # sums near 100 round


PRICES = [0.89, 0.99, 1.09, 1.19, 1.29, 1.39, 1.49, 1.59, 1.79]


@pytest.fixture
def prices(tmp_path):
    """Write a log of nine list prices, each with its own outcome; return its name."""
    lines = [f"{p},{100 * p},{k % 7}" for k in range(20) for p in PRICES]
    (tmp_path / "prices.csv").write_text("\n".join(["price,sold,x", *lines]))
    return ("prices.csv", "--treatment", "price", "--outcome", "sold", "--allow-untrusted")


def test_a_price_off_the_list_is_warned_about_with_its_bin(call, prices):
    asked = ("--estimator", "discretized", "--json", "-")
    said = call("evaluate", *prices, *asked, "--policy", "constant:1.21")
    found = json.loads(said.out)
    assert found["value"] == pytest.approx(119.0)
    check = found["diagnostics"]["checks"]["dose_bin"]
    assert check["verdict"] == "warn"
    assert "(1.14, 1.24], logged at 1.19" in check["message"]
    assert "Warning (constant:1.21): The policy's dose 1.21 is valued by the rows" in said.err
    listed = call("evaluate", *prices, *asked, "--policy", "constant:1.19")
    assert "Note (constant:1.19): The policy's dose 1.19 is valued by the rows" in listed.err


def test_edges_of_bins_are_typed(call, prices):
    # Between .94 and 1.24 lie .99, 1.09 and 1.19: their mean outcome is 109.
    asked = ("--estimator", "discretized", "--edges", "0.94,1.24", "--policy", "constant:1.09")
    said = call("evaluate", *prices, *asked, "--json", "-", "--propensity-model", "linear-gaussian")
    found = json.loads(said.out)
    assert "edges=(0.94, 1.24)" in found["method"]["estimator"]
    assert found["value"] == pytest.approx(109.0, abs=0.1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--estimator", "discretized", "--edges", "1,one"], "must be numbers with commas between"),
        (["--estimator", "discretized", "--edges", "2,1"], "must be numbers that grow"),
        (["--estimator", "sn", "--edges", "1,2"], "The estimator `sn` has no edges"),
    ],
)
def test_wrong_edges_are_refused(call, prices, given, said):
    answer = call("evaluate", *prices, "--policy", "constant:1.09", *given)
    assert answer.code == 2
    assert said in answer.err


def test_outcome_models_have_names(call, csv_log, plain):
    asked = ("evaluate", csv_log, *plain, "--policy", "constant:35", "--json", "-")
    said = call(*asked, "--estimator", "dr", "--outcome-model", "ridge")
    assert said.code == 0
    assert "quadratic" in json.loads(said.out)["method"]["outcome_model"]
    refused = call(*asked, "--estimator", "sn", "--outcome-model", "ridge")
    assert refused.code == 2
    assert "The estimator `sn` has no outcome model" in refused.err


def test_outcome_models_of_a_vector_of_doses(call):
    # The library has a well for one dose only.
    assert call("simulate", "quadratic-2d", "-n", 200, "-o", "log.parquet").code == 0
    said = call(
        *("evaluate", "log.parquet", "--treatment", "dose_0,dose_1", "--outcome", "loss"),
        *("--propensity", "propensity", "--outcome-model", "library", "--bandwidth", "0.9"),
        *("--policy", "constant:0.4,0.9", "--allow-untrusted", "--json", "-"),
    )
    assert said.code == 0, said.err
    assert "trees" in json.loads(said.out)["method"]["outcome_model"]


def test_the_default_models_have_a_name(call, csv_log):
    roles = ("--treatment", "dose", "--outcome", "loss", "--context", "weight,age")
    asked = ("evaluate", csv_log, *roles, "--policy", "constant:35", "--json", "-")
    named = ("--propensity-model", "smooth", "--outcome-model", "smooth")
    said, usual = call(*asked, *named), call(*asked)
    assert said.code == usual.code == 0
    assert json.loads(said.out) == json.loads(usual.out)


def test_the_default_propensity_beside_a_column_is_refused(call, csv_log, plain):
    asked = ("evaluate", csv_log, *plain, "--policy", "constant:35")
    refused = call(*asked, "--propensity-model", "smooth")
    assert refused.code == 2
    assert "`propensity` has them" in refused.err
