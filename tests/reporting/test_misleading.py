"""Situations in which a page could mislead, each with the sentence that it says instead."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

import titrant as tt
from reporting.examples import BEST, LEARNED, LOG, POLICIES, made, usual, usual_learned
from reporting.test_words import REFUSE, WARN, check, judged
from titrant.evaluation.evaluation import Evaluation
from titrant.reporting import gather, render, tables

FLAT = {"flat": tt.Constant(35.0)}


def drawn(n=400, seed=0):
    """Contexts, doses, outcomes with the best dose at 1, and propensities."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    t = 1.0 + 0.5 * x[:, 0] + rng.normal(size=n)
    y = (t - 1.0) ** 2 + x[:, 0] + rng.normal(size=n)
    q = np.exp(-((t - 1.0 - 0.5 * x[:, 0]) ** 2) / 2.0) / np.sqrt(2.0 * np.pi)
    return x, t, y, q


def logged(*parts, **given):
    return tt.LoggedData(*parts, **{"names": ["a", "b"], **given})


def refusing(policies):
    found = Evaluation.of(LOG.with_bounds(None), policies, tt.SelfNormalized(), None)
    return gather(found.compare(6.0), found, bandwidth=6.0)


def every_candidate_warns():
    return judged(judged(usual(), BEST, check(WARN)), "flat", check(WARN))


def a_tie_of_the_best():
    rule = POLICIES[BEST]
    return made(LOG, {"a": rule, "b": lambda x: rule(x) + 0.1})


def a_tie_with_the_status_quo():
    x, t, _, q = drawn()
    y = np.random.default_rng(1).normal(size=400)
    return made(logged(x, t, y, q), {"one": tt.Constant(1.0)}, bandwidth=0.6)


def the_best_of_many():
    x, t, _, q = drawn(seed=3)
    y = np.random.default_rng(2).normal(size=400)
    many = {f"c{k}": tt.Constant(k / 4) for k in range(-2, 9)}
    return made(logged(x, t, y, q), many, bandwidth=0.6)


def the_status_quo_is_best():
    x, t, y, q = drawn(n=1200)
    far = made(logged(x, t, y, q), {"three": tt.Constant(3.0)}, bandwidth=0.6)
    return judged(far, "three", check(WARN, "effective_sample_size"))


def a_refused_policy():
    return refusing({"lost": tt.Constant(900.0), **FLAT})


def all_are_refused():
    return refusing({"before": tt.StatusQuo(), "lost": tt.Constant(900.0)})


def a_refused_number_that_was_asked_for():
    return judged(made(LOG, FLAT), "flat", check(REFUSE, "effective_sample_size"))


def a_context_that_is_the_outcome():
    x, t, y, q = drawn()
    x = np.column_stack([x[:, 0], y])
    return made(logged(x, t, y, q), {"one": tt.Constant(1.0)}, bandwidth=0.6)


def doses_between_list_prices():
    x, _, _, _ = drawn(seed=5)
    t = np.random.default_rng(5).choice([1.0, 2.0, 3.0, 4.0], 400)
    y = (t - 2.0) ** 2 + np.random.default_rng(6).normal(size=400)
    log = logged(x, t, y)
    return made(log, {"between": tt.Constant(2.5)}, bandwidth=0.9, propensity=tt.LinearGaussian())


def one_row_holds_the_weight():
    x, t, y, q = drawn()
    q[np.abs(t - 1.0).argmin()] = 1e-9
    return made(
        logged(x, t, y, q), {"one": tt.Constant(1.0)}, tt.SelfNormalized(clip=0.0), bandwidth=0.6
    )


def wrong_propensities():
    log = tt.LoggedData(
        LOG.context, LOG.treatment, LOG.outcome, 1.4 * LOG.propensity, names=LOG.names
    )
    return made(log, FLAT)


def models_that_do_not_fit():
    uneven = check(WARN, "propensity_pit", "The ranks of held-out doses are uneven.")
    return judged(judged(usual(), BEST, uneven), "flat", uneven)


def huge_numbers():
    x, t, y, q = drawn()
    return made(logged(x, t, 1e7 + y, q), {"one": tt.Constant(1.0)}, bandwidth=0.6)


def a_tiny_difference():
    # As clear as before, beside outcomes that differ far more between people.
    outcome = replace(usual().description.outcome, sd=100.0)
    return replace(usual(), description=replace(usual().description, outcome=outcome))


def graded(difference, interval):
    honest = {**LEARNED["honest"]}
    honest["against"] = {"status quo": {"difference": difference, "interval": interval}}
    return replace(usual_learned(), learned={**LEARNED, "honest": honest})


