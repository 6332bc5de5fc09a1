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
from sweeps import long
from titrant import (
    IPW,
    Constant,
    Discretized,
    DoublyRobust,
    Exceeds,
    Limited,
    Linear,
    LinearGaussian,
    LoggedData,
    Multiply,
    PoissonBootstrap,
    Quantile,
    SelfNormalized,
    Shift,
    TailMean,
    Tilt,
    compare,
    curve,
    evaluate,
    subgroups,
)
from titrant.inference import INTERVALS, Narrow, Normal, RobustBiasCorrected
from titrant.learn.honest import HonestValue

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


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize("interval", INTERVALS, ids=repr)
@pytest.mark.parametrize("seed", [0, *long(1, 2)])
def test_a_value_lies_in_its_interval(interval, seed):
    # Law: whatever the level, estimates, differences and simultaneous bands hold their own value.
    # Not so around the corrected fit.
    if interval == RobustBiasCorrected(recentered=True):
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


def holds(one, value, level):
    low, high = one.interval(level)
    return low <= value <= high


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize("interval", INTERVALS, ids=repr)
@pytest.mark.parametrize("kind", ["bounded", *long("vector")])
def test_a_value_lies_in_its_interval_at_bounds_and_of_several_doses(interval, kind):
    if interval == RobustBiasCorrected(recentered=True):
        return
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 2))
    if kind == "bounded":
        t = rng.beta(1.0, 2.0, size=300)
        log = LoggedData(x, t, np.exp(2 * t) + x[:, 0] + rng.normal(size=300), bounds=(0.0, 1.0))
        policies = {"edge": Constant(0.0), "inside": Constant(0.5)}
    else:
        t = rng.normal(size=(300, 2)) + 0.3 * x
        log = LoggedData(x, t, np.sum(t**2, axis=1) + rng.normal(size=300))
        policies = {"edge": Constant([1.0, 1.0]), "inside": Constant([0.0, 0.0])}
    found = compare(log, policies, interval=interval, allow_untrusted=True)
    pair = found.contrast("edge", "inside")
    for level in (0.5, 0.95):
        assert all(holds(one, one.value, level) for one in found.estimates.values())
        assert holds(pair, pair.difference, level)


AROUND = [i for i in INTERVALS if i != RobustBiasCorrected(recentered=True)]
STUDENT = [i for i in AROUND if isinstance(i, RobustBiasCorrected | Narrow | Normal)]
MOVED = {
    "shift": Shift(-0.3),
    "multiply": Multiply(0.9),
    "tilt": Tilt(0.3),
    "cap": Limited(high=0.8),
}


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize("interval", AROUND, ids=repr)
def test_a_value_lies_in_its_interval_where_the_logged_dose_is_changed(interval):
    log = DESIGN.draw(300, 1, propensity=False)
    policies = MOVED | {"constant": Constant(0.4)}
    found = compare(log, policies, interval=interval, allow_untrusted=True)
    pairs = [found.contrast(name, "constant") for name in MOVED]
    for level in (0.5, 0.95):
        assert all(holds(one, one.value, level) for one in found.estimates.values())
        assert all(holds(one, one.difference, level) for one in pairs)


@pytest.mark.parametrize("interval", AROUND, ids=repr)
@each_kind
def test_a_value_by_every_estimator_lies_in_its_interval(estimator, interval):
    settings = {"estimator": estimator, "propensity": propensity_for(estimator)}
    found = compare(LOG, {"near": NEAR, "far": FAR}, bandwidth=0.5, interval=interval, **settings)
    pair = found.contrast("near", "far")
    for level in (0.5, 0.95):
        assert all(holds(one, one.value, level) for one in found.estimates.values())
        assert holds(pair, pair.difference, level)


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize("interval", [*STUDENT, PoissonBootstrap(draws=200)], ids=repr)
@pytest.mark.parametrize("structure", ["groups", "weights", "missing outcomes", "point masses"])
def test_a_value_lies_in_its_interval_where_rows_have_a_structure(interval, structure):
    log = DESIGN.draw(300, 5, propensity=False)
    rng = np.random.default_rng(5)
    t, y, more = log.treatment.copy(), log.outcome.copy(), {}
    if structure == "groups":
        more["groups"] = rng.integers(60, size=300)
    elif structure == "weights":
        more["weights"] = rng.uniform(0.2, 3.0, 300)
    elif structure == "missing outcomes":
        y[rng.random(300) < 0.3] = np.nan
        more["missing_outcome"] = "weight"
    else:
        t[rng.random(300) < 0.3] = 0.4
    log = LoggedData(log.context, t, y, **more)
    policies = {"constant": Constant(0.4), "near": NEAR, "shift": Shift(-0.3)}
    found = compare(log, policies, interval=interval, allow_untrusted=True)
    pairs = [found.contrast("constant", other) for other in ("near", "shift")]
    for level in (0.5, 0.95):
        assert all(holds(one, one.value, level) for one in found.estimates.values())
        assert all(holds(one, one.difference, level) for one in pairs)


