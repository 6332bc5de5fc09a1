"""`titrant describe` prints what the library says of a log; doubts can be told and ignored."""

from __future__ import annotations

import csv
import json
import tomllib

import numpy as np
import pandas as pd
import pytest

from sweeps import long


@pytest.fixture
def leaking(log, tmp_path):
    """Return a file in which `cost` is the loss plus the weight, and the options for it."""
    columns = log.to_columns(treatment="dose", outcome="loss")
    table = {name: columns[name] for name in ("weight", "age", "dose", "loss")}
    table["cost"] = columns["loss"] + columns["weight"]
    path = tmp_path / "leaking.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(table)
        rows.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    return (path, "--treatment", "dose", "--outcome", "loss")


QUICK = ("--propensity-model", "linear-gaussian", "--estimator", "sn", "--bandwidth", "8")


def test_the_columns_are_shown_by_their_names(call, csv_log, log, plain):
    columns = plain[: plain.index("--estimator")]
    said = call("describe", csv_log, *columns, "--json", "out.json")
    assert said.code == 0, said.err
    for name in (*log.names, "dose", "loss"):
        assert name in said.out
    with open("out.json", encoding="utf-8") as file:  # noqa: PTH123
        assert json.load(file)["rows"] == len(log)


def test_a_leak_is_named(call, leaking):
    said = call("describe", *leaking)
    assert said.code == 0
    assert "Doubt: The outcome can be computed exactly" in said.err
    assert "'cost' with 'weight'" in said.err


def test_doubts_come_first_and_lower_the_verdict(call, leaking):
    said = call("check", *leaking, *QUICK, "--json", "-")
    found = json.loads(said.out)
    assert found["verdict"] == "warn"
    assert next(iter(found["checks"])) == "leaked_outcomes"


def test_doubts_can_be_ignored(call, leaking):
    said = call("check", *leaking, *QUICK, "--ignore-doubts", "--json", "-")
    found = json.loads(said.out)
    assert "leaked_outcomes" not in found["checks"]
    assert any("'cost'" in note for note in found["notes"])
    said = call("evaluate", *leaking, *QUICK, "--policy", "constant:35", "--ignore-doubts")
    assert "Note (constant:35): A doubt that was to be ignored: The outcome can" in said.err


@pytest.mark.parametrize("context", [(), ("--context", "weight,age,cost")])
def test_a_column_measured_after_the_treatment_is_not_used(call, leaking, context):
    said = call(
        "evaluate", *leaking, *context, *QUICK, "--policy", "constant:35", "--after", "cost"
    )
    assert said.code == 0, said.err
    assert "Measured after the treatment, and so not used as context: 'cost'." in said.err
    assert "leaked" not in said.err
    said = call("describe", *leaking, *context, "--after", "cots")
    assert said.code == 2
    assert "did you mean `cost`?" in said.err


@pytest.mark.parametrize("context", [(), ("--context", "weight,age,left,entered")])
def test_dates_are_held_against_that_of_the_treatment(call, tmp_path, context):
    rng = np.random.default_rng(3)
    n = 300
    given = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D")
    table = pd.DataFrame(
        {
            "dose": rng.normal(35.0, 8.0, n),
            "loss": rng.normal(size=n),
            "weight": rng.normal(size=n),
            "age": rng.normal(size=n),
            "given": given,
            "left": given + pd.to_timedelta(rng.integers(1, 20, n), "D"),
            "entered": given - pd.to_timedelta(np.where(np.arange(n) < 30, -2, 5), "D"),
        }
    )
    table.to_csv(tmp_path / "dated.csv", index=False)
    roles = ("--treatment", "dose", "--outcome", "loss", *context)
    asked = ("evaluate", "dated.csv", *roles, *QUICK, "--policy", "constant:35")
    said = call(*asked, "--treated-on", "given", "--json", "-", "--save-config", "run.toml")
    assert said.code == 0, said.err
    assert "Measured after the treatment, and so not used as context: 'left'." in said.err
    assert "its date is after `given` in 300 of 300 rows (100.0%)." in said.err
    report = json.loads(said.out)["diagnostics"]
    assert "'entered' in 30 of 300 rows (10.0%)" in report["checks"]["late_dates"]["message"]
    # The file of the run has the option, and the protocol the contexts that are left.
    again = call("evaluate", "--config", "run.toml", "--json", "-")
    assert again.out == said.out
    assert call("protocol", *asked, "--treated-on", "given").code == 0
    announced = tomllib.loads((tmp_path / "protocol.toml").read_text("utf-8"))["contexts"]
    assert announced["treated_on"] == "given"
    assert not any(name.startswith("left") for name in announced["context"])
    assert "entered.days" in announced["context"]
    assert call(*asked, "--treated-on", "given", "--protocol", "protocol.toml").code == 0
    wrong = call(*asked, "--treated-on", "weight")
    assert wrong.code == 2
    assert "must hold dates; got values such as " in wrong.err


