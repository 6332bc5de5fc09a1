"""Quantiles, tails and shares of outcomes under a policy."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

import titrant as tt
from titrant.errors import InvalidArgument
from titrant.evaluation.questions.functionals import (
    Distribution,
    Excess,
    Heights,
    QuantileInference,
)
from titrant.inference.base import StudentInference

EXACT = 1e-12
POLICY = tt.Constant(0.3)
QUICK = {"estimator": tt.SelfNormalized(), "bandwidth": 0.6, "allow_untrusted": True}
PLAIN = tt.DoublyRobust(outcome=LinearRegression(), folds=2)
EVERY = [tt.Quantile(0.7), tt.Exceeds(0.8), tt.TailMean(0.2), tt.TailMean(0.3, lower=True)]


def log_of(n=500, seed=0, **more):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    t = 0.5 * x + rng.normal(size=n)
    y = (t - 0.5) ** 2 + x + 0.5 * rng.normal(size=n)
    return tt.LoggedData({"a": x}, t, y, stats.norm.pdf(t - 0.5 * x), **more)


def asked(log, functional, **more):
    return tt.evaluate(log, POLICY, functional=functional, **(QUICK | more))


def weights(log, h=0.6):
    u = (log.treatment - 0.3) / h
    kernel = np.where(np.abs(u) < 1, 0.75 * (1 - u**2), 0.0)
    return kernel / np.maximum(log.propensity, 0.01 / log.treatment.std())


# ── known answers and loops ──────────────────────────────────────────────────────────────────────


def test_the_status_quo_has_the_quantiles_of_the_log():
    log = log_of()
    for p in (0.1, 0.5, 0.9):
        found = tt.evaluate(log, tt.StatusQuo(), functional=tt.Quantile(p), **QUICK)
        assert found.value == np.quantile(log.outcome, p, method="inverted_cdf")
    share = tt.evaluate(log, tt.StatusQuo(), functional=tt.Exceeds(1.0), **QUICK)
    assert share.value == pytest.approx(np.mean(log.outcome > 1.0))
    # The mean of the largest tenth of 500 outcomes is that of fifty.
    tail = tt.evaluate(log, tt.StatusQuo(), functional=tt.TailMean(0.1), **QUICK)
    assert tail.value == pytest.approx(np.sort(log.outcome)[-50:].mean())
    low = tt.evaluate(log, tt.StatusQuo(), functional=tt.TailMean(0.1, lower=True), **QUICK)
    assert low.value == pytest.approx(np.sort(log.outcome)[:50].mean())


def test_weighted_quantiles_by_a_loop():
    # By weights alone F̂(θ₀) = G(θ₀), so θ̂ is the weighted quantile itself.
    log = log_of()
    w = weights(log)
    order = np.argsort(log.outcome)
    for p in (0.25, 0.7):
        total = 0.0
        for i in order:
            total += w[i]
            if total >= p * w.sum():
                break
        assert asked(log, tt.Quantile(p)).value == log.outcome[i]
    over = log.outcome > 0.8
    assert asked(log, tt.Exceeds(0.8)).value == pytest.approx(w[over].sum() / w.sum())
    c = asked(log, tt.Quantile(0.8)).value
    excess = np.maximum(log.outcome - c, 0.0)
    tail = c + (w @ excess) / w.sum() / 0.2
    assert asked(log, tt.TailMean(0.2)).value == pytest.approx(tail)


def test_three_outcomes():
    """G = ¼, ½, 1 at 1, 2, 4; F̂(2) = .6: F̂ = .35, .6, 1.1. The median is 2, .3 ∓ .1 gives 1, 2."""
    curve = Heights(np.array([[1.0, 1.0, 2.0, 0.0]])).curve(0)
    assert curve.tolist() == [0.25, 0.5, 1.0]
    way = Distribution(0.3, 2.0, 0.6, np.array([1.0, 2.0, 4.0]), curve)
    assert [way.at(p) for p in (0.1, 0.35, 0.36, 0.6, 0.61, 2.0)] == [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]
    assert way.ends(0.1) == (1.0, 2.0)


def test_joint_quantiles_by_hand():
    """F̂ with se .1 over a distribution of slope ½: the quantile has .2, correlations stay."""
    grid = np.linspace(0.0, 2.0, 20_001)
    ways = [Distribution(0.5, 1.0, 0.5, grid, grid / 2) for _ in range(2)]
    found = StudentInference(
        "t",
        np.full(2, 0.5),
        0.01 * np.array([[1.0, 0.5], [0.5, 1.0]]),
        np.array([9.0, 7.0]),
        (None, None),
    )
    joint = QuantileInference.of(found, ways)
    np.testing.assert_allclose(
        joint.covariance, 0.04 * np.array([[1.0, 0.5], [0.5, 1.0]]), rtol=2e-3
    )
    half = 0.2 * stats.t.ppf(0.975, 9)
    assert joint.interval(0).at(0.95) == pytest.approx((1 - half, 1 + half), abs=2e-4)
    difference = joint.contrast(0, 1)
    assert difference.se == pytest.approx(0.2, rel=2e-3)
    assert difference.degrees == 7.0
    alone = joint.only([1])
    assert alone.interval(0).degrees == 7.0
    assert joint.interval(0).note is None
    edge = QuantileInference.of(found, [Distribution(0.9, 1.0, 0.5, grid, grid / 2)] * 2)
    assert "too few rows lie beyond" in edge.interval(0).note


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("functional", EVERY, ids=repr)
@pytest.mark.parametrize("estimator", [tt.SelfNormalized(), PLAIN], ids=["sn", "dr"])
def test_another_unit_of_the_outcome(functional, estimator):
    log = log_of()
    other = log.with_outcome(3.0 * log.outcome - 2.0)
    there = tt.Exceeds(3 * 0.8 - 2) if isinstance(functional, tt.Exceeds) else functional
    one, two = asked(log, functional, estimator=estimator), asked(other, there, estimator=estimator)
    a, b = (1.0, 0.0) if isinstance(functional, tt.Exceeds) else (3.0, -2.0)
    assert two.value == pytest.approx(a * one.value + b, rel=1e-9)
    assert two.se == pytest.approx(a * one.se, rel=1e-9)
    assert two.interval() == pytest.approx([a * end + b for end in one.interval()], rel=1e-9)


def test_lower_tails_are_upper_ones_with_another_sign():
    log = log_of()
    mirrored = log.with_outcome(-log.outcome)
    # A quantile is an outcome: from the other side it may be the next one.
    low, high = asked(log, tt.TailMean(0.2, lower=True)), asked(mirrored, tt.TailMean(0.2))
    assert low.value == pytest.approx(-high.value, abs=1e-3)
    assert low.se == pytest.approx(high.se, rel=0.02)
    left, right = Excess(1.0, lower=True)(log), Excess(-1.0, lower=False)(mirrored)
    np.testing.assert_array_equal(left.outcome, right.outcome)


def test_quantiles_are_in_order_and_tails_beyond_them():
    log = log_of()
    values = [asked(log, tt.Quantile(p)).value for p in (0.2, 0.5, 0.8, 0.9)]
    assert values == sorted(values)
    assert asked(log, tt.TailMean(0.1)).value > values[-1]
    shares = [asked(log, tt.Exceeds(c)).value for c in (0.0, 1.0, 2.0)]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("functional", EVERY, ids=repr)
def test_files_are_memory(functional, tmp_path):
    log = log_of()
    names = {"treatment": "t", "outcome": "y", "propensity": "q"}
    table = pa.table(log.to_columns(**names))
    for k in range(2):
        pq.write_table(table.slice(250 * k, 250), tmp_path / f"{k}.parquet")
    source = tt.scan_parquet(str(tmp_path / "*.parquet"), tt.Columns(**names, context=("a",)))
    settings = {"estimator": PLAIN}
    here, there = asked(log, functional, **settings), asked(source, functional, **settings)
    assert there.value == pytest.approx(here.value, rel=1e-9)
    assert there.interval() == pytest.approx(here.interval(), rel=1e-9)


@pytest.mark.parametrize("functional", EVERY, ids=repr)
def test_rows_repeated_within_their_group_change_nothing(functional):
    log = log_of(300)
    again = np.repeat(np.arange(300), 2)
    twice = tt.LoggedData(
        log.context[again],
        log.treatment[again],
        log.outcome[again],
        log.propensity[again],
        groups=again,
        names=log.names,
    )
    one = asked(log, functional)
    two = asked(twice, functional)
    assert two.value == pytest.approx(one.value, rel=1e-9)
    assert two.interval() == pytest.approx(one.interval(), rel=0.01)


def test_weights_and_missing_outcomes_count():
    log = log_of(400)
    rng = np.random.default_rng(5)
    weighted = log.with_weights(rng.uniform(0.5, 2.0, 400))
    w = weights(log) * weighted.weights
    order = np.argsort(log.outcome)
    along = np.cumsum(w[order]) / w.sum()
    expected = log.outcome[order][np.searchsorted(along, 0.7)]
    assert asked(weighted, tt.Quantile(0.7)).value == expected
    y = np.where(rng.random(400) < 0.2, np.nan, log.outcome)
    some = tt.LoggedData(log.context, log.treatment, y, log.propensity, missing_outcome="weight")
    seen = y[~np.isnan(y)]
    median = tt.evaluate(some, tt.StatusQuo(), functional=tt.Quantile(0.5), **QUICK).value
    assert median == pytest.approx(np.median(seen), abs=0.15)


def test_policies_are_compared_by_paired_differences():
    log = log_of(800)
    pair = {"low": tt.Constant(0.0), "near": tt.Constant(0.05), "logged": tt.StatusQuo()}
    for functional in (tt.Quantile(0.5), tt.TailMean(0.3)):
        found = tt.compare(log, pair, functional=functional, **QUICK)
        alone = asked(log, functional).method["functional"]
        assert alone == repr(functional) == found["low"].method["functional"]
        contrast = found.contrast("near", "low")
        apart = np.hypot(found["near"].confidence.se, found["low"].confidence.se)
        assert contrast.confidence.se < 0.7 * apart  # the same rows answer for both
        assert contrast.difference == pytest.approx(found["near"].value - found["low"].value)
        assert set(found.simultaneous()) == set(pair)
        found.to_dict()


def test_a_policy_without_overlap_is_refused_and_the_others_are_answered():
    pair = {"near": POLICY, "far": tt.Constant(50.0)}
    settings = {"estimator": tt.SelfNormalized(), "bandwidth": 0.6}
    for functional in (tt.Quantile(0.5), tt.TailMean(0.3), tt.Exceeds(0.0)):
        found = tt.compare(log_of(), pair, functional=functional, **settings)
        assert found.names == ["near"]
        assert list(found.refused) == ["far"]


@pytest.mark.parametrize("functional", [tt.Quantile(0.5), tt.Exceeds(0.5), tt.TailMean(0.2)])
def test_a_model_of_means_has_no_distribution(functional):
    with pytest.raises(InvalidArgument, match="not of their distribution"):
        asked(log_of(), functional, estimator=tt.DirectMethod(), bandwidth=None)


def test_what_is_no_functional():
    for wrong in (0.0, 1.0, "a"):
        with pytest.raises(InvalidArgument):
            tt.Quantile(wrong)
        with pytest.raises(InvalidArgument):
            tt.TailMean(wrong)
    with pytest.raises(InvalidArgument):
        tt.Exceeds(np.inf)
    with pytest.raises(InvalidArgument, match="No outcome exceeds"):
        asked(log_of(), tt.Exceeds(1e6))
    with pytest.raises(InvalidArgument, match="Every outcome exceeds"):
        asked(log_of(), tt.Exceeds(-1e6))
    with pytest.raises(InvalidArgument, match="Joint estimates need"):
        asked(log_of(), tt.Quantile(0.5), interval=tt.PoissonBootstrap())