def an_interval_that_ends_just_below_zero():
    return graded(-1.2625, [-2.498, -0.027])


def a_difference_next_to_nothing():
    return graded(-0.021, [-2.5, 2.46])


def few_rows():
    x, t, y, q = drawn(n=24)
    return made(logged(x, t, y, q), {"one": tt.Constant(1.0)}, bandwidth=0.3)


def beyond_the_log():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    t = 2.0 * x[:, 0] + 0.7 * rng.normal(size=600)
    log = logged(x, t, t**2 + rng.normal(size=600))
    return made(log, {"far": tt.Constant(1.0)}, propensity=tt.LinearGaussian(), bandwidth=0.8)


def a_rule_that_was_not_shown_to_be_better():
    return graded(-0.1, [-0.4, 0.2])


def a_learned_rule():
    return usual_learned()


def many_parts():
    return usual()


def a_curve_that_ends_at_its_best():
    x, t, _, q = drawn()
    return made(logged(x, t, -t, q), {"one": tt.Constant(1.0)}, bandwidth=0.6)


def a_hidden_cause():
    return usual()


def rows_left_out():
    named = "Rows were left out, and they are not like the others."
    return judged(made(LOG, FLAT), "flat", check(WARN, "dropped_rows", named))


def a_direction_taken_for_granted():
    return usual()


def a_share_below_zero():
    # One yes in forty, and few rows near the policy: the interval reaches below 0.
    x, t, _, q = drawn()
    y = (np.arange(400) % 40 == 0).astype(float)
    return made(logged(x, t, y, q), {"one": tt.Constant(1.0)}, bandwidth=0.3)


def a_curve_of_point_masses():
    rng = np.random.default_rng(7)
    x, t, _, _ = drawn(n=800)
    t = np.where(rng.uniform(size=800) < 0.5, rng.choice([0.0, 1.0], 800), t)
    log = logged(x, t, t + rng.normal(size=800))
    return made(log, {"one": tt.Constant(1.0)}, propensity=tt.LinearGaussian(), bandwidth=0.6)


def a_text_taken_for_a_number():
    race = np.random.default_rng(8).choice(["Black", "White"], 400)
    x, t, y, _ = drawn()
    table = {"a": x[:, 0], "race": race, "dose": t + (race == "White"), "loss": y}
    log = tt.LoggedData.from_frame(table, treatment="dose", outcome="loss", context=["a", "race"])
    return made(log, {"one": tt.Constant(1.0)}, propensity=tt.LinearGaussian(), bandwidth=0.6)


def policies_that_are_numbers():
    x, t, y, q = drawn(n=1200)
    both = {"1": tt.Constant(1.0), "3": tt.Constant(3.0)}
    return made(logged(x, t, y, q), both, bandwidth=0.6)


def one_group_dominates():
    # One patient has 40 % of the rows: what looks like 400 rows is hardly more than one of them.
    x, t, y, q = drawn()
    whose = np.where(np.arange(400) % 5 < 2, 0, np.arange(400))
    y = y + np.where(whose == 0, 2.0, 0.0)
    log = logged(x, t, y, q, groups=whose)
    return made(log, {"one": tt.Constant(1.0)}, bandwidth=0.6)


def a_baseline_beats_the_learned_rule():
    # The rule that was learned is not clearly better, but the same dose for all is.
    honest = {**LEARNED["honest"]}
    honest["against"] = {"status quo": {"difference": -0.1, "interval": [-0.4, 0.2]}}
    learned = {**LEARNED, "name": "flat", "honest": honest}
    return made(LOG, {**FLAT, BEST: POLICIES[BEST]}, learned=learned)


def people_never_given_such_doses():
    named = "Of the rows 12 % have no row alike that got the policy's dose."
    return judged(made(LOG, FLAT), "flat", check(WARN, "never_given", named))