@pytest.mark.usefixtures("plain_models")
def test_a_curve_lies_in_its_bands():
    log = DESIGN.draw(300, 6, propensity=False)
    found = curve(log, Constant, [0.0, 0.4, 0.8], allow_untrusted=True)
    for level in (0.5, 0.95):
        for at_once in (True, False):
            low, high = found.band(level, simultaneous=at_once).T
            assert (low <= found.values).all()
            assert (found.values <= high).all()


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize("interval", STUDENT, ids=repr)
@pytest.mark.parametrize("functional", [Exceeds(2.0), Quantile(0.8), TailMean(0.2)], ids=repr)
def test_a_functional_lies_in_its_interval(functional, interval):
    log = DESIGN.draw(300, 2, propensity=False)
    policies = {"constant": Constant(0.4), "shift": Shift(-0.3)}
    settings = {"interval": interval, "functional": functional, "allow_untrusted": True}
    found = compare(log, policies, **settings)
    pair = found.contrast("constant", "shift")
    for level in (0.5, 0.95):
        assert all(holds(one, one.value, level) for one in found.estimates.values())
        assert holds(pair, pair.difference, level)


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize("interval", STUDENT, ids=repr)
@pytest.mark.parametrize("policy", [Constant(0.4), Shift(-0.3)], ids=repr)
def test_the_difference_in_a_part_lies_in_its_interval(policy, interval):
    log = DESIGN.draw(300, 3, propensity=False)
    found = subgroups(log, policy, by={"x0": 3}, interval=interval, allow_untrusted=True)
    assert len(list(found)) == 3
    for level in (0.5, 0.95):
        assert all(holds(part, part.difference, level) for part in found)
        for part, (low, high) in zip(found, found.simultaneous(level).values(), strict=True):
            assert low <= part.difference <= high


def test_simultaneous_bands_and_one_sided_bounds_hold_their_values():
    policies = {"near": NEAR, "far": FAR, "constant": Constant(0.4)}
    found = compare(LOG, policies, allow_untrusted=True)
    for level in (0.5, 0.95):
        for name, (low, high) in found.simultaneous(level).items():
            assert low <= found[name].value <= high
        for name, (low, high) in found.simultaneous_contrasts("near", level).items():
            assert low <= found.contrast(name, "near").difference <= high


def test_pooled_halves_hold_their_value_and_bounds_lie_below_their_gain():
    parts = [
        compare(DESIGN.draw(300, seed), {"learned": NEAR, "status quo": FAR}, allow_untrusted=True)
        for seed in (0, 1)
    ]
    honest = HonestValue(tuple(parts), maximize=False)
    pair = honest.comparison.contrast("learned", "status quo")
    for level in (0.5, 0.95):
        assert holds(honest, honest.value, level)
        assert holds(pair, pair.difference, level)
        gain, bound = honest.gain(level=level)
        assert gain == -pair.difference
        assert bound <= gain


def twins(seed):
    """A log and two rules that are one but for the last bit of a dose."""
    log = DESIGN.draw(200, seed, propensity=False)
    p = log.context.shape[1]
    return log, {"a": Constant(0.4), "b": Linear([1e-17] + [0.0] * (p - 1), 0.4 + 1e-16)}


@pytest.mark.parametrize("interval", INTERVALS, ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_two_rules_that_are_one_do_not_differ(interval, seed):
    log, rules = twins(seed)
    options = {"estimator": SelfNormalized(), "propensity": LinearGaussian()}
    found = compare(log, rules, interval=interval, bandwidth=0.5, allow_untrusted=True, **options)
    pair = found.contrast("a", "b")
    # Their values differ by rounding, and that is no difference.
    low, high = pair.interval()
    assert low <= 0.0 <= high
    assert pair.difference == 0.0
    assert pair.confidence.center == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_halves_of_two_rules_that_are_one_show_no_improvement(seed):
    (first, rules), (second, _) = twins(seed), twins(seed + 10)
    options = {"estimator": SelfNormalized(), "propensity": LinearGaussian(), "bandwidth": 0.5}
    named = {"learned": rules["b"], "status quo": rules["a"]}
    parts = [compare(log, named, allow_untrusted=True, **options) for log in (first, second)]
    honest = HonestValue(tuple(parts), maximize=False)
    assert honest.contrast().center == 0.0
    assert honest.comparison.contrast("learned", "status quo").difference == 0.0
    assert not honest.improves()
    low, high = honest.contrast().at(0.95)
    assert low <= 0.0 <= high
