"""`tt.check`: the report of a whole log, with the propensity calibrated on held-out rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression

import titrant as tt
from titrant.data.simulate import Quadratic
from titrant.estimators import DoublyRobust
from titrant.evaluation import trust
from titrant.evaluation.models.nuisance import Nuisances
from titrant.evaluation.survey import survey_of
from titrant.execute import Engine
from titrant.inference import Verdict
from titrant.propensity import calibration

DESIGN = Quadratic()
POLICY = tt.Linear(coef=[1.0, -0.5], intercept=0.3)
DR = DoublyRobust(outcome=LinearRegression())
KNOWN = tt.Known(DESIGN.density, DESIGN.cdf)
PIT_NOTE = "The shape of the propensities was not checked: that takes a model with a cdf."


def test_a_right_model_passes_by_its_held_out_calibration():
    log = DESIGN.draw(800, 0, propensity=False)
    found = tt.check(log, propensity=tt.LinearGaussian())
    reference = calibration(tt.LinearGaussian(), log.context, log.treatment)
    assert found.names == ("stabilized_weight", "propensity_pit")
    assert found["propensity_pit"].value == reference.ks_distance
    assert found["stabilized_weight"].value == reference.mean_weight
    assert found.verdict is Verdict.OK


def test_a_model_of_the_wrong_shape_is_found_out():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 1))
    t = x[:, 0] + rng.choice([-1.0, 1.0], size=1500) + rng.normal(scale=0.4, size=1500)
    log = tt.LoggedData(x, t, t)
    wrong = tt.check(log, propensity=tt.LinearGaussian())
    assert wrong["propensity_pit"].verdict is Verdict.WARN
    assert "LocationScale()" in wrong["propensity_pit"].message
    assert tt.check(log, propensity=tt.LocationScale())["propensity_pit"].verdict is Verdict.OK


def test_a_column_has_a_mean_weight_but_no_shape():
    log = DESIGN.draw(800, 0)
    right = tt.check(log)
    assert right.names == ("stabilized_weight",)
    assert right.notes == (PIT_NOTE,)
    assert right.verdict is Verdict.OK
    wrong = tt.check(log.with_propensity(1.5 * log.propensity))
    assert wrong["stabilized_weight"].verdict is Verdict.WARN


def test_a_known_propensity_has_a_shape_if_it_has_a_cdf():
    log = DESIGN.draw(800, 0)
    assert tt.check(log, propensity=KNOWN)["propensity_pit"].verdict is Verdict.OK
    assert tt.check(log, propensity=tt.Known(DESIGN.density)).notes == (PIT_NOTE,)


def test_bounds_are_honored():
    # Half-normal doses: a normal law cut at 0 fits badly, the law that knows its bound well.
    rng = np.random.default_rng(1)
    t = np.abs(rng.normal(size=1500))
    density = tt.Known(lambda X, t: 2 * norm.pdf(t), lambda X, t: 2 * norm.cdf(t) - 1)  # noqa: ARG005
    log = tt.LoggedData(np.empty((1500, 0)), t, t, 2 * norm.pdf(t), bounds=(0, None))
    assert tt.check(log, propensity=density).verdict is Verdict.OK
    assert tt.check(log).verdict is Verdict.OK


def test_vector_doses():
    log = Quadratic(dimension=2).draw(600, 0)
    assert tt.check(log)["stabilized_weight"].verdict is Verdict.OK
    assert tt.check(log.with_propensity(None)).notes == (PIT_NOTE,)
    bounded = log.with_bounds((-10.0, 10.0))
    assert tt.check(bounded)["stabilized_weight"].verdict is Verdict.OK


def test_with_a_policy_the_report_is_the_estimates_and_the_calibration():
    log = DESIGN.draw(800, 0, propensity=False)
    model = tt.LinearGaussian()
    found = tt.check(log, POLICY, estimator=DR, propensity=model)
    estimate = tt.evaluate(log, POLICY, estimator=DR, propensity=model)
    # The ranks of the estimate are of doses that the model was fitted to, those of the report held
    # out: the second take the place of the first.
    held_out = tt.check(log, propensity=model)
    own = estimate.diagnostics["propensity_pit"]
    assert "of the doses that the model was fitted to are" in own.message
    assert own.value != held_out["propensity_pit"].value
    kept = tuple(c for c in estimate.diagnostics if c is not own)
    assert found.checks == kept + held_out.checks
    assert found.notes == estimate.diagnostics.notes + held_out.notes


def test_the_direct_method_needs_no_propensity():
    log = DESIGN.draw(300, 0)
    found = tt.check(log, POLICY, estimator=tt.DirectMethod(outcome=LinearRegression()))
    assert "stabilized_weight" not in found.names


def test_without_overlap_the_refusal_is_part_of_the_report():
    log = DESIGN.draw(300, 0)
    found = tt.check(log, tt.Constant(40.0), estimator=DR)
    assert found.verdict is Verdict.REFUSE
    assert found["overlap"].value == 0.0
    assert "300 rows" in found["overlap"].message
    assert "stabilized_weight" in found.names
    untrusted = tt.check(log, tt.Constant(2.2), estimator=DR, bandwidth=0.5)
    assert untrusted["effective_sample_size"].verdict is Verdict.REFUSE


def test_a_calibration_that_fails_is_noted():
    # Three rows cannot be cut into five folds.
    log = tt.LoggedData([[1.0], [2.0], [3.0]], [1.0, 2.0, 4.0], [0.0, 1.0, 2.0], [0.3, 0.3, 0.3])
    found = tt.check(log)
    assert found.checks == ()
    assert found.notes[0].startswith("The propensities could not be calibrated: ")


def sampled(log):
    return survey_of(log, Engine(pin=False)).sample


def test_there_must_be_something_to_calibrate():
    log = DESIGN.draw(300, 0, propensity=False)
    nothing = Nuisances.of(log, tt.DirectMethod(), None)
    with pytest.raises(tt.InvalidArgument, match="neither a model nor a column"):
        trust.calibrated(nothing, sampled(log), folds=5, seed=0)


def test_a_long_log_is_calibrated_on_a_sample(monkeypatch):
    log, seen = DESIGN.draw(500, 0), []

    def looked_at(nuisances, rows, folds, seed):
        seen.append(rows)
        return calibrated(nuisances, rows, folds, seed)

    calibrated = trust.calibrated
    monkeypatch.setattr(trust, "calibrated", looked_at)
    tt.check(log, estimator=tt.SelfNormalized())
    monkeypatch.setattr(trust, "CALIBRATION_ROWS", 200)
    tt.check(log, estimator=tt.SelfNormalized())
    tt.check(log, estimator=tt.SelfNormalized(), seed=1)  # draws the folds, not the rows
    whole, drawn, again = seen
    assert whole.whole
    assert len(drawn.log) == pytest.approx(200, abs=44)  # four sd of 500 draws with p = .4
    assert len(set(drawn.log.outcome)) == len(drawn.log)
    assert drawn.log.outcome.tolist() == log.outcome[drawn.numbers].tolist()
    assert drawn.numbers.tolist() == again.numbers.tolist()


def test_the_report_follows_its_seed():
    log = DESIGN.draw(300, 0, propensity=False)
    model = tt.LinearGaussian()
    assert tt.check(log, propensity=model) == tt.check(log, propensity=model, seed=0)
    assert tt.check(log, propensity=model) != tt.check(log, propensity=model, seed=1)


@pytest.mark.parametrize("policy", [None, POLICY])
def test_what_was_given_is_not_touched(policy):
    log = DESIGN.draw(300, 0, propensity=False)
    model = tt.LinearGaussian()
    tt.check(log, policy, estimator=DR, propensity=model)
    assert not [name for name in vars(model) if name.endswith("_")]
