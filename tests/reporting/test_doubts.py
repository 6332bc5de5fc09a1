"""The section "What if we are wrong?": the assumption, and every number that was asked for."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import escape

import pytest

import titrant as tt
from reporting.examples import BEST, LOG, POLICIES, report, usual
from titrant.doubt.sensitivity import SHOWN
from titrant.reporting import render


@pytest.fixture(scope="module")
def doubts():
    asked = {"estimator": tt.SelfNormalized(), "bandwidth": 0.5}
    hidden = tt.sensitivity(LOG, POLICIES[BEST], **asked, benchmarks=())
    tried = tt.stress(LOG, POLICIES[BEST], **asked, draws=1, contexts=())
    named = replace(hidden, benchmarks={"<age>": 1.4, "x1": 1.1})
    return {"policy": BEST, "sensitivity": named.to_dict(), "stress": tried.to_dict()}


@pytest.mark.usefixtures("undrawn")
def test_unless_asked_the_section_says_what_was_not_computed():
    page = render(usual())
    assert "All of this holds if the 3 contexts of the log tell why a dose was given" in page
    assert "was not computed: ask for it by <code>--sensitivity</code>." in page
    assert usual().to_dict()["doubts"] is None


def test_the_section(doubts):
    page = render(replace(usual(), doubts=doubts))
    assert page.count("What if we are wrong?") == 2  # heading, and the way to it
    assert 'id="sensitivity-title"' in page
    assert page.count(escape(doubts["sensitivity"]["sentence"])) >= 2  # there, and with the answer
    assert "was not computed" not in page
    for gamma in SHOWN:
        assert re.search(rf">{gamma:g}</th>", page)
    assert "&lt;age&gt;" in page
    assert "<age>" not in page
    for trial in doubts["stress"]["trials"]:
        assert trial["change"] in page
        assert trial["verdict"] in page
    data = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(data)["doubts"] == json.loads(json.dumps(doubts))


@pytest.mark.usefixtures("undrawn")
def test_either_of_the_two(doubts):
    only = render(replace(usual(), doubts=doubts | {"stress": None}))
    assert "A cause that nobody recorded" in only
    assert "Trials of the estimate" not in only
    other = render(replace(usual(), doubts=doubts | {"sensitivity": None}))
    assert "A cause that nobody recorded" not in other
    assert "Trials of the estimate" in other


@pytest.mark.usefixtures("undrawn")
def test_a_trial_without_an_answer(doubts):
    trials = doubts["stress"]["trials"]
    silent = trials[0] | dict.fromkeys(("value", "se", "low", "high", "shift"))
    silent |= {"verdict": "no answer", "note": "Doses cannot be permuted."}
    stress = doubts["stress"] | {"trials": [silent, *trials[1:]], "of": 10**6}
    page = render(replace(usual(), doubts=doubts | {"stress": stress}))
    assert "Doses cannot be permuted." in page
    assert "drawn at random" in page


def test_gather_asks_about_the_policy_it_looks_at():
    asked = []

    def found(evaluation, comparison, name):
        asked.append((evaluation.names, tuple(comparison.names), name))
        return {"policy": name, "sensitivity": None, "stress": None}

    made = report(doubts=found)
    pair = (made.focus, made.status_quo)
    assert asked == [(pair, pair, made.focus)]
