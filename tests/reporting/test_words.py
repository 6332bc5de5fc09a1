"""The sentences of a page: the conclusion, its one verdict, and the words of the log."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import titrant as tt
from reporting.examples import (
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
from titrant.inference import Check, Verdict
from titrant.inference.trust import doubts, rules
from titrant.reporting import render, words
from titrant.reporting.numbers import number, span
from titrant.reporting.words import CLAUSES, decide, drawn_note, spoken


def answer(found) -> str:
    return words.answer(found, decide(found))


def verdict(found) -> str:
    return words.verdict(found, decide(found))


# ── the conclusion ───────────────────────────────────────────────────────────────────────────────
def test_the_answer_names_the_best_policy_its_value_and_its_margin():
    best, gap = comparison()[BEST], usual().comparison.contrast(BEST, "status quo")
    low, high = gap.interval(0.95)  # two policies: each 90% interval is one of 95%
    quo = usual().comparison["status quo"]
    width = np.ptp(quo.interval(0.9))
    assert answer(usual()) == (
        f"“{BEST}” looks better than the status quo: mean loss "
        f"{number(best.value, np.ptp(best.interval(0.9)))} (90% interval "
        f"{span(*best.interval(0.9))}) instead of {number(quo.value, width)}, "
        f"{number(-gap.difference, high - low)} lower (90% interval for the best of 2, "
        f"{span(-high, -low)} lower)."
    )


def test_units_stand_beside_the_numbers():
    found = report(outcome="loss", units={"loss": "days"}, labels={"loss": "bad days"})
    assert "mean bad days 3.27\xa0days (90% interval" in answer(found)
    assert " lower (90% interval" in answer(found)
    assert "2.87\xa0days lower" in answer(found)


def test_of_rewards_the_highest_is_best():
    better = LOG.with_outcome(-LOG.outcome)
    said = answer(made(better, {"rule": POLICIES[BEST]}, maximize=True))
    assert said.startswith(
        ("“rule” is better than the status quo: mean reward −", "“rule” looks better than")
    )
    assert " higher (95% interval " in said


def test_the_best_of_several_must_be_clear_with_all_at_once():
    # One comparison of a noisy log may be clear alone, and not as the best of many.
    rng = np.random.default_rng(4)
    noise = LOG.with_outcome(rng.normal(size=len(LOG)))
    many = {f"c{d}": tt.Constant(float(d)) for d in range(26, 46, 2)}
    found = made(noise, many, bandwidth=4.0)
    alone = found.comparison.contrast(decide(found).best, "status quo").interval(0.95)
    at_once = decide(found).ends
    assert at_once[0] < alone[0]
    assert at_once[1] > alone[1]
    assert np.ptp(at_once) == pytest.approx(
        np.ptp(found.comparison.contrast(decide(found).best, "status quo").interval(0.995))
    )


@pytest.mark.parametrize("deployed", [True, False])
def test_a_learned_policy_is_judged_on_rows_it_was_not_learned_from(deployed):
    said = answer(replace(usual_learned(), learned={**LEARNED, "deployed": deployed}))
    numbers = (
        "on rows it was not learned from, mean loss 3.31 (90% interval 3.06\xa0…\xa03.56) instead "
        "of 6.14, 2.94 lower (90% interval 2.56\xa0…\xa03.31 lower)."
    )
    start = "looks better than the status quo: " if deployed else "is not shown to be better: "
    assert said.endswith(f"“{BEST}” {start}{numbers}")
    assert said.startswith("Keep the status quo.") is not deployed
    warned = {**LEARNED, "deployed": deployed, "objection": "the honest estimate carries a warning"}
    said = answer(replace(usual_learned(), learned=warned))
    reason = "Although it looks better, the honest estimate carries a warning."
    assert (reason in said) is not deployed
    plainly = answer(replace(usual_learned(), learned={**LEARNED, "name": "learned"}))
    assert plainly.startswith("The learned rule looks better than the status quo: on rows it was")


# ── the one verdict ──────────────────────────────────────────────────────────────────────────────
def judged(found, name, *checks):
    """The report with other checks of one policy."""
    estimate = found.comparison[name]
    other = replace(estimate, diagnostics=replace(estimate.diagnostics, checks=checks))
    estimates = {**found.comparison.estimates, name: other}
    return replace(found, comparison=replace(found.comparison, estimates=estimates))


OK, WARN, REFUSE = Verdict.OK, Verdict.WARN, Verdict.REFUSE


def check(verdict, name="support", message="Why."):
    return Check(name, 0.0, verdict, message)


@pytest.mark.parametrize(
    ("best", "rival", "model", "quo", "worst"),
    [
        (OK, OK, OK, OK, OK),
        (WARN, OK, OK, OK, WARN),
        (OK, WARN, OK, OK, WARN),
        (OK, OK, WARN, OK, OK),  # estimates are judged by the checks that they carry themselves
        (OK, OK, OK, WARN, OK),  # the badge never belongs to the status quo
        (OK, REFUSE, OK, OK, OK),  # a refused rival is no part of the conclusion, and is named
        (REFUSE, REFUSE, OK, OK, REFUSE),
    ],
)
def test_the_verdict_is_the_worst_of_what_the_conclusion_rests_on(best, rival, model, quo, worst):
    found = judged(usual(), BEST, check(best, message="Best."))
    found = judged(found, "flat", check(rival, message="Rival."))
    found = judged(found, "status quo", check(quo, message="Before."))
    models = replace(
        usual().calibration_checks, checks=(check(model, "stabilized_weight", "Fit."),)
    )
    found = replace(found, calibration_checks=models)
    assert decide(found).verdict is worst
    said = verdict(found)
    openings = {OK: "All ", WARN: "Read it with care: ", REFUSE: "Not to be trusted: "}
    assert said.startswith(openings[worst])
    if rival is REFUSE:
        named = "The log cannot answer for “flat”." if best is OK else "The log cannot answer"
        assert named in answer(found)
    if best is REFUSE:
        assert decide(found).recommended == "status quo"


def test_one_reason_for_several_policies_is_told_once():
    found = judged(usual(), BEST, check(WARN))
    found = judged(found, "flat", check(WARN))
    ((names, one),) = decide(found).reasons
    assert set(names) == {"flat", BEST}
    assert one.message == "Why."
    assert verdict(found) == (
        f"Read it with care: each of “flat” and “{BEST}” gives doses that such rows never got."
    )


def test_every_check_has_a_clause():
    # Their names are literals, the first argument of what makes a check.
    made_by = re.compile(r"(?:_check|Check|_doubt)\(\s*\"(\w+)\"")
    texts = [Path(room.__file__).read_text(encoding="utf-8") for room in (rules, doubts)]
    names = {name for text in texts for name in made_by.findall(text)}
    assert len(names) > 40
    assert names <= set(CLAUSES)


# ── the words of the log ─────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("price", "price"),
        ("list price", "price"),
        ("weekly dose", "dose"),
        ("smkintensity82_71", "treatment"),
        ("log blood lead", "treatment"),
        ("cigarettes", "treatment"),  # one of them is a cigarette
        ("emphasis", "emphasis"),
    ],
)
def test_a_price_is_called_a_price(name, word):
    found = replace(usual(), log=replace(usual().log, treatments=(name,)))
    assert found.word == word
    said = spoken(found, "The policy's dose is far. Doses drift, 2 doses of `dose`.")
    assert said == f"The policy's {word} is far. {word.capitalize()}s drift, 2 {word}s of `dose`."


def test_contexts_have_their_labels_in_every_sentence():
    found = replace(usual(), labels={"age": "Age in years", "Race": "ethnicity"})
    assert spoken(found, "The mean of 'age' moves.") == "The mean of “Age in years” moves."
    assert spoken(found, "See `Race=Other`, `b`.") == "See “ethnicity = Other”, `b`."
    assert spoken(found, 'Pass `missing="weight"`.') == 'Pass `missing="weight"`.'
    assert found.called("age is missing") == "Age in years is missing"
    assert found.called("agent") == "agent"


def test_figures_say_what_they_leave_out():
    assert drawn_note(usual()) is None
    many = {f"c{d}": tt.Constant(float(d)) for d in range(28, 42, 2)}
    note = drawn_note(made(LOG, many, bandwidth=4.0))
    assert note.endswith("; 3 more are in this table.")


# ── the data ─────────────────────────────────────────────────────────────────────────────────────
def test_no_column_is_doubtful_but_those_that_were_told_of():
    found = usual()
    assert words.undoubted(found).startswith("No column looks like a leak, ")
    repeats = rules.repeated_rows(4.0, "column `age`", "60", 1.0, context=True)
    found = judged(found, BEST, repeats)
    assert any("as an id would" in said for said in words.done_to_the_data(found))
    assert words.undoubted(found).startswith("Apart from what is said above, no column looks like ")
    assert words.undoubted(found) in render(found)
