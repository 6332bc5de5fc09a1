"""`titrant describe` prints what the library says of a log; doubts can be told and ignored."""

from __future__ import annotations

import csv
import json

import pytest


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


def test_the_page_repeats_them(call, leaking, tmp_path):
    said = call("evaluate", *leaking, *QUICK, "--policy", "constant:35", "--html", "page.html")
    assert said.code == 0, said.err
    page = (tmp_path / "page.html").read_text("utf-8")
    section = page[page.index('<section id="data"') : page.index('<section id="method"')]
    assert "Some columns may not be what they are taken for" in section
    assert "&#39;cost&#39; with &#39;weight&#39;" in section


@pytest.mark.usefixtures("plain_models")
def test_learning_says_them_too(call, leaking):
    known = ("--propensity-model", "linear-gaussian", "--models", "ridge")
    said = call("learn", *leaking, *known, "--policy-class", "constant")
    assert "Warning (learned): The outcome can be computed exactly" in said.err
