"""One log in blocks of any size: the same answer, and bit for bit the same in the same blocks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from evaluation.logs import KINDS, NEAR, kind_name, propensity_for, smooth_log
from sweeps import long
from titrant import (
    Constant,
    DoublyRobust,
    GaussianMixture,
    LinearGaussian,
    LocationScale,
    LoggedData,
    SelfNormalized,
    bandwidth_path,
    compare,
    curve,
    evaluate,
)
from titrant.bandwidth import SELECTORS
from titrant.data.simulate import Dosing, Quadratic
from titrant.evaluation import evaluation
from titrant.execute import BLOCK, add_up
from titrant.inference import INTERVALS, PoissonBootstrap

MERGED = 1e-12  # sums over blocks, added in another order
ERRORS = 1e-10  # variances of such sums

SIZES = [7, *long(1)]
LOG, LONG = smooth_log(50), smooth_log(150)
POLICIES = {"near": NEAR, "constant": Constant(0.4)}


@pytest.fixture(params=SIZES, ids=lambda size: f"blocks of {size}")
def size(request):
    return request.param


def in_blocks_of(size, monkeypatch, ask):
    """What `ask` returns when a log is cut into blocks of this many rows."""
    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "BLOCK", size)
        return ask()


def test_the_block_is_larger_than_these_logs():
    # So that without patching there is one block, and with it there are many.
    assert len(LOG) < BLOCK
    assert evaluation.BLOCK == BLOCK


@pytest.mark.parametrize("interval", INTERVALS, ids=lambda i: type(i).__name__)
@pytest.mark.parametrize("estimator", KINDS, ids=kind_name)
def test_every_estimator_and_interval(estimator, interval, size, monkeypatch):
    def ask():
        return compare(
            LOG,
            POLICIES,
            estimator=estimator,
            bandwidth=0.5,
            propensity=propensity_for(estimator),
            interval=interval,
            allow_untrusted=True,
        )

    whole, cut = ask(), in_blocks_of(size, monkeypatch, ask)
    for name in POLICIES:
        a, b = whole[name], cut[name]
        assert b.value == pytest.approx(a.value, rel=MERGED)
        assert b.se == pytest.approx(a.se, rel=ERRORS)
        assert b.ess == pytest.approx(a.ess, rel=MERGED)
        np.testing.assert_allclose(b.interval(), a.interval(), rtol=ERRORS)
        for check in a.diagnostics.checks:
            assert b.diagnostics[check.name].value == pytest.approx(check.value, rel=1e-7, abs=1e-9)
            assert b.diagnostics[check.name].verdict == check.verdict
    contrast, expected = (r.contrast("near", "constant") for r in (cut, whole))
    assert contrast.se == pytest.approx(expected.se, rel=1e-8)
    # As observed both policies have the same value: the ends are 0 but for rounding.
    np.testing.assert_allclose(contrast.interval(), expected.interval(), rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("estimator", KINDS, ids=kind_name)
def test_the_same_blocks_give_the_same_bits(estimator, monkeypatch):
    def ask():
        return compare(
            LOG,
            POLICIES,
            estimator=estimator,
            propensity=propensity_for(estimator),
            interval=PoissonBootstrap(draws=100),
            allow_untrusted=True,
        ).to_dict()

    assert in_blocks_of(7, monkeypatch, ask) == in_blocks_of(7, monkeypatch, ask)


@pytest.mark.parametrize("selector", [None, *SELECTORS], ids=repr)
def test_every_selector_chooses_the_same_bandwidth(selector, size, monkeypatch):
    def ask():
        return evaluate(
            LOG, NEAR, estimator=SelfNormalized(), bandwidth=selector, allow_untrusted=True
        )

    cut = in_blocks_of(size, monkeypatch, ask)
    assert cut.bandwidth.h == pytest.approx(ask().bandwidth.h, rel=1e-9)
    assert cut.value == pytest.approx(ask().value, rel=1e-9)


@pytest.mark.parametrize(
    "model", [LinearGaussian(), GaussianMixture(components=2), LocationScale()], ids=repr
)
def test_fitted_propensities(model, size, monkeypatch):
    # Fitted once on the whole log; bounded, so that densities are cut row by row.
    log = Dosing().draw(60, 0, propensity=False)

    def ask():
        return evaluate(
            log,
            Constant(40.0),
            estimator=SelfNormalized(),
            bandwidth=10.0,
            propensity=model,
            allow_untrusted=True,
        )

    assert in_blocks_of(size, monkeypatch, ask).value == pytest.approx(ask().value, rel=MERGED)


def test_bounds_that_differ_by_row_stay_with_their_rows(size, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(150, 1))
    low, high = x[:, 0], 2 + x[:, 0]
    t = rng.uniform(low, high)
    log = LoggedData(x, t, t + rng.normal(size=150), np.full(150, 0.5), bounds=(low, high))

    def ask():
        return evaluate(
            log, lambda X: X[:, 0] + 0.1, estimator=SelfNormalized(), bandwidth=0.8
        ).interval()

    np.testing.assert_allclose(in_blocks_of(size, monkeypatch, ask), ask(), rtol=1e-9)


def test_two_doses(size, monkeypatch):
    log = Quadratic(dimension=2).draw(60, 0)

    def ask():
        return evaluate(
            log, Constant([0.3, 0.9]), estimator=SelfNormalized(), bandwidth=(1.1, 1.2)
        ).interval()

    np.testing.assert_allclose(in_blocks_of(size, monkeypatch, ask), ask(), rtol=ERRORS)


def test_curves_and_paths(size, monkeypatch):
    doubly = DoublyRobust(outcome=LinearRegression())

    def a_curve():
        return curve(LOG, Constant, [0.1, 0.4], estimator=doubly, bandwidth=0.8).band(seed=1)

    def a_path():
        return bandwidth_path(LOG, NEAR, estimator=doubly).covariance

    np.testing.assert_allclose(in_blocks_of(size, monkeypatch, a_curve), a_curve(), rtol=1e-9)
    cut, whole = in_blocks_of(size, monkeypatch, a_path), a_path()
    np.testing.assert_allclose(cut, whole, rtol=1e-8, atol=1e-12)


def test_a_slice_of_a_log_is_cross_fitted_in_its_own_place():
    # A slice keeps its row numbers, so its folds are those it has in the whole log.
    doubly = DoublyRobust(outcome=LinearRegression())
    slice_ = evaluate(LONG.rows(slice(30, None)), NEAR, estimator=doubly, bandwidth=0.6)
    moved = evaluate(LONG.rows(np.arange(30, 150)), NEAR, estimator=doubly, bandwidth=0.6)
    assert slice_.value != moved.value
    assert slice_.value == pytest.approx(moved.value, abs=slice_.se)


def test_blocks_are_added_in_their_order():
    # Floating-point sums depend on the order: 1 is lost beside 2⁵³ when it comes second.
    blocks = [2.0**53, 1.0, -(2.0**53), 1.0]
    assert add_up(float, blocks) == ((2.0**53 + 1.0) - 2.0**53) + 1.0 == 1.0
    assert add_up(float, reversed(blocks)) == ((1.0 - 2.0**53) + 1.0) + 2.0**53 == 2.0
    assert add_up(str, [1, 2, 3]) == "123"


def test_each_block_is_looked_at_once():
    seen = []

    def statistic(block):
        seen.append(block)
        return 1

    assert add_up(statistic, iter("abc")) == 3
    assert seen == ["a", "b", "c"]
