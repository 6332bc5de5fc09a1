"""`titrant check` prints the trust report of the library and leaves with its verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import titrant as tt


@pytest.fixture
def columns(plain):
    """Return the options that name the columns, without the known propensity."""
    place = plain.index("--propensity")
    return (*plain[:place], *plain[place + 2 :])


def test_without_a_policy_the_propensities_are_checked(call, csv_log, log, columns):
    model = ("--propensity-model", "linear-gaussian", "--seed", 3)
    said = call("check", csv_log, *columns, *model, "--json", "-")
    assert said.code == 0, said.err
    expected = tt.check(log, propensity=tt.LinearGaussian(), seed=3)
    assert json.loads(said.out) == expected.to_dict()


def test_with_a_policy_all_is_checked(call, csv_log, log, plain):
    said = call("check", csv_log, *plain, "--policy", "constant:35", "--json", "out.json")
    assert said.code == 0, said.err
    expected = tt.check(log, tt.Constant(35.0), estimator=tt.SelfNormalized())
    assert json.loads(Path("out.json").read_text(encoding="utf-8")) == expected.to_dict()
    for check in expected:
        assert check.name.replace("_", " ") in said.out
    for remark in expected.notes:
        assert f"Note: {remark}" in said.err


def test_a_refusal_is_shown_and_leaves_with_1(call, csv_log, plain):
    far = ("check", csv_log, *plain, "--policy", "constant:60", "--bandwidth", "2.5")
    said = call(*far)
    assert said.code == 1
    assert "refuse" in said.out
    assert call(*far, "--allow-untrusted").code == 0


def test_one_policy_at_a_time(call, csv_log, plain):
    two = ("--policy", "constant:35", "--policy", "constant:40")
    said = call("check", csv_log, *plain, *two)
    assert said.code == 2
    assert "Call it once for each" in said.err


def test_the_options_of_an_evaluation_serve_for_a_check(call, csv_log, plain):
    ran = ("evaluate", csv_log, *plain, "--policy", "constant:35", "--save-config", "run.toml")
    assert call(*ran).code == 0
    said = call("check", "--config", "run.toml")
    assert said.code == 0, said.err
    assert "`level` in `run.toml` is no option of this command and is left aside." in said.err
