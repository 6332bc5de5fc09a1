"""Several doses at once: the sums of the compiled loop, gradients, and what is learned."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import titrant as tt
from learn.examples import SEARCHED, changed, quadratic_log
from learn.kinds import AFFINE
from titrant.compiled import FEWEST, Loop
from titrant.data.simulate import DESIGNS
from titrant.estimators.form import has_search_loop
from titrant.evaluation.models.fitting import fitted_outcome
from titrant.evaluation.models.nuisance import Nuisances
from titrant.learn import LinearClass
from titrant.learn.search import PolicySearch
from titrant.learn.setting import dose_range, dose_sd
from titrant.optimize import AffineSearch, Ball, Box, PolicyObjective, Second, TermSearch
from titrant.optimize.sums import FeaturePolicy
from titrant.outcome import RidgeModel, SecondOrder

ROUNDING = 1e-9
DIFFERENCES = 1e-5  # central differences with step 1e-5 of smooth functions
UNITS = 1e-4  # a search that stops at 2e-9 of the objective is this near in its parameters

PLANE = DESIGNS["quadratic-2d"]
MODEL = RidgeModel(SecondOrder())
LINEAR, RAW = LinearClass(), LinearClass(intercept=False, standardize=False)
# Weights of one's own are summed up in numpy, dose by dose.
LOOPS = [kind for kind, estimator in SEARCHED.items() if has_search_loop(estimator)]
each_estimator = pytest.mark.parametrize("name", SEARCHED)


def search_on(log, name, kind=LINEAR):
    """The search of an estimator over a class on a log."""
    estimator, sd = SEARCHED[name], dose_sd(log)
    low, high = dose_range(log, (-np.inf, np.inf), tails=True)
    return PolicySearch(
        fitted=kind.on(log),
        estimator=estimator,
        second=Second.ALL,
        unit=sd,
        h=1.2 * sd,
        low=low,
        high=high,
        ends=np.stack([low, high]),
        model=fitted_outcome(log, estimator),
        nuisances=Nuisances.of(log, tt.SelfNormalized(clip=0.0), None),
    )


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("bounds", [None, (-2.0, 3.0)], ids=["unbounded", "bounded"])
def test_one_dose_has_the_sums_of_the_compiled_loop(name, bounds, monkeypatch):
    log = quadratic_log(90).with_bounds(bounds)
    search = search_on(log, name)
    compiled = search.on(log)
    assert isinstance(compiled, AffineSearch)
    monkeypatch.setitem(FEWEST, Loop.SEARCH, sys.maxsize)
    plain = search.on(log)
    assert isinstance(plain, TermSearch)
    points = np.random.default_rng(2).normal(size=(4, 3)) * 0.3
    ours, theirs = plain(points), compiled(points)
    # A table interpolates the model: exactly, since this one is quadratic in the dose.
    np.testing.assert_allclose(ours.mean, theirs.mean, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(ours.dz, theirs.dz, rtol=1e-6, atol=1e-6 * len(log))


@each_estimator
@pytest.mark.parametrize("kind", AFFINE, ids=repr)
def test_gradients_of_vector_objectives(name, kind):
    log = PLANE.draw(80, 1)
    search = search_on(log, name, kind)
    objective = PolicyObjective(
        statistics=search.on(log),
        estimator=SEARCHED[name],
        se_weight=0.7 if SEARCHED[name].uses_propensity else 0.0,
        ridge=0.1,
    )
    rng = np.random.default_rng(4)
    point = rng.normal(size=(1, len(search.units))) * 0.2
    value, gradient = objective(point)
    assert np.isfinite(value).all()
    steps = 1e-5 * np.eye(point.size)
    numerical = [(objective(point + s)[0] - objective(point - s)[0])[0] / 2e-5 for s in steps]
    np.testing.assert_allclose(gradient[0], numerical, rtol=DIFFERENCES, atol=DIFFERENCES)


def test_an_affine_policy_of_features():
    phi = np.arange(6.0).reshape(3, 2)
    policy = FeaturePolicy(np.array([[1.0, 0.0], [2.0, 1.0]]), np.array([1.0, 10.0]))
    np.testing.assert_array_equal(policy(phi), [[2, 10], [8, 30], [14, 50]])
    again = policy.with_params(policy.params)
    np.testing.assert_array_equal(again.matrix, policy.matrix)


def learned(log, **settings):
    settings = {"estimator": tt.IPW(centered=True), "restarts": 3, "ridge": 0.01} | settings
    learner = tt.PolicyLearner(procedure=tt.CPO(**settings), honest=False)
    return learner.fit(log).policy_


def test_two_doses_are_learned_together():
    # The best policy is b(x) and b(x) + ½, worth 1.5; the logged doses are worth 2.30.
    policy = learned(PLANE.draw(800, 1), bandwidth=0.8)
    assert isinstance(policy, tt.Clipped)
    assert policy.policy.coef.shape == (2, 2)
    assert policy.features == ("x0", "x1")
    assert PLANE.value(policy) < 1.75


def test_each_dose_may_have_its_own_units():
    # Law: the second dose in milligrams instead of grams gives the same policy, in milligrams.
    log = PLANE.draw(150, 2)
    units = np.array([1.0, 1000.0])
    other = tt.LoggedData(
        log.context, log.treatment * units, log.outcome, log.propensity / 1000, names=log.names
    )
    ours, theirs = learned(log, bandwidth=[0.6, 0.6]), learned(other, bandwidth=[0.6, 600.0])
    np.testing.assert_allclose(
        theirs(log.context) / units, ours(log.context), atol=UNITS, rtol=UNITS
    )


def test_shifting_the_outcome_changes_no_vector_policy():
    log = PLANE.draw(150, 2)
    for estimator in (tt.SelfNormalized(), tt.IPW(centered=True)):
        ours = learned(log, estimator=estimator)
        theirs = learned(changed(log, shift=20.0), estimator=estimator)
        np.testing.assert_allclose(theirs.params, ours.params, atol=1e-6)


def test_constraints_hold_for_matrices_of_parameters():
    log = PLANE.draw(150, 2)
    fitted = RAW.on(log)
    for constraint in (Box(np.full(4, -0.2), np.full(4, 0.3)), Ball(0.4)):
        learner = tt.PolicyLearner(
            policy=RAW,
            procedure=tt.CPO(constraint=constraint, restarts=2),
            honest=False,
        ).fit(log)
        beta = learner.policy_.policy.coef.ravel()
        np.testing.assert_allclose(constraint.project(beta[None])[0], beta, atol=1e-9)
    assert fitted.penalized.sum() == 2


def test_any_kernel_goes_through_numpy_and_learns_about_the_same():
    log = quadratic_log(400)
    compact = learned(log, bandwidth=0.8)
    smooth = learned(log, bandwidth=0.4, estimator=tt.IPW(centered=True, kernel=tt.Gaussian()))
    assert np.abs(compact(log.context) - smooth(log.context)).mean() < 0.25


@pytest.mark.long
def test_vector_doses_have_a_default():
    log = PLANE.draw(200, 3)
    learner = tt.PolicyLearner(grade=tt.SelfNormalized()).fit(log)
    assert learner.learned_.report["procedure"] == "doubly robust, several doses"
    assert learner.choice_.chosen == "linear"
    assert PLANE.value(learner.policy_) < 1.75
    assert learner.estimate_.names == ["status quo", "mean dose"]


def test_stacked_dr_points_to_what_can_do_it():
    with pytest.raises(tt.InvalidArgument, match=r"learns one dose; the log has 2\. Use"):
        tt.PolicyLearner(procedure=tt.StackedDR(), honest=False).fit(PLANE.draw(100, 1))


def test_a_regressor_serves_as_a_model_of_two_doses():
    regressor = make_pipeline(PolynomialFeatures(2), LinearRegression())
    estimator = tt.DoublyRobust(outcome=regressor, self_normalized=False)
    policy = learned(PLANE.draw(200, 1), estimator=estimator, bandwidth=0.9)
    assert PLANE.value(policy) < 1.75


@pytest.mark.parametrize("design", ["quadratic", "quadratic-2d"])
def test_the_bandwidth_unless_given_shrinks_at_the_rate_of_its_dimension(design):
    # s·n^(−1/(4 + d)): a fifth root for one dose, a sixth for two.
    log = DESIGNS[design].draw(300, 1)
    procedure = tt.CPO(estimator=tt.SelfNormalized(), restarts=1)
    found = tt.PolicyLearner(procedure=procedure, honest=False).fit(log).learned_.report
    expected = dose_sd(log) * 300 ** (-1 / (4 + log.dimension))
    np.testing.assert_allclose(np.ravel(found["bandwidth"]), expected, rtol=1e-12)
