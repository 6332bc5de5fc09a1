"""Several policies on one log: what pairing gains, for every interval method."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression

from evaluation.logs import (
    DESIGN,
    FAR,
    KINDS,
    NEAR,
    kind_name,
    propensity_for,
    smooth_log,
    width,
)
from titrant import (
    Constant,
    DirectMethod,
    DoublyRobust,
    Linear,
    LoggedData,
    SelfNormalized,
    compare,
    evaluate,
)
from titrant.inference import (
    INTERVALS,
    EmpiricalBernstein,
    Narrow,
    Normal,
    PoissonBootstrap,
    RobustBiasCorrected,
)
from titrant.policies import StatusQuo

ROUNDING = 1e-12

LOG = smooth_log()
POLICIES = {"near": NEAR, "far": FAR, "constant": Constant(0.4)}
SN = SelfNormalized()

each_interval = pytest.mark.parametrize("interval", INTERVALS, ids=lambda i: type(i).__name__)
each_kind = pytest.mark.parametrize("estimator", KINDS, ids=kind_name)


@each_interval
@each_kind
def test_beside_others_a_policy_has_the_value_it_has_alone(estimator, interval):
    settings = {
        "estimator": estimator,
        "propensity": propensity_for(estimator),
        "interval": interval,
        "allow_untrusted": True,
    }
    together = compare(LOG, POLICIES, **settings)
    assert together.names == list(POLICIES)
    for name, policy in POLICIES.items():
        alone = evaluate(LOG, policy, **settings)
        assert together[name].value == pytest.approx(alone.value, rel=ROUNDING)
        assert together[name].se == pytest.approx(alone.se, rel=ROUNDING)
        assert together[name].interval() == pytest.approx(alone.interval(), rel=1e-10)
        if alone.bandwidth is not None:
            assert together[name].bandwidth.h == alone.bandwidth.h


@each_interval
@each_kind
def test_a_policy_does_not_differ_from_itself(estimator, interval):
    # 0 ± 0, whatever the method: by name, and as the same policy under two names, where the
    # variance of the difference is known to the rounding of its parts.
    result = compare(
        LOG,
        {"a": NEAR, "b": NEAR},
        estimator=estimator,
        bandwidth=0.5,
        propensity=propensity_for(estimator),
        interval=interval,
    )
    itself, twin = result.contrast("a", "a"), result.contrast("a", "b")
    assert (itself.difference, itself.se, *itself.interval()) == (0.0, 0.0, 0.0, 0.0)
    assert (twin.difference, twin.se) == (0.0, 0.0)
    assert twin.interval() == pytest.approx((0.0, 0.0), abs=1e-6 * result["a"].se)


@each_interval
@each_kind
def test_turning_a_contrast_around_turns_its_sign(estimator, interval):
    result = compare(
        LOG,
        POLICIES,
        estimator=estimator,
        bandwidth=0.5,
        propensity=propensity_for(estimator),
        interval=interval,
        allow_untrusted=True,
    )
    there, back = result.contrast("near", "far"), result.contrast("far", "near")
    assert there.difference == -back.difference
    assert there.se == pytest.approx(back.se, rel=ROUNDING, abs=ROUNDING)
    low, high = there.interval()
    assert back.interval() == pytest.approx((-high, -low), rel=ROUNDING, abs=ROUNDING)


@each_interval
def test_what_all_outcomes_share_does_not_widen_a_contrast(interval):
    # A context effect of sd 50, the same under both policies: single intervals grow, paired ones
    # hardly. Independent samples would need √2 times the wide one.
    rng = np.random.default_rng(0)
    n = 600
    x = rng.normal(size=(n, 1))
    t = rng.normal(size=n)
    y = 50 * x[:, 0] + t + 0.1 * rng.normal(size=n)
    log = LoggedData(x, t, y, norm.pdf(t))
    pair = {"a": Constant(0.0), "b": Constant(0.1)}
    result = compare(log, pair, estimator=SN, bandwidth=0.8, interval=interval)
    contrast = result.contrast("a", "b")
    assert contrast.se < 0.25 * result["a"].se
    # The narrow form adds how far the two fits of the difference lie apart.
    limit = 0.6 if isinstance(interval, Narrow) else 0.45
    assert width(contrast) < limit * width(result["a"])


def test_known_answer_of_a_paired_contrast():
    # Uniform-looking log of three rows: h = 1, q = 1/2, Epanechnikov; a asks for 0, b for 1.
    # doses 0, 1/2, 1; outcomes 1, 2, 4. Weights K(0) = 3/4, K(1/2) = 9/16, K(1) = 0, in units of
    # 1/q: a weighs 3/4, 9/16, 0 and b 0, 9/16, 3/4. In sixteenths of 3: 4, 3, 0 and 0, 3, 4.
    # v_a = (4 + 6)/7 = 10/7, v_b = (6 + 16)/7 = 22/7, difference −12/7.
    # Influences times Σw/n = 7 (in the same units, over n): a: 4(1 − 10/7), 3(2 − 10/7), 0 =
    # −12/7, 12/7, 0; b: 0, 3(2 − 22/7), 4(4 − 22/7) = 0, −24/7, 24/7.
    # Var(a − b) = [(12/7)² + (36/7)² + (24/7)²]/7² = 144·14/7⁴, SE = 12√14/49.
    log = LoggedData(np.zeros((3, 1)), [0.0, 0.5, 1.0], [1.0, 2.0, 4.0], [0.5, 0.5, 0.5])
    policies = {"a": Constant(0.0), "b": Constant(1.0)}
    result = compare(
        log, policies, estimator=SN, bandwidth=1.0, interval=Normal(), allow_untrusted=True
    )
    assert result["a"].value == pytest.approx(10 / 7, rel=ROUNDING)
    assert result["b"].value == pytest.approx(22 / 7, rel=ROUNDING)
    contrast = result.contrast("a", "b")
    assert contrast.difference == pytest.approx(-12 / 7, rel=ROUNDING)
    assert contrast.se == pytest.approx(12 * math.sqrt(14) / 49, rel=ROUNDING)
    half = 1.959963984540054 * 12 * math.sqrt(14) / 49
    assert contrast.interval() == pytest.approx((-12 / 7 - half, -12 / 7 + half), rel=ROUNDING)


def test_the_contrast_interval_rests_on_the_corrected_centers():
    # The difference shown is that of the estimates; the interval is centered where theirs are.
    result = compare(LOG, POLICIES, estimator=SN, bandwidth=0.6)
    contrast = result.contrast("near", "constant")
    centers = result["near"].confidence.center - result["constant"].confidence.center
    assert contrast.difference == result["near"].value - result["constant"].value
    assert contrast.confidence.center == pytest.approx(centers, rel=ROUNDING)
    low, high = contrast.interval()
    assert (low + high) / 2 == pytest.approx(centers, rel=1e-9)
    degrees = min(result[name].confidence.degrees for name in ("near", "constant"))
    assert contrast.confidence.degrees == degrees


def test_only_keeps_what_it_names_in_its_order():
    result = compare(LOG, POLICIES, estimator=SN, bandwidth=0.6, allow_untrusted=True)
    some = result.only(["constant", "near"])
    assert some.names == ["constant", "near"]
    assert some["near"] is result["near"]
    there, here = result.contrast("near", "constant"), some.contrast("near", "constant")
    assert here.difference == there.difference
    assert here.se == pytest.approx(there.se, rel=1e-10)
    assert here.interval() == pytest.approx(there.interval(), rel=1e-10)
    np.testing.assert_array_equal(np.diag(some.covariance), np.diag(result.covariance)[[2, 0]])


@pytest.mark.parametrize(
    "interval", [PoissonBootstrap(draws=100), EmpiricalBernstein()], ids=lambda i: type(i).__name__
)
def test_bands_say_which_intervals_they_need(interval):
    result = compare(LOG, {"near": NEAR, "c": Constant(0.4)}, estimator=SN, interval=interval)
    for ask in (result.simultaneous, lambda: result.simultaneous_contrasts("c")):
        with pytest.raises(ValueError, match=r"need `interval=RobustBiasCorrected\(\)` or"):
            ask()


@pytest.mark.parametrize("interval", [RobustBiasCorrected(), Normal()], ids=repr)
def test_bands_contain_the_single_intervals_and_bonferroni_contains_them(interval):
    policies = {str(c): Linear(coef=[1.0, -0.5], intercept=c) for c in (-0.2, 0.1, 0.4, 0.6)}
    result = compare(LOG, policies, estimator=SN, bandwidth=0.6, interval=interval)
    for name, (low, high) in result.simultaneous(0.9).items():
        inner, outer = result[name].interval(0.9), result[name].interval(1 - 0.1 / 4)
        assert low < inner[0]
        assert high > inner[1]
        assert low > outer[0]
        assert high < outer[1]
    for name, (low, high) in result.simultaneous_contrasts("0.1", 0.9).items():
        contrast = result.contrast(name, "0.1")
        assert low < contrast.interval(0.9)[0]
        assert high > contrast.interval(0.9)[1]
        assert low > contrast.interval(1 - 0.1 / 3)[0]
    assert list(result.simultaneous_contrasts("0.1")) == ["-0.2", "0.4", "0.6"]


@each_interval
@pytest.mark.parametrize("estimator", [SN, DirectMethod(outcome=LinearRegression())], ids=kind_name)
def test_the_status_quo_is_the_mean_outcome(estimator, interval):
    result = compare(LOG, {"new": NEAR, "now": StatusQuo()}, estimator=estimator, interval=interval)
    now = result["now"]
    assert now.value == pytest.approx(LOG.outcome.mean(), rel=ROUNDING)
    assert now.se == pytest.approx(LOG.outcome.std() / math.sqrt(len(LOG)), rel=ROUNDING)
    assert now.bandwidth is None
    assert now.trusted
    assert now.interval()[0] < LOG.outcome.mean() < now.interval()[1]


def test_the_difference_to_the_status_quo_is_paired():
    # Influence of row i on v_new − ȳ: n·wᵢ(yᵢ − v)/Σw − (yᵢ − ȳ).
    result = compare(
        LOG, {"new": NEAR, "now": StatusQuo()}, estimator=SN, bandwidth=0.5, interval=Normal()
    )
    u = (NEAR(LOG.context) - LOG.treatment) / 0.5
    floor = 0.01 / LOG.treatment.std()
    w = np.where(np.abs(u) < 1, 1 - u**2, 0.0) / np.maximum(LOG.propensity, floor)
    y = LOG.outcome
    v = w @ y / w.sum()
    phi = len(LOG) * w * (y - v) / w.sum() - (y - y.mean())
    contrast = result.contrast("new", "now")
    assert contrast.difference == pytest.approx(v - y.mean(), rel=1e-10)
    assert contrast.se == pytest.approx(math.sqrt(np.sum(phi**2)) / len(LOG), rel=1e-10)


def test_a_better_policy_is_found_better():
    # V(near) = 1.51, V(far) = 1.99 on the design; the log decides clearly.
    log = smooth_log(1_500, seed=2)
    estimator = DoublyRobust(outcome=LinearRegression())
    contrast = compare(log, {"near": NEAR, "far": FAR}, estimator=estimator).contrast("near", "far")
    low, high = contrast.interval()
    truth = DESIGN.value_of_offset(0.1) - DESIGN.value_of_offset(0.7)
    assert low < truth < high < 0
