"""Trees with lines in their leaves: found on curves whose best lines are known, and learned."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import titrant as tt
from learn.examples import FAST
from titrant.learn.classes.base import DoseCurves
from titrant.learn.classes.linear_tree import LinearTreeClass, LineProblem

GRID = np.linspace(0.0, 40.0, 41)
ROUNDING = 1e-9
# Even ages have variance .6 in units of their quartiles: a ridge of .05 leaves .6/.65 of a slope.
SHRUNK = 0.6 / 0.65
SAMPLED = 0.03  # quartiles of 120 rows are not those of all ages


def sites(n: int = 240, seed: int = 0, noise: float = 0.0):
    """Contexts and curves: at site B the best dose is 12 + .3·age, at A 30 − .3·age."""
    rng = np.random.default_rng(seed)
    age, other, site = rng.uniform(20, 60, n), rng.normal(size=n), rng.integers(2, size=n)
    best = np.where(site == 1, 12.0 + 0.3 * age, 30.0 - 0.3 * age)
    D = (GRID - best[:, None]) ** 2 + noise * rng.normal(size=(n, 1)) * (GRID - 20.0)
    log = tt.LoggedData(
        np.column_stack([age, other, site]),
        rng.uniform(0, 40, n),
        np.zeros(n),
        names=("age", "other", "site=B"),
    )
    return log, DoseCurves(GRID, D, D), best


def test_the_site_is_asked_and_each_has_its_line():
    log, curves, best = sites()
    rule = LinearTreeClass().found(log, curves)[0]
    assert isinstance(rule, tt.LinearTree)
    assert rule.columns == (2,)
    assert 0.0 <= rule.cuts[0] < 1.0
    np.testing.assert_allclose(rule.slopes[:, 0], [-0.3 * SHRUNK, 0.3 * SHRUNK], rtol=SAMPLED)
    np.testing.assert_allclose(rule.slopes[:, 1], 0.0, atol=0.05)
    assert np.abs(rule(log.context) - best).max() < 1.0
    # A tree of two constant doses is left with the spread within sites, 3.5.
    constant = tt.TreeClass(depth=1).found(log, curves)[0]
    assert np.abs(constant(log.context) - best).mean() > 2.0


def test_a_context_that_does_nothing_has_no_slope():
    # One dose is best for all, but each row says another one. Of 20 groups, each with two
    # contexts that may pass for two standard errors, few have a slope: about two, by chance.
    taken = 0
    for seed in range(20):
        log, _, _ = sites(seed=seed)
        says = 20.0 + 8.0 * np.random.default_rng(seed).normal(size=(len(log), 1))
        D = (GRID - says) ** 2
        problem = LineProblem.of(log.context, log.treatment, DoseCurves(GRID, D, D))
        taken += np.count_nonzero(problem.line(log.context[:, 2] == 1).slopes)
    assert taken <= 6


def test_more_leaves_cost_no_more_and_hold_enough_rows():
    log, curves, _ = sites(400, noise=30.0)
    problem = LineProblem.of(log.context, log.treatment, curves)
    costs = []
    for rule in LinearTreeClass().found(log, curves):
        assert np.bincount(rule.leaves(log.context)).min() >= 16
        assert max(len(answers) for answers, _ in rule.paths()) <= 3
        costs.append(problem.at(problem.robust, rule(log.context)).sum())
    assert all(b <= a + ROUNDING * abs(a) for a, b in pairwise(costs))


def test_a_line_costs_no_more_than_the_best_constant():
    log, curves, _ = sites(noise=30.0)
    problem = LineProblem.of(log.context, log.treatment, curves)
    rows = log.context[:, 2] == 1
    line = problem.line(rows)
    # At doses of the grid, the constant is the least of 41 sums.
    assert line.cost <= problem.robust[rows].sum(axis=0).min() + ROUNDING


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), absurd=st.booleans())
def test_doses_stay_within_those_given_in_the_leaf(seed, absurd):
    # Law: whoever comes, with whatever contexts, is dosed as someone of the leaf was.
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(120, 2)), rng.integers(3, size=120)])
    if absurd:
        X[7, 0] = 1e10
    log = tt.LoggedData(X, rng.uniform(5, 30, 120), np.zeros(120))
    D = rng.normal(size=(120, len(GRID))).cumsum(axis=1)
    for rule in LinearTreeClass().found(log, DoseCurves(GRID, D, D)):
        leaf = rule.leaves(X)
        new = np.random.default_rng(seed + 1).normal(size=(200, 3)) * 10.0 ** rng.integers(0, 9)
        asked = rule.leaves(new)
        for number in range(len(rule.doses)):
            given_ = log.treatment[leaf == number]
            doses = rule(new)[asked == number]
            assert np.all((doses >= given_.min()) & (doses <= given_.max()))


def test_one_absurd_cell_moves_a_line_little():
    log, curves, _ = sites()
    X = log.context.copy()
    X[7, 0] = 1e10
    other = tt.LoggedData(X, log.treatment, log.outcome, names=log.names)
    mine, yours = (LinearTreeClass(depth=1).found(one, curves)[0] for one in (log, other))
    kept = np.arange(len(log)) != 7
    assert np.abs(mine(log.context) - yours(log.context))[kept].max() < 0.5


def test_nothing_to_cut_is_a_constant():
    log = tt.LoggedData(np.zeros((40, 2)), np.arange(40.0), np.zeros(40))
    D = np.tile((GRID - 12.0) ** 2, (40, 1))
    found = LinearTreeClass().found(log, DoseCurves(GRID, D, D))
    assert set(map(repr, found)) == {repr(tt.Constant(12.0))}


def test_what_is_refused():
    with pytest.raises(tt.InvalidArgument, match="`depth` of `LinearTreeClass`"):
        LinearTreeClass(depth=4)
    with pytest.raises(tt.InvalidArgument, match="`leaves` of `LinearTreeClass`"):
        LinearTreeClass(leaves=1)
    log, curves, _ = sites()
    two = DoseCurves(np.zeros((41, 2)), curves.model, curves.robust)
    with pytest.raises(tt.InvalidArgument, match="learned for one dose; this log has 2"):
        LinearTreeClass().found(log, two)


def test_a_template_stands_for_the_class():
    template = tt.LinearTree(
        *([0], [1.0], [-1], [-2], [1.0, 2.0]),
        slopes=[[0.0, 0.0], [0.0, 0.0]],
        lower=[0, 0],
        upper=[9, 9],
        features=["age", "site=B"],
    )
    kind = tt.learn.classes.class_of(template)
    assert kind == LinearTreeClass(features=("age", "site=B"))
    assert kind.name == "linear tree"


def test_it_is_not_among_the_classes_that_compete_by_default():
    log, _, _ = sites()
    assert not any(isinstance(k, LinearTreeClass) for k in tt.Automatic().competing(log))


def test_lines_that_differ_by_site_are_learned_from_a_log():
    rng = np.random.default_rng(3)
    n = 600
    age, site = rng.uniform(20, 80, n), rng.integers(2, size=n)
    best = 20.0 + np.where(site == 1, 0.25, -0.25) * (age - 50.0)
    t = 20.0 + 6.0 * rng.normal(size=n)
    y = (t - best) ** 2 / 20.0 + rng.normal(size=n)
    log = tt.LoggedData(np.column_stack([age, site]), t, y, names=("age", "site=B"))

    def lost(kind):
        learner = tt.PolicyLearner(policy=kind, procedure=FAST, honest=False).fit(log)
        return np.mean((learner.policy_(log.context) - best) ** 2) / 20.0

    # A line for all loses the spread of the best dose, 18.75/20, and four constant doses a fourth.
    assert lost(LinearTreeClass()) < 0.12
    assert lost(tt.TreeClass(depth=2)) > 0.15
