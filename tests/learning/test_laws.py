"""What must not matter to a learner: zero and unit of the outcome, unit of the dose, direction."""

from __future__ import annotations

import numpy as np
import pytest

import titrant as tt
from learn.examples import FAST, GRADE, QUADRATIC, changed, linear_part, quadratic_log
from titrant.data.simulate import DESIGNS
from titrant.learn.classes import LinearClass, RBFClass
from titrant.optimize import Ball, Box
from titrant.outcome import ridge_pair

SHIFT = 1e-6  # what is left of 20 added to every outcome after rounding has gone through a search
EXACT = 1e-9  # constraints; units that are powers of two

LOG = quadratic_log(200)
LINE = LinearClass()  # the laws are about its coefficients; those of a choice are in learn/
PROCEDURES = {"quadratic": FAST, "ridge pair": tt.StackedDR(models=ridge_pair())}
each_procedure = pytest.mark.parametrize("procedure", PROCEDURES.values(), ids=PROCEDURES)


def learned(log, procedure=FAST, policy=LINE, **settings):
    return tt.PolicyLearner(policy=policy, procedure=procedure, honest=False, **settings).fit(log)


@each_procedure
@pytest.mark.parametrize("shift", [20.0, -20.0, 1e4])
def test_the_zero_of_the_outcome_changes_nothing(procedure, shift):
    ours, theirs = learned(LOG, procedure), learned(changed(LOG, shift=shift), procedure)
    np.testing.assert_allclose(
        linear_part(theirs.policy_), linear_part(ours.policy_), atol=SHIFT, rtol=SHIFT
    )
    # Only differences of held-out scores are told: they and the weights do not move.
    mine, yours = (found.learned_.report["candidates"]["scores"] for found in (ours, theirs))
    for name, score in mine.items():
        moved = yours[name]
        assert moved["behind_the_chosen"] == pytest.approx(score["behind_the_chosen"], abs=1e-5)
        assert moved["weight"] == pytest.approx(score["weight"], abs=1e-5)


def test_the_zero_of_the_outcome_changes_nothing_for_the_whole_library():
    log = DESIGNS["synthetic"].draw(120, 4)
    ours, theirs = learned(log, None), learned(changed(log, shift=20.0), None)
    np.testing.assert_allclose(
        linear_part(theirs.policy_), linear_part(ours.policy_), atol=SHIFT, rtol=SHIFT
    )


@each_procedure
def test_units_change_nothing_but_units(procedure):
    # Law: doses times 1,024 and outcomes times 64 give 1,024 times the doses.
    ours = learned(LOG, procedure)
    theirs = learned(changed(LOG, dose=1024, outcome=64), procedure)
    np.testing.assert_allclose(
        linear_part(theirs.policy_) / 1024, linear_part(ours.policy_), rtol=EXACT
    )
    assert theirs.policy_.upper == pytest.approx(1024 * ours.policy_.upper)


def test_units_of_a_context_change_nothing():
    # Law: a context in other units and from another zero has the coefficient in its units.
    other = tt.LoggedData(
        LOG.context * [1.0, 0.01] + [0.0, 5.0], LOG.treatment, LOG.outcome, LOG.propensity
    )
    ours, theirs = learned(LOG).policy_, learned(other).policy_
    np.testing.assert_allclose(theirs(other.context), ours(LOG.context), atol=1e-5)
    np.testing.assert_allclose(theirs.policy.coef * [1, 0.01], ours.policy.coef, atol=1e-4)


