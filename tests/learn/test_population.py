"""Limits of means hold over all rows of a log with their weights, whatever was learned from."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import titrant as tt
from equivalence.test_sources import Chunks
from learn.test_limits import BUDGET, NEAR, problem
from titrant.errors import DataError
from titrant.execute import Engine
from titrant.learn.halves import half_of
from titrant.learn.limits import Limits
from titrant.learn.limits.declared import nearest_interval
from titrant.learn.limits.population import AT_ONCE, PASSES, Moved, Population, narrowed
from titrant.learn.setting import TrainingLog
from titrant.outcome import ridge_pair
from titrant.policies import Constant, Linear

CLOSE = 1e-12  # sums of a few numbers
NEAREST = (AT_ONCE + 1.0) ** -PASSES  # of an interval
GROUPS = 0.1  # steps of 2.5 in 300 rows

WITHIN = {
    "a budget": Limits(mean_dose=20.0),
    "steps": Limits(mean_dose=20.0, steps=2.5),
    "limits of rows": Limits(
        mean_dose=19.0, steps=2.5, at_most="most", current="now", largest_change=6.0
    ),
}
KINDS = (tt.LinearClass(), tt.AdditiveClass(), tt.TreeClass(), tt.LinearTreeClass())


def weighed(seed, n=300):
    """The problem of limits, a few of whose rows count most, and those with large doses more."""
    log = problem(n, seed)
    noise = np.random.default_rng(seed + 99).normal(size=n)
    return log.with_weights(np.exp(0.6 * log.context[:, 0] + noise))


def learned(log, limits, kind=KINDS[0], *, honest=False, **settings):
    procedure = tt.StackedDR(models=ridge_pair(), **settings)
    learner = tt.PolicyLearner(procedure=procedure, limits=limits, policy=kind, honest=honest)
    return learner.fit(log)


def mean(policy, log):
    """The weighted mean dose of a log's rows, by a loop."""
    doses = policy(dict(zip(log.names, log.context.T, strict=True)))
    weights = np.ones(len(log)) if log.weights is None else log.weights
    total = sum(w * d for w, d in zip(weights, doses, strict=True))
    return total / weights.sum()


# law: the weighted mean of the rule that is deployed keeps the budget.
@pytest.mark.parametrize("name", WITHIN)
@pytest.mark.parametrize("seed", range(4))
def test_a_weighted_log_keeps_its_budget(name, seed):
    log, limits = weighed(seed), WITHIN[name]
    policy = learned(log, limits).policy_
    assert mean(policy, log) <= limits.mean_dose + NEAR
    if name == "a budget":  # it binds, and is used up
        assert mean(policy, log) >= limits.mean_dose * (1.0 - BUDGET)
    given = dict(zip(log.names, log.context.T, strict=True))
    doses = policy(given)
    if limits.at_most is not None:
        assert np.all(doses <= given["most"] + NEAR)
        assert np.all(np.abs(doses - given["now"]) <= 6.0 + NEAR)


@pytest.mark.parametrize(
    "kind",
    [*KINDS[1:3], pytest.param(KINDS[3], marks=pytest.mark.long)],
    ids=lambda kind: kind.name,
)
def test_rules_of_every_kind_keep_it(kind):
    for seed in range(2):
        log = weighed(seed)
        assert mean(learned(log, WITHIN["a budget"], kind).policy_, log) <= 20.0 + NEAR


@pytest.mark.usefixtures("plain_models")
def test_the_rules_of_the_halves_keep_it_over_their_halves():
    log, limits = weighed(3), WITHIN["a budget"]
    found = learned(log, limits, honest=True).estimate_
    for half, policy in enumerate(found.policies):
        assert mean(policy, half_of(log, half, 0)) <= limits.mean_dose + NEAR


# law: a row of weight k is k copies of it.
@pytest.mark.parametrize("steps", [None, 2.5])
def test_weights_keep_the_mean_that_copies_keep(steps):
    log, limits = problem(), Limits(mean_dose=20.0, steps=steps)
    times = np.random.default_rng(1).integers(1, 4, len(log))
    copies = log.rows(np.repeat(np.arange(len(log)), times))
    kept = []
    for one in (log.with_weights(times.astype(float)), copies):
        policy = learned(one, limits).policy_
        # Over the weighted rows and over the copies the mean is the same number.
        assert mean(policy, copies) == pytest.approx(
            mean(policy, log.with_weights(times.astype(float))), rel=CLOSE
        )
        kept.append(mean(policy, copies))
    assert max(kept) <= 20.0 + NEAR
    assert min(kept) >= 20.0 * (1.0 - BUDGET)


