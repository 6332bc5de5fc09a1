"""`titrant demo`: policies in the right order, beside their truth, and a page."""

from __future__ import annotations

import json
import re

from titrant.cli.demo import rules, true_value
from titrant.data.simulate import DESIGNS
from titrant.report.numbers import number


def test_the_demo_shows_three_policies_beside_the_truth_and_writes_a_page(call, tmp_path):
    said = call("demo", "-n", 400, "--seed", 1)
    assert said.code == 0, said.err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="titrant-result">(.*?)</script>', page, re.DOTALL)[1])
    design = DESIGNS["dosing"]
    policies = rules(design.draw(400, 1, propensity=False))
    assert data["truth"] == {name: true_value(design, policy) for name, policy in policies.items()}
    values = {name: data["result"]["estimates"][name]["value"] for name in policies}
    # The design's own best rule is among the three; its truth is 3 days, the others' 5.5 and 5.1.
    assert sorted(policies, key=values.get) == sorted(policies, key=data["truth"].get)
    for name in policies:
        assert number(values[name]) in said.out
        assert number(data["truth"][name]) in said.out
    assert "Wrote report.html" in said.err
