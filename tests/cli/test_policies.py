"""Policies as typed mean the policies of the library."""

from __future__ import annotations

import json
import re

import click
import numpy as np
import pytest

import titrant as tt
from titrant.cli.inputs import named, policies, policy
from titrant.errors import PolicyFileError
from titrant.policies import doses, load_policy


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ("constant:35", tt.Constant(35.0)),
        ("constant:1,2.5", tt.Constant([1.0, 2.5])),
        ("35", tt.Constant(35.0)),
        ("-1e1", tt.Constant(-10.0)),
        ("1,2.5", tt.Constant([1.0, 2.5])),
        ("clipped:5,:3", tt.Clipped(tt.Constant(3.0), 5.0, None)),
        ("linear:intercept=20,age=0.3", tt.Linear([0.0, 0.3, 0.0], 20.0)),
        ("linear:carrier=-9,weight=1e-1", tt.Linear([0.1, 0.0, -9.0])),
        ("clipped:5,:constant:3", tt.Clipped(tt.Constant(3.0), 5.0, None)),
        ("clipped:,50:rounded:5:linear:weight=1", tt.Clipped(
            tt.Rounded(tt.Linear([1.0, 0.0, 0.0]), 5.0), None, 50.0
        )),
    ],
)  # fmt: skip
def test_short_forms(log, spec, meant):
    np.testing.assert_array_equal(policy(spec, log)(log.context), meant(log.context))


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ("shift:-5", tt.Shift(-5.0)),
        ("shift:-5:0,", tt.Shift(-5.0, low=0.0)),
        ("multiply:0.9:,70", tt.Multiply(0.9, high=70.0)),
        ("limited:0,40", tt.Limited(0.0, 40.0)),
        ("limited:,40", tt.Limited(high=40.0)),
        ("tilt:0.5", tt.Tilt(0.5)),
        ("randomized:2:clipped:5,50:constant:35", tt.Randomized(
            tt.Clipped(tt.Constant(35.0), 5.0, 50.0), 2.0
        )),
    ],
)  # fmt: skip
def test_changes_of_the_logged_dose(log, spec, meant):
    assert policy(spec, log) == meant


def test_a_shift_as_typed_is_that_of_the_library(call, csv_log, log, plain):
    model = ("--propensity-model", "linear-gaussian")
    columns = [word for word in plain if word not in ("--propensity", "propensity")]
    said = call("evaluate", csv_log, *columns, *model, "--policy", "shift:0", "--json", "-")
    np.testing.assert_allclose(json.loads(said.out)["value"], log.outcome.mean(), rtol=1e-9)
    refused = call("evaluate", csv_log, *plain, "--policy", "shift:1")
    assert "Leave `--propensity` out, so that it is learned" in refused.err


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("shift:", "'' in `shift:` is not a number"),
        ("multiply:x", "'x' in `multiply:x` is not a number"),
        ("tilt:", "'' in `tilt:` is not a number"),
        ("shift:-5:0", "'0' in `shift:-5:0` must be LO,HI"),
        ("limited:35", "'35' in `limited:35` must be LO,HI"),
        ("clipped:5:constant:3", "'5' in `clipped:5:constant:3` must be LO,HI"),
        ("randomized:1", "`randomized:1` names no policy. Write it as randomized:SD:POLICY."),
        ("rounded:5:", "`rounded:5:` names no policy. Write it as rounded:STEP:POLICY."),
    ],
)
def test_what_is_no_change_is_refused(log, spec, sentence):
    with pytest.raises(click.BadParameter, match=re.escape(sentence)) as refused:
        policy(spec, log)
    assert refused.value.param_hint == "'--policy'"


@pytest.mark.parametrize("term", ["age", "intercept"])
def test_a_term_that_is_given_twice_is_refused(log, term):
    with pytest.raises(click.BadParameter, match=f"`{term}` is given twice in `linear:"):
        policy(f"linear:intercept=30,age=0.1, {term}=0.02", log)


@pytest.mark.parametrize("entry", ['"intercept": 1', '"class": "Linear"'])
def test_an_entry_that_a_file_gives_twice_is_refused(tmp_path, entry):
    path = tmp_path / "rule.json"
    tt.Linear([1.0], 30.0, features=("age",)).save(path)
    path.write_text(path.read_text().replace("{", f"{{{entry},", 1))
    name = entry.split('"')[1]
    with pytest.raises(PolicyFileError, match=f"`{name}` is given twice. Keep the value"):
        load_policy(path)


def test_the_logged_mean(log):
    assert policy("logged-mean", log) == tt.Constant(float(log.treatment.mean()))


def test_the_status_quo_is_worth_the_mean_outcome(call, csv_log, log, plain):
    said = call("evaluate", csv_log, *plain, "--policy", "status-quo", "--json", "-")
    np.testing.assert_allclose(json.loads(said.out)["value"], log.outcome.mean(), rtol=1e-12)


def test_linear_without_contexts_is_constant():
    bare = tt.LoggedData(np.empty((3, 0)), [1.0, 2.0, 3.0], [0.0, 1.0, 0.0])
    assert policy("linear:intercept=2", bare) == tt.Constant(2.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("new=constant:3", ("new", "constant:3")),
        ("constant:3", ("constant:3", "constant:3")),
        ("linear:age=1", ("linear:age=1", "linear:age=1")),
        ("rules/v2.json", ("v2", "rules/v2.json")),
        ("new=rules/v2.json", ("new", "rules/v2.json")),
        ("b=linear:intercept=1,age=2", ("b", "linear:intercept=1,age=2")),
        ("logged-mean", ("logged-mean", "logged-mean")),
    ],
)
def test_names(text, expected):
    assert named(text) == expected


def test_a_file_is_matched_to_the_columns_by_name(log, tmp_path):
    # The file knows (age, weight); the log has (weight, age, carrier).
    path = tmp_path / "rule.json"
    tt.Linear([2.0, 1.0], 5.0, features=["age", "weight"]).save(path)
    found = policies([str(path)], log)
    weight, age = log.context[:, 0], log.context[:, 1]
    given = doses(found["rule"], log.context, 1, log.names)[:, 0]
    np.testing.assert_allclose(given, 5.0 + weight + 2.0 * age, rtol=1e-14)


def test_a_file_with_a_column_that_the_log_lacks(call, csv_log, plain, tmp_path):
    path = tmp_path / "rule.json"
    tt.Linear([2.0, 1.0], 5.0, features=["age", "wieght"]).save(path)
    said = call("evaluate", csv_log, *plain, "--policy", str(path))
    assert said.code == 2
    assert "The policy `rule` uses `wieght`, which is not in the context" in said.err
    assert "did you mean `weight`?" in said.err
