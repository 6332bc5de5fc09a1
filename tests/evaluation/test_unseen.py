"""Drift, carry-over and unheard-of doses are seen where they confound, and nowhere else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import titrant as tt
from titrant.evaluation.model_checks import BLOCKS, FEWEST, drift, is_sorted
from titrant.evaluation.repeated import (
    FEWEST_GROUPS,
    carried_over,
    carry_over_findings,
    left_in_levels,
    level_findings,
)
from titrant.inference.trust import rules

SAME = 1e-12  # two ways to the same sums
POLICY = tt.Constant(18.0)


def drawn(seed=0, n=1000, *, doses=3.0, outcomes=1.2):
    """Rows in the order of time, which moves doses and outcomes by so much."""
    rng = np.random.default_rng(seed)
    u = np.linspace(-1.0, 1.0, n)
    x = rng.normal(size=n)
    t = 20 + 2 * x + doses * u + 2.5 * rng.normal(size=n)
    y = 0.02 * (t - 21) ** 2 + x + outcomes * u + rng.normal(size=n)
    return x, t, y


def found_in(x, t, y, **more):
    return tt.evaluate(tt.LoggedData(x, t, y, **more), POLICY, allow_untrusted=True)


def test_the_p_value_is_that_of_an_analysis_of_variance():
    values = np.random.default_rng(1).normal(size=1234)
    runs = [run.mean() for run in np.array_split(stats.rankdata(values), 100)]
    blocks = np.array_split(np.array(runs), BLOCKS)
    assert drift(values) == pytest.approx(stats.f_oneway(*blocks).pvalue, rel=SAME)
    # Ranks alone count, in either direction.
    assert drift(-np.exp(values)) == pytest.approx(drift(values), rel=SAME)
    assert drift(np.ones(500)) == 1.0
    assert drift(np.arange(500.0)) < 1e-50


def test_neighbors_worked_out():
    # Ranks 1, 2, 3, 4 about 2.5: steps of 1, so 3/(1.5² + .5² + .5² + 1.5²) = 3/5.
    assert not is_sorted(np.array([1.0, 2.0, 3.0, 4.0]))
    # n rows: (n − 1)/((n³ − n)/12) = 12/(n(n + 1)), .11 of 10 and .09 of 11.
    assert not is_sorted(np.arange(10.0))
    assert is_sorted(np.arange(11.0))
    assert is_sorted(np.repeat([0.0, 1.0], 50))  # cases first, controls after them
    assert not is_sorted(np.tile([0.0, 1.0], 50))


def test_chance_passes_as_often_as_it_may():
    rng = np.random.default_rng(2)
    p = np.array([drift(rng.standard_t(2, size=FEWEST)) for _ in range(1000)])
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_a_limit_for_both():
    assert rules.drift(9e-5, 1e-9).verdict.value == "warn"
    assert rules.drift(1e-9, 2e-4).verdict.value == "ok"
    assert rules.bears_on_confounding(rules.drift(1e-9, 1e-9))


@pytest.mark.usefixtures("plain_models")
def test_time_that_is_no_context_is_told():
    x, t, y = drawn()
    found = found_in(x, t, y)
    check = found.diagnostics["drift"]
    assert check.verdict.value == "warn"
    assert "Something that changed over time is not among the contexts" in check.message
    # With the time among the contexts there is nothing left to drift.
    timed = found_in(np.column_stack([x, np.linspace(0.0, 1.0, len(x))]), t, y)
    assert "drift" not in timed.diagnostics.names
    # In another order nobody can know, and the value is the same but for the folds.
    mixed = np.random.default_rng(3).permutation(len(x))
    assert "drift" not in found_in(x[mixed], t[mixed], y[mixed]).diagnostics.names
    # Known propensities need no context.
    q = stats.norm.pdf(t, 20 + 2 * x + 3 * np.linspace(-1.0, 1.0, len(x)), 2.5)
    assert "drift" not in found_in(x, t, y, propensity=q).diagnostics.names


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize("moved", [{"doses": 0.0}, {"outcomes": 0.0}], ids=["outcomes", "doses"])
def test_one_drift_alone_confounds_nothing(moved):
    assert "drift" not in found_in(*drawn(**moved)).diagnostics.names


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize("by", range(3), ids=["context", "dose", "outcome"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_sorted_rows_show_no_time(by, sign):
    columns = drawn(doses=0.0, outcomes=0.0)
    order = np.argsort(sign * columns[by])
    found = found_in(*(column[order] for column in columns))
    assert "drift" not in found.diagnostics.names


@pytest.mark.usefixtures("plain_models")
def test_row_numbers_that_were_left_out_tell_the_time():
    x, t, y = drawn()
    mixed = np.random.default_rng(4).permutation(len(x))
    table = {"dose": t, "loss": y, "x": x, "visit": np.arange(1, len(x) + 1)}
    roles = {"treatment": "dose", "outcome": "loss"}
    log = tt.LoggedData.from_frame(pd.DataFrame(table).iloc[mixed], **roles)
    assert log.names == ("x",)
    assert list(log.orders) == ["visit"]
    assert log.rows(slice(0, 500)).orders == {}
    check = tt.evaluate(log, POLICY).diagnostics["drift"]
    assert "Along the column `visit`, doses" in check.message
    # Rows without an outcome show no drift of it; the others still do.
    lost = pd.DataFrame(table).iloc[mixed]
    lost.loc[lost["x"] > 1, "loss"] = np.nan
    some = tt.LoggedData.from_frame(lost, **roles, missing_outcome="weight")
    assert tt.evaluate(some, POLICY).diagnostics["drift"].verdict.value == "warn"


# Doses that act on later rows


def test_carry_over_worked_out():
    # u − ū = ∓1, e − ē = ∓2 in the rows of groups 0 and 1, and ±1, ∓1 in those of group 2: sums by
    # group 2, 2, −2. T = 2/√12 with 2 degrees of freedom.
    u = np.array([-1.0, 1.0, -1.0, 1.0])
    e = np.array([-2.0, 2.0, 1.0, -1.0])
    groups = np.array([0, 1, 2, 2])
    expected = 2 * stats.t.sf(2 / np.sqrt(12), 2)
    assert carried_over(u, e, groups) == pytest.approx(expected, rel=SAME)
    # Neither origin nor unit of either matters.
    assert carried_over(3 * u + 1, 7 - e, groups) == pytest.approx(expected, rel=SAME)
    assert carried_over(u, np.zeros(4), groups) == 1.0


def panel(seed=0, groups=80, visits=6, carry=0.0):
    """Rows by patient and visit; the dose before moves the outcome by ``carry``."""
    rng = np.random.default_rng(seed)
    own, x = rng.normal(size=(groups, 1)), rng.normal(size=(groups, visits))
    t = 0.6 * x + rng.normal(size=(groups, visits))
    before = np.hstack([np.zeros((groups, 1)), t[:, :-1]])
    y = 0.5 * (t - 1) ** 2 + 0.5 * x + own + carry * before + 0.5 * rng.normal(size=t.shape)
    who = np.repeat(np.arange(groups), visits)
    return x.ravel(), t.ravel(), y.ravel(), who, before.ravel()


def test_pairs_are_those_of_one_group_whatever_stands_between():
    _, t, _, who, before = panel(carry=1.0)
    ranks, left = stats.norm.cdf(t), before
    (found,) = carry_over_findings(ranks, left, who)
    assert "400 pairs" in found.message
    # Visits in the order of time, patients in any.
    order = np.argsort(np.tile(np.arange(6), 80), kind="stable")
    (mixed,) = carry_over_findings(ranks[order], left[order], who[order])
    assert mixed.value == pytest.approx(found.value, rel=1e-6)
    few = who < FEWEST_GROUPS - 1
    assert carry_over_findings(ranks[few], left[few], who[few]) == []


@pytest.mark.usefixtures("plain_models")
def test_an_effect_on_later_rows_is_seen_and_gone_with_the_dose_before_as_context():
    x, t, y, who, before = panel(carry=1.0)
    found = tt.evaluate(tt.LoggedData(x, t, y, groups=who), tt.Constant(0.5))
    check = found.diagnostics["carry_over"]
    assert check.verdict.value == "warn"
    assert rules.bears_on_confounding(check)
    known = {"x": x, "before": before}
    told = tt.evaluate(tt.LoggedData(known, t, y, groups=who), tt.Constant(0.5))
    assert "carry_over" not in told.diagnostics.names
    without = tt.evaluate(tt.LoggedData(x, t, y), tt.Constant(0.5), allow_untrusted=True)
    assert "carry_over" not in without.diagnostics.names


# Doses that are unheard of at a level of a text


def stores(seed=0, n=900, levels=60, move=0.0):
    rng = np.random.default_rng(seed)
    effect, store = move * rng.normal(size=levels), rng.integers(levels, size=n)
    t = effect[store] + rng.normal(size=n)
    table = {"store": [f"s{k:02d}" for k in store], "t": t, "y": t + effect[store]}
    return tt.LoggedData.from_frame(table, treatment="t", outcome="y"), effect[store]


def test_doses_far_from_those_of_their_level_by_hand():
    log, _ = stores(move=2.0)
    tau = np.full(len(log), 1.0)
    (found,) = level_findings(log, tau)
    code = log.context[:, 0]
    t = log.treatment
    means = {k: t[code == k].mean() for k in set(code.tolist())}
    own = np.array([means[k] for k in code.tolist()])
    s = np.sqrt(np.sum((t - own) ** 2) / (len(t) - 60))
    assert found.value == pytest.approx(np.mean(np.abs(tau - own) > 2.5 * s), rel=SAME)
    assert found.verdict.value == "warn"
    assert "which has 60 of them" in found.message


def test_levels_that_do_not_move_doses_are_no_reason():
    log, effect = stores(move=0.0)
    assert not list(level_findings(log, np.full(len(log), 1.6)))
    log, effect = stores(move=2.0)
    assert not list(level_findings(log, effect))  # each level's usual dose
    few = tt.LoggedData(log.context, log.treatment, log.outcome)  # a number, not a text
    assert not list(level_findings(few, np.full(len(few), 9.0)))


@pytest.mark.usefixtures("plain_models")
def test_the_verdict_says_so():
    log, _ = stores(move=2.0)
    found = tt.evaluate(log, tt.Constant(1.0), allow_untrusted=True)
    assert found.diagnostics["level_support"].verdict.value == "warn"
    assert found.diagnostics.verdict.value != "ok"
    quo = tt.evaluate(log, tt.StatusQuo())
    assert "level_support" not in quo.diagnostics.names


# ── levels of a text ─────────────────────────────────────────────────────────────────────────────


def test_what_levels_share_by_loops():
    rng = np.random.default_rng(0)
    u, e, level = rng.random(60), rng.normal(size=60), rng.integers(0, 12, 60)
    a, b = u - u.mean(), e - e.mean()
    pairs = [
        [a[i] * b[j] for i in range(60) for j in range(60) if i != j and level[i] == level[j] == k]
        for k in np.unique(level)
    ]
    s = np.array([sum(each) for each in pairs])
    t = abs(s.sum()) / np.sqrt(np.sum(s**2))
    p, shared = left_in_levels(u, e, level)
    assert p == pytest.approx(2 * stats.t.sf(t, len(s) - 1))
    assert shared == pytest.approx(s.sum() / sum(map(len, pairs)) / (u.std() * e.std()))
    assert left_in_levels(u, e, np.arange(60)) == (1.0, 0.0)  # no level has two rows


def of_places(levels=300, together=1.0, apart=0.0, n=900, seed=0):
    """Rows at places that move dose and outcome, by one effect or by one each."""
    rng = np.random.default_rng(seed)
    place, (one, other) = rng.integers(0, levels, n), rng.normal(size=(2, levels))
    x = rng.normal(size=n)
    t = 0.6 * x + (together + apart) * one[place] + rng.normal(size=n)
    y = 0.5 * (t - 1) ** 2 + 0.5 * x + (together * one + apart * other)[place]
    y = y + 0.7 * rng.normal(size=n)
    table = {"x": x, "place": [f"P{k:03d}" for k in place], "t": t, "y": y}
    roles = {"treatment": "t", "outcome": "y", "context": ["x", "place"]}
    return tt.LoggedData.from_frame(table, **roles)


def test_levels_with_few_rows_that_confound_are_warned_of():
    check = tt.evaluate(of_places(), tt.Constant(0.5)).diagnostics["left_in_levels"]
    assert check.verdict.value == "warn"
    assert "one level of 'place'" in check.message
    assert rules.bears_on_confounding(check)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("apart", [0.0, 1.0])
def test_levels_that_do_not_confound_are_not(apart, seed):
    log = of_places(together=0.0, apart=apart, seed=seed)
    found = tt.evaluate(log, tt.Constant(0.5))
    assert "left_in_levels" not in found.diagnostics.names
