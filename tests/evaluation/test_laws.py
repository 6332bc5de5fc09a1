"""What `evaluate` must do when units, zeros, order or the number of copies change."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from evaluation.logs import (
    DESIGN,
    FAR,
    KINDS,
    NEAR,
    changed,
    kind_name,
    propensity_for,
    smooth_log,
    width,
)
from titrant import (
    IPW,
    Constant,
    Discretized,
    DoublyRobust,
    LinearGaussian,
    SelfNormalized,
    compare,
    evaluate,
)
from titrant.inference import INTERVALS, Normal, PoissonBootstrap, RobustBiasCorrected

ROUNDING = 1e-9  # the same sums, rounded elsewhere
FAR_ROUNDING = 2e-6  # outcomes and predictions near 1e8 are rounded to 1.5e-8, 3e-7 of an SE of .05

# Plain inverse weighting moves with the zero of the outcome. That is what it is known for.
SHIFTABLE = [k for k in KINDS if k not in (IPW(), Discretized(self_normalized=False))]
WITHOUT_MODEL = [k for k in KINDS if not k.uses_outcome_model]
ONE_DOSE_UNIT = [k for k in KINDS if not isinstance(k, Discretized)]

each_kind = pytest.mark.parametrize("estimator", KINDS, ids=kind_name)
each_interval = pytest.mark.parametrize("interval", INTERVALS, ids=lambda i: type(i).__name__)

# Outcomes that stay exact in binary when 1e8 is added, so that only the code can lose digits.
LOG = changed(smooth_log(), outcome=np.round(smooth_log().outcome * 1024) / 1024)


def run(estimator, log=LOG, policy=NEAR, h=0.5, **settings):
    settings = {"propensity": propensity_for(estimator)} | settings
    return evaluate(log, policy, estimator=estimator, bandwidth=h, **settings)


@each_interval
@pytest.mark.parametrize("offset", [10.0, 1e8, -1e8])
@pytest.mark.parametrize("estimator", SHIFTABLE, ids=kind_name)
def test_shifting_the_outcome_moves_the_value_and_widens_nothing(estimator, offset, interval):
    # v(y + c) = v(y) + c; SE and the width of every interval stay.
    tolerance = ROUNDING if abs(offset) < 1e3 else FAR_ROUNDING
    before = run(estimator, interval=interval)
    after = run(estimator, changed(LOG, outcome=LOG.outcome + offset), interval=interval)
    assert after.value - offset == pytest.approx(before.value, abs=tolerance)
    assert after.se == pytest.approx(before.se, rel=tolerance)
    assert width(after) == pytest.approx(width(before), rel=tolerance)
    assert after.interval()[0] - offset == pytest.approx(before.interval()[0], abs=tolerance)


@pytest.mark.parametrize(
    "estimator",
    [SelfNormalized(), DoublyRobust(outcome=LinearRegression()), IPW(centered=True)],
    ids=kind_name,
)
def test_the_bandwidth_that_chooses_itself_knows_no_zero_and_no_unit(estimator):
    before = run(estimator, h=None)
    after = run(estimator, changed(LOG, outcome=1e8 + LOG.outcome), h=None)
    assert after.bandwidth.h == before.bandwidth.h
    assert after.value - 1e8 == pytest.approx(before.value, abs=FAR_ROUNDING)
    assert width(after) == pytest.approx(width(before), rel=FAR_ROUNDING)
    in_cents = run(estimator, changed(LOG, outcome=100 * LOG.outcome), h=None)
    assert in_cents.bandwidth.h == before.bandwidth.h
    assert in_cents.value == pytest.approx(100 * before.value, rel=ROUNDING)


@each_interval
@pytest.mark.parametrize("factor", [1000.0, -2.0])
@each_kind
def test_scaling_the_outcome_scales_value_error_and_interval(estimator, factor, interval):
    before = run(estimator, interval=interval)
    after = run(estimator, changed(LOG, outcome=factor * LOG.outcome), interval=interval)
    assert after.value == pytest.approx(factor * before.value, rel=ROUNDING)
    assert after.se == pytest.approx(abs(factor) * before.se, rel=ROUNDING)
    expected = sorted(factor * end for end in before.interval())
    np.testing.assert_allclose(after.interval(), expected, rtol=ROUNDING)


@pytest.mark.parametrize("h", [0.5, None], ids=["given", "chosen"])
@pytest.mark.parametrize("factor", [1e-3, 25.4])
@pytest.mark.parametrize("estimator", ONE_DOSE_UNIT, ids=kind_name)
def test_scaling_the_dose_scales_the_bandwidth_and_nothing_else(estimator, factor, h):
    # t → ct, τ → cτ, q → q/c: h → ch, same value, error and interval, floor θ → θ/c.
    before = run(estimator, h=h)
    after = run(
        estimator,
        changed(LOG, dose_factor=factor),
        policy=lambda X: factor * NEAR(X),
        h=None if h is None else factor * h,
    )
    assert after.value == pytest.approx(before.value, rel=ROUNDING)
    assert after.se == pytest.approx(before.se, rel=ROUNDING)
    np.testing.assert_allclose(after.interval(), before.interval(), rtol=ROUNDING)
    if before.bandwidth is not None:
        assert after.bandwidth.h == pytest.approx(factor * before.bandwidth.h, rel=ROUNDING)
        assert after.method["floor"] == pytest.approx(before.method["floor"] / factor)
        assert after.method["floor_share"] == before.method["floor_share"] > 0


@pytest.mark.parametrize(
    "estimator", [SelfNormalized(), Discretized(), Discretized(quantiles=True)], ids=repr
)
def test_scaling_the_dose_with_a_fitted_propensity(estimator):
    # Density, floor and bins are all re-estimated in the new unit.
    settings = {"propensity": LinearGaussian()}
    before = run(estimator, **settings)
    in_grams = changed(LOG, dose_factor=1e-3)
    after = run(estimator, in_grams, policy=lambda X: 1e-3 * NEAR(X), h=0.5e-3, **settings)
    assert after.value == pytest.approx(before.value, rel=1e-8)
    assert after.se == pytest.approx(before.se, rel=1e-8)


@pytest.mark.parametrize("h", [0.5, None], ids=["given", "chosen"])
@pytest.mark.parametrize("estimator", WITHOUT_MODEL, ids=kind_name)
def test_the_order_of_the_rows_does_not_matter(estimator, h):
    # Folds follow row numbers, so models may differ; everything else may not.
    before = run(estimator, h=h)
    after = run(estimator, LOG.rows(np.random.default_rng(1).permutation(len(LOG))), h=h)
    assert after.value == pytest.approx(before.value, rel=ROUNDING)
    assert after.se == pytest.approx(before.se, rel=ROUNDING)
    assert after.ess == pytest.approx(before.ess, rel=ROUNDING)
    np.testing.assert_allclose(after.interval(), before.interval(), rtol=ROUNDING)


@pytest.mark.parametrize("estimator", WITHOUT_MODEL, ids=kind_name)
def test_every_row_twice_halves_the_variance(estimator):
    before = run(estimator, interval=Normal())
    after = run(estimator, LOG.rows(np.tile(np.arange(len(LOG)), 2)), interval=Normal())
    assert after.value == pytest.approx(before.value, rel=ROUNDING)
    assert after.se == pytest.approx(before.se / np.sqrt(2), rel=ROUNDING)
    assert width(after) == pytest.approx(width(before) / np.sqrt(2), rel=ROUNDING)
    assert after.ess == pytest.approx(2 * before.ess, rel=ROUNDING)


@each_interval
@each_kind
def test_a_higher_level_is_a_wider_interval(estimator, interval):
    result = run(estimator, interval=interval)
    levels = [0.5, 0.8, 0.9, 0.95, 0.99]
    ends = np.array([result.interval(level) for level in levels])
    assert (np.diff(ends[:, 0]) < 0).all()
    assert (np.diff(ends[:, 1]) > 0).all()


@each_kind
def test_the_default_interval_is_robust_bias_corrected(estimator):
    assert run(estimator).interval() == run(estimator, interval=RobustBiasCorrected()).interval()


@each_kind
def test_asking_twice_gives_the_same_answer_and_leaves_the_log_alone(estimator):
    before = [np.copy(a) for a in (LOG.context, LOG.treatment, LOG.outcome, LOG.propensity)]
    assert run(estimator).to_dict() == run(estimator).to_dict()
    for old, new in zip(
        before, (LOG.context, LOG.treatment, LOG.outcome, LOG.propensity), strict=True
    ):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("interval", INTERVALS, ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_a_value_lies_in_its_interval(interval, seed):
    # Law: whatever the level, estimates, differences and simultaneous bands hold their own value.
    # Not so around the corrected fit, nor for quantiles of draws.
    if interval == RobustBiasCorrected(recentered=True) or isinstance(interval, PoissonBootstrap):
        return
    log = DESIGN.draw(300, seed, propensity=False)
    policies = {"near": NEAR, "far": FAR, "constant": Constant(0.4)}
    for h in (None, 0.9):
        found = compare(log, policies, bandwidth=h, interval=interval, allow_untrusted=True)
        pairs = [found.contrast("near", other) for other in ("far", "constant")]
        for level in (0.5, 0.95, 0.999):
            for one in (*found.estimates.values(), *pairs):
                low, high = one.interval(level)
                assert low <= (one.difference if one in pairs else one.value) <= high