SITUATIONS = {
    every_candidate_warns: "Read it with care: each of “flat” and “b<i>st & $x$” gives doses that",
    a_tie_of_the_best: "It is not clearly better than “",
    a_tie_with_the_status_quo: "better than the status quo. “one” has mean loss",
    the_best_of_many: "interval for the best of 11, ",
    the_status_quo_is_best: "Keep the status quo: “three” is worse",
    a_refused_policy: "The log cannot answer for “lost”.",
    all_are_refused: "No policy could be judged.",
    a_refused_number_that_was_asked_for: "Not to be trusted: few rows speak about “flat”.",
    a_context_that_is_the_outcome: "Read it with care: a context is a copy of the outcome",
    doses_between_list_prices: "gives doses between those that were ever given",
    one_row_holds_the_weight: "one row holds much of the weight of “one”",
    wrong_propensities: "the weights of “flat” do not average to 1",
    models_that_do_not_fit: "Read it with care: the model of the doses does not fit.",
    huge_numbers: "mean loss 10,000,00",
    a_tiny_difference: "The difference is small: 0.0",
    an_interval_that_ends_just_below_zero: "1.3 lower (90% interval 0.03 … 2.5 lower)",
    a_difference_next_to_nothing: "0.02 lower (90% interval −2.5 … 2.5, which holds 0)",
    few_rows: "few rows speak about “one”",
    beyond_the_log: "“far” gives doses that such rows never got",
    a_rule_that_was_not_shown_to_be_better: "Keep the status quo: “b<i>st & $x$” is not clearly",
    a_learned_rule: "on rows it was not learned from, mean loss 3.31",
    many_parts: "Intervals hold for one part at a time: of many parts some differ by chance.",
    a_curve_that_ends_at_its_best: "a better one may lie beyond, where nothing is known.",
    a_hidden_cause: "No check can see a cause that was not recorded.",
    rows_left_out: "Read it with care: the rows left out are not like the others.",
    a_direction_taken_for_granted: "dose → loss, lower is better",
    a_share_below_zero: "reaches beyond 0 … 1, where no share can be: intervals are not cut there",
    a_curve_of_point_masses: "At 0 and 1, which many rows got, rows with exactly that dose answer",
    a_text_taken_for_a_number: "race ≠ White",
    policies_that_are_numbers: "“1”",
    one_group_dominates: "few groups speak about “one”; one group holds much of the weight of",
    a_baseline_beats_the_learned_rule: "compared with, “b<i>st & $x$” looks better than the status",
    people_never_given_such_doses: "some people's like were never given the doses of “flat”",
}
"""What could mislead, and what the page says."""


def words_of(page: str) -> str:
    """The text of a page, as it is read."""
    body = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", body)))


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.__name__)
def test_the_page_says(situation):
    assert SITUATIONS[situation] in words_of(render(situation()))


@pytest.mark.usefixtures("undrawn")
def test_the_status_quo_wears_no_badge():
    page = render(the_status_quo_is_best())
    assert '<div class="answer warn">' in page
    assert "warn</span> Read it with care: few rows speak about “three”" in page


def test_the_balance_in_the_table_is_that_of_the_check():
    # With weights, too: the table is of the same weighted rows as the check.
    rng = np.random.default_rng(0)
    parts = LOG.context, LOG.treatment, LOG.outcome, LOG.propensity
    log = tt.LoggedData(*parts, names=LOG.names, weights=rng.uniform(0.2, 3.0, len(LOG)))
    found = made(log, {**FLAT, "rule": POLICIES[BEST]})
    for one in found.balance:
        own = found.comparison[one.policy].diagnostics["covariate_balance"]
        assert one.check.message == own.message
        assert own.value == pytest.approx(one.weighted.max())


DATE = re.compile(
    r"\b\d{4}-\d\d-\d\d\b|\b\d\d?[./]\d\d?[./]\d{4}\b|\b\d\d:\d\d\b"
    r"|\b(Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d|<time"
)


@pytest.mark.usefixtures("undrawn")
def test_a_page_has_no_date_unless_given():
    assert DATE.search(words_of(render(usual()))) is None
    dated = render(replace(usual(), title="As of 2031-05-06"))
    assert DATE.search(words_of(dated))[0] == "2031-05-06"


def test_the_balance_before_and_after_weighting_is_drawn():
    page = render(usual())
    love = page[page.index("Balance: do the rows that speak look like all rows?") :]
    love = love[: love.index("</figure>")]
    for label in ("near the policy", "weighted", *LOG.names):
        assert f">{label}<" in love
    assert re.search(r"sd near the policy and \S+ sd after weighting", love)


def test_a_policy_that_changes_the_logged_dose_has_no_rows_near_it():
    # All rows speak about it, so that "before weighting" would be no distance at all.
    found = made(LOG, {"more": tt.Shift(2.0)}, propensity=tt.LinearGaussian())
    page = render(found)
    love = page[page.index("Balance: do the rows that speak") :]
    love = love[: love.index("</figure>")]
    assert ">near the policy<" not in love
    assert "all rows speak about a policy that changes the logged dose" in love
    (table,) = (tables.balance(found, one) for one in found.balance)
    assert {row[1] for row in table.rows} == {"–"}