@pytest.mark.parametrize("procedure", [FAST, tt.CPO(restarts=4)], ids=["stacked", "cpo"])
def test_maximizing_is_minimizing_the_negative(procedure):
    # Law: exactly the same policy, also graded: the same numbers with the other sign.
    settings = {"procedure": procedure, "grade": GRADE}
    losses = tt.PolicyLearner(**settings).fit(LOG)
    rewards = tt.PolicyLearner(**settings, maximize=True).fit(changed(LOG, outcome=-1))
    assert rewards.policy_ == losses.policy_
    assert rewards.estimate_.value == pytest.approx(-losses.estimate_.value, rel=1e-9)
    ours, theirs = losses.estimate_, rewards.estimate_
    assert theirs.gain()[0] == pytest.approx(ours.gain()[0], rel=1e-9)
    assert theirs.gain()[1] == pytest.approx(ours.gain()[1], rel=1e-9)
    assert theirs.improves() is ours.improves()


@pytest.mark.parametrize(
    "constraint",
    [
        Box([-np.inf, -0.1, -0.1], [np.inf, 0.1, 0.1]),
        Ball(0.2, counted=[False, True, True]),
        Ball(0.2),
    ],
    ids=["box", "ball", "ball with the intercept"],
)
def test_constraints_hold(constraint):
    # They also hold for the average of candidates: the sets are convex.
    policy_class = LinearClass(standardize=False)
    procedure = tt.StackedDR(models=FAST.models, folds=3, constraint=constraint)
    beta = linear_part(learned(LOG, procedure, policy=policy_class).policy_)
    assert np.abs(constraint.project(beta[None])[0] - beta).max() <= EXACT
    free = linear_part(learned(LOG, FAST, policy=policy_class).policy_)
    assert np.abs(constraint.project(free[None])[0] - free).max() > 0.05


def test_clipped_templates_and_bounds_hold():
    log = LOG.with_bounds((-9.0, 9.0))
    policy = learned(log, policy=tt.Clipped(tt.Linear(), 0.1, 0.6)).policy_
    far = np.random.default_rng(0).normal(size=(1000, 2)) * 30
    assert (policy(far).min(), policy(far).max()) == (0.1, 0.6)


@pytest.mark.parametrize(
    "procedure",
    [
        FAST,
        tt.CPO(estimator=tt.IPW(centered=True), bandwidth=0.8, ridge=0.003, clipped=False),
        tt.CPO(estimator=GRADE, bandwidth=0.8, ridge=0.003, clipped=False, ess_floor=60.0),
    ],
    ids=["stacked", "centered", "doubly robust"],
)
def test_a_policy_off_the_data_is_never_preferred(procedure):
    # Losses are near 1,000, so a row that carries no weight looks free to a naive estimate.
    log = changed(quadratic_log(300, 2), shift=1000.0)
    policy = learned(log, procedure).policy_
    doses = policy(log.context)
    density = QUADRATIC.density(log.context, doses)
    assert np.mean(density < 0.05 * density.max()) < 0.05
    assert QUADRATIC.value(policy) < 1.8  # the logged doses are worth 1.9, the best 1.5


def test_a_self_normalized_policy_keeps_as_many_rows_as_it_is_told():
    log = changed(quadratic_log(300, 2), shift=1000.0)
    procedure = tt.CPO(bandwidth=0.8, ridge=0.003, clipped=False, ess_floor=150.0)
    found = tt.evaluate(
        log, learned(log, procedure).policy_, estimator=tt.SelfNormalized(), bandwidth=0.8
    )
    assert found.ess > 130  # a penalty, not a wall


@pytest.mark.parametrize("policy", [None, tt.Constant(0.0), RBFClass(centers=8)], ids=str)
def test_the_known_optimum_is_recovered(policy):
    best = {tt.Constant: 1.604}.get(type(policy), 1.5)
    found = learned(quadratic_log(600, 3), policy=policy).policy_
    assert best - 1e-3 <= QUADRATIC.value(found) < best + 0.02


def test_a_kinked_optimum_is_recovered_by_the_whole_library():
    # The paper's design, whose best policy is t = x; the mean dose is worth .3.
    design = DESIGNS["synthetic"]
    assert design.value(learned(design.draw(300, 1), None).policy_) < 0.02
