"""`titrant demo`: three policies and a learned one beside their truth, and a page."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from titrant.cli.commands.simulate import best_rule, rules, true_values
from titrant.data.simulate import DESIGNS
from titrant.policies import policy_from_dict
from titrant.reporting.numbers import number

DESIGN = DESIGNS["dosing"]
ROWS, SEED = 400, 1


@pytest.fixture(scope="module")
def policies():
    return rules(DESIGN.draw(ROWS, SEED, propensity=False))


def test_the_best_rule_is_that_of_the_design():
    x = DESIGN.draw(50, 0).context
    np.testing.assert_allclose(best_rule()(x), DESIGN.best(x), rtol=1e-12)


@pytest.mark.long
def test_the_demo_checks_evaluates_learns_and_writes_a_page(call, tmp_path, policies):
    said = call("demo", "-n", ROWS, "--seed", SEED, "--save-config", "run.toml")
    assert said.code == 0, said.err
    assert "Wrote report.html" in said.err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="titrant-result">(.*?)</script>', page, re.DOTALL)[1])
    # 1. The log is checked, and the overlap of each policy.
    for word in ("stabilized weight", "propensity pit", "overlap", "largest weight"):
        assert word in said.out
    # 2. Three policies, in the right order: 6.2, 5.2 and 4.3 days in truth.
    truth = true_values(DESIGN, policies)
    assert list(truth) == sorted(truth, key=truth.get, reverse=True)
    for name in policies:
        assert name in said.out
        assert number(truth[name]) in said.out
    # 3. The learned one is better than all of them, by the log and in truth, which is 3 at best.
    document = next(rule["document"] for rule in data["rules"] if rule["policy"] == "learned")
    learned = true_values(DESIGN, {"learned": policy_from_dict(document)})["learned"]
    assert data["truth"] == {**truth, "learned": pytest.approx(learned)}
    assert 3.0 < learned < 3.5
    values = {name: e["value"] for name, e in data["result"]["estimates"].items()}
    assert min(values, key=values.get) == "learned"
    assert data["learned"]["honest"]["value"] == values["learned"]
    assert number(values["learned"]) in said.out
    # Each coefficient stands beside the true one; terminals have the minus of a keyboard.
    for coefficient in (0.35, -0.2, -9.0, 19.0):
        assert number(coefficient).replace("−", "-") in said.out
    assert {"rows": ROWS, "seed": SEED}.items() <= data["settings"].items()
    assert data["config"] == (tmp_path / "run.toml").read_text(encoding="utf-8")
