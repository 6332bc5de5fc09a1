"""The paper's learner: laws of units, constraints, penalties and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import titrant as tt
from learn.examples import QUADRATIC, SEARCHED, changed, linear_part, quadratic_log, unclipped
from learn.kinds import AFFINE
from titrant.data.simulate import DESIGNS
from titrant.estimators import SmoothedEstimator
from titrant.learn import LinearClass
from titrant.learn.setting import TrainingLog, silent
from titrant.optimize import CONSTRAINTS, Ball, Box, Free, PolicyObjective, mean_box

SHIFT = 1e-6  # what is left of 20 added to every outcome after rounding has gone through a search
OBJECTIVE = 1e-11  # the same before any search
UNITS = 1e-9  # the same numbers but for their exponents; means and logarithms round
EXACT = 1e-9  # constraints

LOG = quadratic_log(200)
LINEAR, RAW = LinearClass(), LinearClass(intercept=False, standardize=False)
# Plain weighting moves with the zero of the outcome; its test is below.
STEADY = {kind: estimator for kind, estimator in SEARCHED.items() if estimator != tt.IPW()}
each_estimator = pytest.mark.parametrize("name", STEADY)
each_class = pytest.mark.parametrize("kind", AFFINE, ids=repr)


def learned(log, policy=None, **settings):
    return tt.PolicyLearner(policy=policy, procedure=tt.CPO(**settings), honest=False).fit(log)


@each_estimator
@pytest.mark.parametrize("shift", [20.0, -20.0])
def test_the_zero_of_the_outcome_changes_nothing(name, shift):
    # Law: y + c has the same policy for every objective but plain IPW. The slope of the biweight
    # kernel has no kinks, at which rounding would decide where a search ends.
    estimator = STEADY[name]
    if isinstance(estimator, SmoothedEstimator):
        estimator = replace(estimator, kernel=tt.Biweight())
    settings = {"estimator": estimator, "bandwidth": 0.6, "restarts": 6}
    ours, theirs = learned(LOG, **settings), learned(changed(LOG, shift=shift), **settings)
    np.testing.assert_allclose(
        linear_part(theirs.policy_), linear_part(ours.policy_), atol=SHIFT, rtol=SHIFT
    )


@each_estimator
@pytest.mark.parametrize("shift", [20.0, -20.0])
def test_the_zero_of_the_outcome_moves_the_objective_as_a_whole(name, shift):
    # An estimator of a user's own is shown outcomes as they were logged; others count from a mean.
    points = np.random.default_rng(5).normal(size=(20, 3))
    found = []
    for log in (LOG, changed(LOG, shift=shift)):
        training, procedure = TrainingLog.of(log), tt.CPO(estimator=STEADY[name], bandwidth=0.6)
        search = procedure._search(training, LINEAR.fitted(training.survey), LINEAR)
        sums = search.over(training.log, training.engine)
        objective = PolicyObjective(statistics=sums, estimator=STEADY[name])
        values = objective(points)[0]
        found.append(values - values[0])
    np.testing.assert_allclose(found[1], found[0], rtol=OBJECTIVE, atol=OBJECTIVE)


def test_plain_ipw_follows_the_zero_of_the_outcome():
    # With losses far above zero the policy flees to where the log has few rows: the reason to
    # center or to normalize.
    settings = {"bandwidth": 0.8, "restarts": 6, "ridge": 0.01}
    above = changed(LOG, shift=20.0)
    plain = learned(above, estimator=tt.IPW(), **settings).policy_
    centered = learned(above, estimator=tt.IPW(centered=True), **settings).policy_
    assert QUADRATIC.value(plain) > 3.0
    assert QUADRATIC.value(centered) < 1.7


@each_estimator
@pytest.mark.parametrize(
    "penalties", [{}, {"ridge": 0.01, "se_weight": 1.0}], ids=["", "penalized"]
)
def test_units_change_nothing_but_units(name, penalties):
    # Law: doses times 1,024 and outcomes divided by 64 give 1,024 times the doses. Powers of two,
    # so that no rounding leads the search astray.
    settings = {"estimator": STEADY[name], "restarts": 6, **penalties}
    ours = learned(LOG, bandwidth=0.5, **settings)
    theirs = learned(changed(LOG, dose=1024, outcome=1 / 64), bandwidth=512.0, **settings)
    np.testing.assert_allclose(
        linear_part(theirs.policy_) / 1024, linear_part(ours.policy_), atol=UNITS, rtol=UNITS
    )
    assert theirs.solution_.value == pytest.approx(ours.solution_.value, rel=UNITS)


@each_estimator
def test_the_same_seed_gives_the_same_bits(name):
    settings = {"estimator": STEADY[name], "restarts": 6, "seed": 4}
    ours, theirs = learned(LOG, **settings), learned(LOG, **settings)
    assert ours.policy_ == theirs.policy_
    np.testing.assert_array_equal(ours.solution_.ends, theirs.solution_.ends)
    other = learned(LOG, **(settings | {"seed": 5}))
    assert not np.array_equal(ours.solution_.starts, other.solution_.starts)


@each_class
@pytest.mark.parametrize("name", ["SelfNormalized()", "DirectMethod()"])
def test_boxes_and_balls_hold(kind, name):
    size = kind.on(LOG).penalized.size
    counted = np.arange(size) > 0
    tight = np.where(counted, 0.1, np.inf)
    for constraint in (Box(-tight, tight), Ball(0.25, counted), Ball(0.4)):
        found = learned(LOG, kind, estimator=STEADY[name], constraint=constraint, restarts=4)
        beta = found.solution_.params * found.learned_.report["dose_unit"][0]
        assert np.abs(constraint.project(beta[None])[0] - beta).max() <= EXACT
        fitted = kind.on(LOG)
        np.testing.assert_allclose(
            unclipped(found.policy_)(LOG.context), fitted.features(LOG.context) @ beta, atol=1e-7
        )


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)
@pytest.mark.parametrize("name", ["SelfNormalized()", "DirectMethod()"])
def test_constraints_hold(constraint, name):
    # The intercept and two coefficients; the intercept alone moves every set off its middle.
    found = learned(LOG, estimator=STEADY[name], constraint=constraint, restarts=4, clipped=False)
    beta = found.solution_.params * found.learned_.report["dose_unit"][0]
    assert np.abs(constraint.project(beta[None])[0] - beta).max() <= EXACT


def test_the_papers_bounds():
    # 0 ≤ β ≤ mean dose/mean x on raw columns without an intercept.
    log = DESIGNS["dosing"].draw(300, 1)
    box = mean_box(log.context, log.treatment)
    found = learned(log, RAW, constraint=box, clipped=False)
    coef = found.policy_.policy.coef
    assert found.policy_.policy.intercept == 0
    assert (coef >= -EXACT).all()
    assert (coef <= log.treatment.mean() / log.context.mean(axis=0) + EXACT).all()


def test_a_wrong_number_of_bounds_is_refused():
    with pytest.raises(tt.InvalidArgument, match="as long as the 3 parameters"):
        learned(LOG, constraint=Box(np.zeros(2), np.ones(2)))


def test_doses_stay_in_the_logged_range_unless_told_otherwise():
    low, high = np.quantile(LOG.treatment, [0.005, 0.995])
    far = np.random.default_rng(0).normal(size=(500, 2)) * 50
    doses = learned(LOG).policy_(far)
    assert doses.min() == pytest.approx(low)
    assert doses.max() == pytest.approx(high)
    free = learned(LOG, clipped=False).policy_
    assert isinstance(free, tt.Linear)
    assert np.ptp(free(far)) > 2 * (high - low)


def test_bounds_and_clipped_templates_hold_also_without_clipping():
    template = tt.Clipped(tt.Linear(), -0.1, 0.4)
    found = learned(LOG.with_bounds((-9, 9)), template, clipped=False).policy_
    assert (found.lower, found.upper) == (-0.1, 0.4)
    bounded = learned(LOG.with_bounds((-9, 9)), clipped=False).policy_
    assert (bounded.lower, bounded.upper) == (-9, 9)


def test_a_ridge_shrinks_and_a_penalty_on_the_se_seeks_safer_ground():
    free = learned(LOG, bandwidth=0.3)
    ridged = learned(LOG, bandwidth=0.3, ridge=1.0)
    assert np.linalg.norm(ridged.policy_.policy.coef) < 0.5 * np.linalg.norm(
        free.policy_.policy.coef
    )
    careful = learned(LOG, bandwidth=0.3, se_weight=5.0)
    ses = [
        tt.evaluate(
            LOG, f.policy_, estimator=tt.SelfNormalized(), bandwidth=0.3, allow_untrusted=True
        ).se
        for f in (free, careful)
    ]
    assert ses[1] < ses[0]


def test_an_ess_floor_keeps_the_policy_on_the_data():
    # Self-normalized and unclipped, the best policy is one lucky row far out; the floor forbids it.
    settings = {"bandwidth": 0.1, "clipped": False}
    sizes = [
        tt.evaluate(
            LOG,
            learned(LOG, ess_floor=floor, **settings).policy_,
            estimator=tt.SelfNormalized(),
            bandwidth=0.1,
            allow_untrusted=True,
        ).ess
        for floor in (0.0, 25.0)
    ]
    assert sizes[0] < 12
    assert sizes[1] > 18  # a penalty, not a wall


@each_class
def test_every_class_learns(kind):
    # The mean dose is worth 1.66 here, a constant at best 1.604, the best policy 1.5.
    # By weighting alone the nine parameters of curves need more rows than 200.
    log = quadratic_log(400, 7) if len(kind.on(LOG).penalized) > 8 else LOG
    found = learned(log, kind, estimator=tt.IPW(centered=True), bandwidth=0.9, ridge=0.03)
    assert QUADRATIC.value(found.policy_) < 1.66


@each_class
def test_a_search_that_begins_where_another_ended_does_not_end_worse(kind):
    settings = {"bandwidth": 0.6, "restarts": 1, "clipped": False}
    first = learned(LOG, kind, **settings)
    again = learned(LOG, kind, start=first.policy_, **settings)
    # Through least squares the same parameters come back, up to rounding.
    assert again.solution_.value <= first.solution_.value + 1e-9


def test_the_search_goes_on_from_a_start():
    # The best policy is x0 − x1/2; one start at the mean dose and one at the best find its value.
    best = tt.Linear([1.0, -0.5])
    found = learned(LOG, bandwidth=0.6, restarts=1, start=best)
    assert QUADRATIC.value(found.policy_) < 1.6
    assert found.learned_.report["start"] == repr(best)


def test_the_report_repeats_the_settings():
    procedure = tt.CPO(bandwidth=0.5, ridge=0.1, seed=3, constraint=Free())
    report = procedure.learn(TrainingLog.of(LOG), LINEAR, silent).report
    assert report["procedure"] == "continuous policy optimizer"
    assert (report["bandwidth"], report["ridge"], report["seed"]) == (0.5, 0.1, 3)
    assert report["outcome_center"] == pytest.approx(LOG.outcome.mean())


def test_the_default_bandwidth():
    found = learned(LOG).learned_.report
    assert found["bandwidth"] == pytest.approx(found["dose_unit"][0] * 200**-0.2)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"estimator": tt.Discretized()}, "The `estimator` of `CPO` must be IPW"),
        ({"bandwidth": 0.0}, "The `bandwidth` of `CPO` must be a finite number > 0; got 0.0."),
        ({"bandwidth": [1.0, -1.0]}, "must be a finite number > 0"),
        ({"restarts": 0}, "The `restarts` of `CPO` must be a whole number ≥ 1; got 0."),
        ({"seed": -1}, "The `seed` of `CPO`"),
        ({"ridge": -0.1}, "The `ridge` of `CPO`"),
        ({"estimator": tt.DirectMethod(), "ess_floor": 5.0}, "The `ess_floor` of `CPO`"),
    ],
)
def test_wrong_settings(settings, said):
    with pytest.raises(tt.InvalidArgument, match=said):
        tt.CPO(**settings)


def test_as_many_bandwidths_as_doses():
    with pytest.raises(tt.InvalidArgument, match="one number or 1; got"):
        learned(LOG, bandwidth=[0.5, 0.5])


def test_a_propensity_of_0_needs_a_floor():
    third = np.sort(LOG.context[:, 0])[2]
    unlikely = tt.Known(lambda X, t: np.where(X[:, 0] <= third, 0.0, 0.3) + 0 * t)
    training = TrainingLog.of(LOG, propensity=unlikely)
    procedure = tt.CPO(estimator=tt.SelfNormalized(clip=0.0))
    with pytest.raises(tt.DataError, match="The propensity is 0 in 3 of 200 rows"):
        procedure.learn(training, LINEAR, silent)
    floored = tt.CPO().learn(training, LINEAR, silent)
    assert np.isfinite(floored.solution.value)
