"""Value over a family of policies, and value over bandwidths: each point as if asked alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from evaluation.logs import KINDS, NEAR, kind_name, propensity_for, smooth_log
from titrant import (
    IPW,
    Constant,
    Curve,
    DirectMethod,
    Discretized,
    DoublyRobust,
    InvalidArgument,
    Linear,
    SelfNormalized,
    UntrustedEstimate,
    bandwidth_path,
    compare,
    curve,
    evaluate,
)
from titrant.bandwidth import RuleOfThumb
from titrant.data.simulate import Quadratic
from titrant.estimators import SmoothedEstimator
from titrant.evaluation.curves import curve_on
from titrant.evaluation.evaluation import Evaluation

EXACT = 1e-10

LOG = smooth_log(400)
SN = SelfNormalized()
DOSES = [-0.2, 0.1, 0.4, 0.7, 1.0]


def survives_json(plain):
    return json.loads(json.dumps(plain, allow_nan=False)) == plain


@pytest.mark.parametrize("bandwidth", [0.5, None, RuleOfThumb()], ids=repr)
def test_a_curve_is_the_comparison_of_its_points(bandwidth):
    found = curve(LOG, Constant, DOSES, estimator=SN, bandwidth=bandwidth)
    policies = {str(dose): Constant(dose) for dose in DOSES}
    expected = compare(LOG, policies, estimator=SN, bandwidth=bandwidth)
    np.testing.assert_array_equal(found.parameters, DOSES)
    assert found.refused == {}
    np.testing.assert_allclose(found.values, [expected[p].value for p in policies], rtol=EXACT)
    pointwise = [expected[p].interval(0.9) for p in policies]
    np.testing.assert_allclose(found.band(0.9, simultaneous=False), pointwise, rtol=EXACT)
    band = list(expected.simultaneous(0.9, seed=3).values())
    np.testing.assert_allclose(found.band(0.9, seed=3), band, rtol=EXACT)
    assert found.comparison.contrast("0.1", "0.7").se == pytest.approx(
        expected.contrast("0.1", "0.7").se, rel=EXACT
    )


@pytest.mark.parametrize("estimator", KINDS, ids=kind_name)
def test_a_curve_by_every_estimator(estimator):
    settings = {"estimator": estimator, "propensity": propensity_for(estimator)}
    found = curve(LOG, lambda b: Linear(coef=[b, -0.5]), [0.8, 1.2], bandwidth=0.5, **settings)
    alone = evaluate(LOG, Linear(coef=[1.2, -0.5]), bandwidth=0.5, **settings)
    assert found.values[1] == pytest.approx(alone.value, rel=EXACT)
    assert found.comparison["1.2"].interval() == pytest.approx(alone.interval(), rel=1e-9)


def test_a_curve_on_an_evaluation_made_before():
    # Same log, same nuisances, fitted once; only the policies are new.
    model = DoublyRobust(outcome=LinearRegression())
    before = Evaluation.of(LOG, {"other": NEAR}, model, None)
    found = curve_on(before, Constant, [0.1, 0.4, 50.0], bandwidth=0.5)
    expected = curve(LOG, Constant, [0.1, 0.4, 50.0], estimator=model, bandwidth=0.5)
    assert found.to_dict() == expected.to_dict()
    assert before.with_policies({"new": Constant(0.1)}).nuisances is before.nuisances
    assert before.names == ("other",)


def test_the_band_is_wider_than_the_points():
    found = curve(LOG, Constant, DOSES, estimator=SN, bandwidth=0.5)
    wide, narrow = found.band(), found.band(simultaneous=False)
    assert wide.shape == (5, 2)
    assert (wide[:, 0] < narrow[:, 0]).all()
    assert (wide[:, 1] > narrow[:, 1]).all()


def test_points_that_the_log_cannot_answer_are_left_out_with_their_reason():
    # 2.4 is at the rim of the logged doses, 50 beyond every bandwidth.
    parameters = [50.0, 0.1, 2.4, 0.4]
    found = curve(LOG, Constant, parameters, estimator=SN, bandwidth=0.5)
    np.testing.assert_array_equal(found.parameters, [0.1, 0.4])
    assert set(found.refused) == {50.0, 2.4}
    assert found.refused[50.0].startswith("No logged dose lies within h = 0.5")
    assert "effective sample size" in found.refused[2.4]
    alone = compare(LOG, {"0.1": Constant(0.1), "0.4": Constant(0.4)}, estimator=SN, bandwidth=0.5)
    np.testing.assert_allclose(found.values, [e.value for e in alone.estimates.values()])
    np.testing.assert_allclose(
        found.band(seed=1), list(alone.simultaneous(seed=1).values()), rtol=EXACT
    )
    assert found.comparison.contrast("0.4", "0.1").interval() == pytest.approx(
        alone.contrast("0.4", "0.1").interval(), rel=EXACT
    )


def test_a_parameter_given_twice_is_asked_once():
    once = curve(LOG, Constant, [0.4, 0.1, 60.0], estimator=SN, bandwidth=0.5)
    twice = curve(LOG, Constant, [0.4, 0.4, 0.1, 60.0, 0.1], estimator=SN, bandwidth=0.5)
    np.testing.assert_array_equal(twice.parameters, [0.4, 0.1])
    np.testing.assert_array_equal(twice.values, once.values)
    assert list(twice.refused) == [60.0]


def test_a_curve_without_any_answer_is_refused_with_the_first_reason():
    with pytest.raises(UntrustedEstimate) as caught:
        curve(LOG, Constant, [50.0, 60.0], estimator=SN, bandwidth=0.5)
    assert str(caught.value).startswith(
        "The log answers none of the 2 parameters of the curve; the first one because: "
        "No logged dose lies within h = 0.5 of the dose of policy '50.0' in any of 400 rows"
    )
    rim = float(LOG.treatment.max())
    with pytest.raises(UntrustedEstimate, match="because: The effective sample size is"):
        curve(LOG, Constant, [rim, rim + 0.1], estimator=SN, bandwidth=0.5)


@pytest.mark.parametrize("bad", [[], [[0.1]], [0.1, np.nan], "doses", 0.5])
def test_parameters_are_a_list_of_numbers(bad):
    with pytest.raises(InvalidArgument, match=r"`parameters` of `curve` must be|no policy"):
        curve(LOG, Constant, bad, estimator=SN)


def test_a_curve_in_plain_values_and_on_one_line():
    found = curve(LOG, Constant, [0.1, 0.4, 50.0], estimator=SN, bandwidth=0.5)
    plain = found.to_dict()
    assert survives_json(plain)
    assert plain["parameters"] == [0.1, 0.4]
    assert plain["values"] == found.values.tolist()
    assert plain["simultaneous_95"] == found.band().tolist()
    assert plain["pointwise_95"] == found.band(simultaneous=False).tolist()
    assert list(plain["refused"]) == ["50.0"]
    assert repr(found) == "Curve(2 parameters from 0.1 to 0.4; 1 refused)"
    assert isinstance(found, Curve)


def test_the_curve_finds_the_best_dose():
    # E(t − b(x))² is least at E b(x) = ¼, where V = 1.5 + Var b(x) = 1.5 + 1.25/12.
    log = smooth_log(3_000, seed=1)
    found = curve(log, Constant, np.linspace(-0.25, 0.75, 9), estimator=SN)
    assert abs(found.parameters[found.values.argmin()] - 0.25) <= 0.25
    truth = 1.5 + 1.25 / 12 + (found.parameters - 0.25) ** 2
    band = found.band()
    assert ((band[:, 0] < truth) & (truth < band[:, 1])).all()


# ── over bandwidths ──────────────────────────────────────────────────────────────────────────────

SMOOTHED = [k for k in KINDS if isinstance(k, SmoothedEstimator)]


@pytest.mark.parametrize("estimator", SMOOTHED, ids=kind_name)
def test_each_bandwidth_of_a_path_is_an_evaluation(estimator):
    h = [0.9, 0.2, 0.5]
    path = bandwidth_path(LOG, NEAR, estimator=estimator, bandwidths=h)
    np.testing.assert_allclose(path.bandwidths, [0.2, 0.5, 0.9])
    for j, hj in enumerate([0.2, 0.5, 0.9]):
        alone = evaluate(LOG, NEAR, estimator=estimator, bandwidth=hj)
        assert path.values[j] == pytest.approx(alone.value, rel=EXACT)
        assert path.se[j] == pytest.approx(alone.se, rel=1e-8)
        assert path.ess[j] == pytest.approx(alone.ess, rel=EXACT)


def test_the_default_grid_is_the_selectors():
    path = bandwidth_path(LOG, NEAR, estimator=SN)
    assert len(path.bandwidths) == 27
    assert path.bandwidths[0] == pytest.approx(0.03 * LOG.treatment.std())
    chosen = evaluate(LOG, NEAR, estimator=SN).bandwidth.h
    assert np.abs(path.bandwidths - chosen).min() < 1e-12


def test_a_path_in_plain_values_even_where_nothing_is_in_reach():
    # Neither 1e-6 nor 1e-5 reaches a row: None, not NaN.
    path = bandwidth_path(LOG, NEAR, estimator=IPW(), bandwidths=[1e-6, 1e-5, 0.5])
    plain = path.to_dict()
    assert survives_json(plain)
    assert plain["values"][0] is None
    assert plain["se"][0] is None
    assert plain["rows_in_reach"][0] == 0
    assert plain["values"][2] == path.values[2]


def test_a_path_in_two_doses_is_in_units_of_their_spread():
    log = Quadratic(dimension=2).draw(300, 0)
    policy = Constant([0.3, 0.9])
    path = bandwidth_path(log, policy, estimator=SN, bandwidths=[0.5, 1.0])
    np.testing.assert_allclose(path.bandwidths[0], 0.5 * log.treatment.std(axis=0))
    alone = evaluate(log, policy, estimator=SN, bandwidth=log.treatment.std(axis=0))
    assert path.values[1] == pytest.approx(alone.value, rel=EXACT)


@pytest.mark.parametrize(
    "estimator", [DirectMethod(outcome=LinearRegression()), Discretized()], ids=kind_name
)
def test_no_bandwidth_no_path(estimator):
    with pytest.raises(InvalidArgument, match="has no bandwidth, so it has no path"):
        bandwidth_path(LOG, NEAR, estimator=estimator)


@pytest.mark.parametrize("bad", [[0.0, 0.5], [-0.1], [np.nan], [[0.5]], []])
def test_bandwidths_are_finite_numbers_above_zero(bad):
    with pytest.raises(InvalidArgument, match="The `bandwidths` of `bandwidth_path` must be"):
        bandwidth_path(LOG, NEAR, estimator=SN, bandwidths=bad)


def test_the_default_estimator_is_doubly_robust():
    doubly = DoublyRobust(outcome=LinearRegression())
    path = bandwidth_path(LOG, NEAR, estimator=doubly, bandwidths=[0.5])
    plain = bandwidth_path(LOG, NEAR, estimator=SN, bandwidths=[0.5])
    assert path.values[0] != plain.values[0]
    assert path.baseline_variance > plain.baseline_variance == 0.0
