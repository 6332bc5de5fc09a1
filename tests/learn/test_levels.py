"""Where logged doses are levels, a rule gives levels that can be graded, and says so."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest

import titrant as tt
from titrant.cli.results import learned_result
from titrant.learn.classes import LinearClass
from titrant.learn.limits import Limits
from titrant.learn.limits.levels import ENOUGH, OFTEN, LevelSteps, enough_got
from titrant.learn.setting import TrainingLog
from titrant.outcome import Stack, ridge_pair
from titrant.policies.clipped import Steps

PRICES = np.array([4.99, 5.99, 6.99, 7.99, 8.99, 9.99, 11.99, 13.99, 15.99])


def nine_prices(n=600, seed=0):
    """A log of list prices whose best one goes with another context than the logged one."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    price = PRICES[np.clip(np.round(4 + x[:, 0] + 1.8 * rng.normal(size=n)), 0, 8).astype(int)]
    loss = (price - 9.0 - 1.5 * x[:, 1]) ** 2 / 4.0 + 0.5 * rng.normal(size=n)
    return tt.LoggedData(x, price, loss, names=("age", "visits"))


@cache
def learned(**given):
    """A line learned and graded by plain models."""
    learner = tt.PolicyLearner(
        policy=tt.Linear(),
        procedure=tt.StackedDR(models=ridge_pair()),
        grade=tt.DoublyRobust(outcome=Stack(ridge_pair())),
        **given,
    )
    return learner.fit(nine_prices())


def test_a_rule_for_list_prices_gives_list_prices_and_is_graded():
    learner = learned()
    doses = learner.predict(nine_prices(seed=1).context)
    assert len(np.unique(doses)) > 1
    assert set(doses) <= set(PRICES)
    for policy in learner.estimate_.policies:
        assert set(policy(nine_prices(seed=1).context)) <= set(PRICES)
    assert learner.estimate_.trusted
    assert "between_levels" not in learner.estimate_.comparison["learned"].diagnostics.names
    assert learner.limits_ is None  # none were given


def test_what_was_chosen_and_what_was_left_out_is_said():
    learner = learned()
    (said,) = learner.notes_
    steps = ", ".join(f"{step:g}" for step in learner.policy_.steps)
    assert said.startswith(f"Logged doses are levels, so the rule gives only these: {steps}. ")
    assert "fewer than 20 rows of each, too few to grade: 4.99, 13.99, 15.99." in said
    assert "too few of those to whom the rule would give them got them: 5.99" in said
    assert learned_result(learner)["learned"]["report"]["notes"] == [said]


def test_steps_that_are_given_stay_as_they_are():
    every = learned(limits=Limits(steps=tuple(PRICES)), honest=False)
    assert every.notes_ == ()
    np.testing.assert_array_equal(every.policy_.steps, PRICES)


def steps_of(log, limits=None):
    return LevelSteps.of(TrainingLog.of(log).survey, limits, LinearClass())


def test_doses_that_vary_freely_have_no_steps():
    log = nine_prices()
    jitter = np.random.default_rng(3).normal(size=len(log))
    assert steps_of(tt.LoggedData(log.context, log.treatment + jitter, log.outcome)) is None
    assert steps_of(log.with_atoms(())) is None
    assert steps_of(log, Limits(steps=1.0)) is None


def test_other_limits_are_kept_and_where_they_leave_no_level_there_are_no_steps():
    within = steps_of(nine_prices(), Limits(at_most=10.5))
    assert within.limits.at_most == 10.5
    assert within.limits.steps == (5.99, 6.99, 7.99, 8.99, 9.99, 11.99)
    assert steps_of(nine_prices(), Limits(at_least=8.2, at_most=8.8)) is None


def test_two_levels_are_steps_however_few_rows_they_have():
    rng = np.random.default_rng(0)
    log = tt.LoggedData(
        rng.normal(size=(60, 1)), np.repeat([0.0, 1.0], [50, 10]), rng.normal(size=60)
    )
    assert steps_of(log).kept == (0.0, 1.0)


@pytest.mark.parametrize("seed", range(20))
def test_no_other_steps_that_enough_rows_got_are_nearer_to_the_rule(seed):
    rng = np.random.default_rng(seed)
    steps = np.sort(rng.choice(np.arange(20.0), size=6, replace=False))
    wanted, logged = rng.normal(10.0, 4.0, 300), rng.choice(steps, 300, p=rng.dirichlet(np.ones(6)))

    def far(some):
        doses = Steps(np.array(some)).nearest(wanted)
        cells = [(doses == step, (doses == step) & (logged == step)) for step in some]
        fine = all(a.mean() <= OFTEN or got.sum() >= ENOUGH for a, got in cells)
        return np.mean((doses - wanted) ** 2) if fine else np.inf

    every = [some for k in range(2, 7) for some in combinations(steps, k)]
    least = min(map(far, every))
    found = enough_got(steps, wanted, logged, 1.0)
    if np.isfinite(least):
        assert far(tuple(found)) == pytest.approx(least, rel=1e-9)
    else:
        assert len(found) == 2
