"""The sentences of a page: what is said, and when it is left open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import titrant as tt
from report.examples import (
    BEST,
    LEARNED,
    LOG,
    POLICIES,
    comparison,
    made,
    report,
    usual,
    usual_learned,
)
from titrant.evaluation.evaluation import Evaluation
from titrant.report import gather
from titrant.report.words import answer, drawn_note, number, span, verdict


def test_the_answer_names_the_best_policy_its_value_and_its_margin():
    best, gap = comparison()[BEST], usual().comparison.contrast(BEST, "status quo")
    low, high = gap.interval(0.9)
    assert answer(usual()).startswith(
        f"“{BEST}” has the lowest estimated mean loss: {number(best.value)} "
        f"(90% interval {span(*best.interval(0.9))}). "
        f"That is {number(-gap.difference)} less than the status quo "
        f"(90% interval {span(-high, -low)} less). "
    )


def test_of_rewards_the_highest_is_best():
    # The loss read as a reward: the status quo has the highest.
    said = answer(report(maximize=True, outcome="days in range"))
    assert said.startswith("No policy has a higher estimated mean days in range than the status")
    better = LOG.with_outcome(-LOG.outcome)
    said = answer(made(better, {"rule": POLICIES[BEST]}, maximize=True))
    assert said.startswith("“rule” has the highest estimated mean reward: −")
    assert " more than the status quo (95% interval " in said


def test_a_difference_that_may_be_chance_is_called_so():
    noise = LOG.with_outcome(np.random.default_rng(0).normal(size=len(LOG)))
    found = made(noise, {"flat": tt.Constant(35.0)})
    gap = found.comparison.contrast("flat", "status quo")
    low, high = gap.interval(0.95)
    assert low < 0 < high
    if gap.difference < 0:
        assert f"interval of the difference, {span(low, high)}, holds zero" in answer(found)
    else:
        assert answer(found).startswith("No policy has a lower estimated mean loss")


def test_close_rivals_are_named():
    found = made(LOG, {"a": tt.Constant(35.0), "b": tt.Constant(35.5), "c": tt.Constant(36.0)})
    best = min("abc", key=lambda name: found.comparison[name].value)
    one, other = sorted({"a", "b", "c"} - {best})
    assert f"Whether it is better than “{one}” or “{other}” the log leaves open." in answer(found)


def test_the_verdict_counts_warnings_and_refusals():
    # Propensities a fifth too large make a mean weight of 1/1.2, twice too large of 1/2.2.
    for factor, said in ((1.0, "All 13 checks"), (1.3, "care: 1 of 13"), (2.2, "trusted: 1 of")):
        q = factor * LOG.propensity
        log = tt.LoggedData(LOG.context, LOG.treatment, LOG.outcome, q, bounds=(5.0, 75.0))
        assert said in verdict(made(log, {"flat": tt.Constant(35.0)}))


@pytest.mark.parametrize("deployed", [True, False])
def test_a_learned_policy_is_judged_on_rows_it_was_not_learned_from(deployed):
    said = answer(replace(usual_learned(), learned={**LEARNED, "deployed": deployed}))
    assert said.startswith(
        f"On rows it was not learned from, “{BEST}” has an estimated mean loss of 3.312 "
        "(90% interval 3.062\xa0…\xa03.562). That is 2.938 less than the status quo "
        "(90% interval 2.562\xa0…\xa03.312 less)."
    )
    assert ("To be safe, the status quo is kept." in said) is not deployed
    warned = {**LEARNED, "deployed": deployed, "objection": "the honest estimate carries a warning"}
    said = answer(replace(usual_learned(), learned=warned))
    reason = "Although it looks better, the honest estimate carries a warning."
    assert (reason in said) is not deployed
    plainly = answer(replace(usual_learned(), learned={**LEARNED, "name": "learned"}))
    assert plainly.startswith("On rows it was not learned from, the learned policy has an")


def test_figures_say_what_they_leave_out():
    assert drawn_note(usual()) is None
    many = {f"c{d}": tt.Constant(float(d)) for d in range(28, 42, 2)}
    note = drawn_note(made(LOG, many, bandwidth=4.0))
    assert note.endswith("; 3 more are in this table.")


def test_where_every_other_policy_is_refused_nothing_is_said_of_them_but_that():
    found = Evaluation.of(
        LOG.with_bounds(None),
        {"now": tt.StatusQuo(), "lost": tt.Constant(900.0)},
        tt.SelfNormalized(),
        None,
    )
    said = answer(gather(found.compare(6.0), found, bandwidth=6.0))
    assert said.startswith("The status quo has a mean loss of ")
    assert said.endswith("The log cannot answer for “lost”.")
    assert "No policy has" not in said