def test_the_page_repeats_them(call, leaking, tmp_path):
    said = call("evaluate", *leaking, *QUICK, "--policy", "constant:35", "--html", "page.html")
    assert said.code == 0, said.err
    page = (tmp_path / "page.html").read_text("utf-8")
    section = page[page.index('<section id="data"') : page.index('<section id="method"')]
    assert "Some columns may not be what they are taken for" in section
    assert "&#39;cost&#39; with &#39;weight&#39;" in section


ONE = (*QUICK, "--policy", "constant:35")
ESTIMATING = {
    "evaluate": ONE,
    "compare": (*ONE, "--policy", "status-quo"),
    "check": ONE,
    "curve": (*QUICK, "--at", "30,35"),
    "subgroups": (*ONE, "--by", "age:2"),
    "outcomes": (*ONE, "--outcome", "loss,age"),
    "sensitivity": (*ONE, "--no-benchmarks"),
    "stress": (*ONE, "--draws", "0", "--leave-out", "age"),
    "learn": (
        *("--propensity-model", "linear-gaussian", "--models", "ridge"),
        *("--policy-class", "constant"),
    ),
}
"""Every command that estimates, and options of which it is quick."""
SOON = ("evaluate", "check", "learn")


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize(
    "command", [*SOON, *long(*(command for command in ESTIMATING if command not in SOON))]
)
def test_every_command_that_estimates_names_them(call, leaking, command):
    said = call(command, *leaking, *ESTIMATING[command])
    assert said.code == 0, said.err
    told = " ".join((said.err + said.out).split())
    if command == "check":  # a table, whose cells are folded
        assert "leaked outcomes" in told
        assert "'cost'" in told
        return
    assert "The outcome can be computed exactly" in said.err
    assert "'cost' with 'weight'" in said.err


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize("command", ["curve", "stress"])
def test_what_many_estimates_share_is_said_once_and_can_be_ignored(
    call, leaking, command, tmp_path
):
    asked = (command, *leaking, *ESTIMATING[command], "--json", "out.json")
    said = call(*asked)
    assert said.err.count("The outcome can be computed exactly") == 1
    assert "Doubt: The outcome can be computed exactly" in said.err
    found = json.loads((tmp_path / "out.json").read_text("utf-8"))
    if command == "stress":
        assert list(found["doubts"]["checks"]) == ["leaked_outcomes"]
        assert found["doubts"]["verdict"] == "warn"
    said = call(*asked, "--ignore-doubts")
    assert said.err.count("Note: A doubt that was to be ignored: The outcome can") == 1
    assert "Doubt: " not in said.err
    found = json.loads((tmp_path / "out.json").read_text("utf-8"))
    if command == "stress":
        assert (found["doubts"]["verdict"], found["doubts"]["checks"]) == ("ok", {})
        assert "'cost' with 'weight'" in found["doubts"]["notes"][0]


def test_trials_refuse_none_and_have_no_option_for_it(call, leaking):
    said = call("stress", *leaking, *ESTIMATING["stress"], "--allow-untrusted")
    assert said.code == 2
    assert "--allow-untrusted" in said.err