@pytest.mark.parametrize("limits", [Limits(), Limits(mean_dose=20.0), Limits(steps=2.5)])
def test_groups_of_a_weighted_log_are_alike(limits):
    limits = replace(limits, equal_across="sex", margin=0.5)
    for seed in range(2):
        log = weighed(seed)
        policy = learned(log, limits).policy_
        sexes = [log.rows(np.flatnonzero(log.context[:, 4] == sex)) for sex in (0.0, 1.0)]
        apart = abs(mean(policy, sexes[0]) - mean(policy, sexes[1]))
        assert apart <= 0.5 + (GROUPS if limits.steps else NEAR)
        if limits.mean_dose is not None:
            assert mean(policy, log) <= 20.0 + NEAR


# law: where fewer rows are learned from than there are, all of them keep to the limits.
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["a budget", "limits of rows", "groups"])
def test_a_sample_learns_and_all_rows_keep_the_limits(name, weighted):
    log = weighed(5, 600) if weighted else problem(600, 5)
    limits = WITHIN.get(name, Limits(mean_dose=20.0, equal_across="sex", margin=0.5))
    for some, settings in ((Chunks(log, 170, sample_rows=150), {}), (log, {"most_rows": 150})):
        learner = learned(some, limits, **settings)
        assert learner.learned_.report["learned_on"] < 200
        assert mean(learner.policy_, log) <= limits.mean_dose + NEAR
        assert mean(learner.policy_, log) >= limits.mean_dose * (1.0 - 10.0 * BUDGET)
        if name == "groups":
            sexes = [log.rows(np.flatnonzero(log.context[:, 4] == sex)) for sex in (0.0, 1.0)]
            apart = abs(mean(learner.policy_, sexes[0]) - mean(learner.policy_, sexes[1]))
            assert apart <= 0.5 + NEAR


# law: also after the last move, by the means of the population, doses stay in the range.
@pytest.mark.parametrize("kind", [*KINDS[2:], tt.PersonalClass()], ids=lambda kind: kind.name)
def test_a_low_budget_of_a_weighted_log_is_kept_within_the_range_of_doses(kind):
    log = weighed(1)
    found = learned(log, Limits(mean_dose=14.0), kind)
    low, high = found.learned_.report["dose_range"]
    doses = found.policy_(dict(zip(log.names, log.context.T, strict=True)))
    assert low - NEAR <= doses.min() <= doses.max() <= high + NEAR
    assert 0.0 <= 14.0 - mean(found.policy_, log) + NEAR <= BUDGET * 14.0


def test_rows_that_are_all_learned_from_once_have_no_last_move():
    procedure, kind = tt.StackedDR(models=ridge_pair()), tt.learn.limits.LimitedClass
    within = kind(tt.LinearClass(), WITHIN["a budget"])
    for log, has in ((problem(), False), (weighed(0), True), (Chunks(problem(), 90), False)):
        training = TrainingLog.of(log).even()
        assert (procedure.arena(training, within).population is not None) is has
    free = kind(tt.LinearClass(), Limits(steps=2.5))
    assert procedure.arena(TrainingLog.of(weighed(0)).even(), free).population is None


# ── The last move itself ────────────────────────────────────────────────────────────────────────


def by_hand(limits, groups=None):
    """Four people, x = 1 … 4, of whom the last counts threefold; doses from 0 to 10."""
    x, sex = np.arange(1.0, 5.0), np.array([0.0, 0.0, 1.0, 1.0])
    weights = np.array([1.0, 1.0, 1.0, 3.0])
    log = tt.LoggedData(
        np.column_stack([x, sex]), x, x, np.ones(4), names=("x", "sex"), weights=weights
    )
    groups = np.empty((0, 0)) if groups is None else np.array(groups)
    return Population(log, Engine(), limits, (0.0, 10.0), groups)


def test_the_least_move_that_keeps_a_budget_by_hand():
    # Doses 1, 2, 3, 4, 4, 4 have a mean of 3. Less 1.2 each they are 0, .8, 1.8, 2.8, 2.8, 2.8 with
    # a mean of 11/6, the first held at 0.
    rule = Linear([1.0], features=["x"])
    assert by_hand(Limits(mean_dose=3.0)).moves(rule).tolist() == [0.0]
    (by,) = by_hand(Limits(mean_dose=11.0 / 6.0)).moves(rule)
    assert by == pytest.approx(-1.2, abs=10.0 * NEAREST + 1e-10)
    # On steps of 2, less .5 they are 0, 2, 2, 4, 4, 4 with a mean of 16/6; as soon as the dose of 4
    # is less than 3, less by 1 each, they are 0, 0, 2, 2, 2, 2 with a mean of 8/6.
    (by,) = by_hand(Limits(mean_dose=2.0, steps=2.0)).moves(rule)
    assert by == pytest.approx(-1.0, abs=1e-9)
    with pytest.raises(DataError, match=r"at most -1: the smallest doses .* have a mean of 0\."):
        by_hand(Limits(mean_dose=-1.0)).moves(rule)


def test_groups_are_moved_toward_each_other_by_hand():
    # Means 1.5 of weight 2 and 3.75 of weight 4. The interval [m, m + 1] with the least sum of
    # weight·distance² of both has 2(m − 1.5) = 4(3.75 − m − 1).
    rule, limits = Linear([1.0], features=["x"]), Limits(equal_across="sex", margin=1.0)
    low = (4.0 * 2.75 + 2.0 * 1.5) / 6.0
    means, size = np.array([1.5, 3.75]), np.array([2.0, 4.0])
    assert nearest_interval(means, size, 1.0) == pytest.approx(low, abs=1e-9)
    population = by_hand(limits, [[0.0], [1.0]])
    assert population.apart(rule) == 2.25
    moves = population.moves(rule)
    np.testing.assert_allclose(moves, [low - 1.5, low + 1.0 - 3.75, 0.0], atol=1e-9)
    assert population.notes(rule) == []


def test_groups_that_were_not_learned_from_are_told():
    rule, limits = Constant(2.0), Limits(equal_across="sex", margin=1.0)
    (said,) = by_hand(limits, [[0.0]]).notes(rule)
    assert said.startswith("66.67% of the log is in groups of `sex` of which no row was learned")


def test_a_pass_adds_up_in_any_cut_and_travels():
    log, moves = weighed(0), np.array([[0.0, 1.0, 2.0], [-3.0, 0.5, 0.0]])
    limits = replace(WITHIN["limits of rows"], equal_across="sex", margin=0.5)
    rule = Linear([2.0], 20.0, features=["age"])
    statistic = Moved(rule, moves, limits, (10.0, 30.0), np.array([[0.0], [1.0]]))
    whole = pickle.loads(pickle.dumps(statistic))(log)  # noqa: S301
    parts = [statistic(part) for part in log.batches(70)]
    for name in ("total", "weight", "smallest", "low", "high"):
        added = parts[0]
        for part in parts[1:]:
            added = added + part
        np.testing.assert_allclose(getattr(added, name), getattr(whole, name), rtol=CLOSE)
    raw = 20.0 + 2.0 * log.context[:, 0]
    male = log.context[:, 4] == 1.0
    kept = limits.kept(Linear([1.0], features=["age"]))
    moved = np.where(male, raw + 0.5, raw - 3.0)
    table = dict(zip(log.names, log.context.T, strict=True)) | {"age": np.clip(moved, 10.0, 30.0)}
    assert whole.mean[1] == pytest.approx(np.average(kept(table), weights=log.weights), rel=CLOSE)


def test_intervals_are_narrowed_to_where_moves_come_to_be_above():
    at = np.array([0.123, 7.0, -5.0])
    low, high = narrowed(lambda tried: tried > at, np.full(3, -5.0), np.full(3, 7.5))
    assert np.all(low <= at)
    assert np.all(high >= at)
    assert np.all(high - low <= 12.5 * NEAREST * (1.0 + 1e-3))
