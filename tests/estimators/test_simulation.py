"""Data with a known truth: bias at bounds, the size of standard errors, outcomes far from zero."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from laws.designs import CASES, estimate
from titrant.estimators import IPW, DoublyRobust, Rows, SelfNormalized
from titrant.kernels import Boundary, Epanechnikov, Scale

SIGMAS = 4  # a seeded simulation may be this many of its own standard errors off


def bounded_rows(tau, t, y) -> Rows:
    """Doses uniform on [0, 1]: q = 1."""
    n = len(y)
    zero = np.zeros((n, 1))
    return Rows(
        tau=np.broadcast_to(tau, n)[:, None].astype(float),
        t=t[:, None],
        y=y,
        center=float(y.mean()),
        q=np.ones(n),
        lower=zero,
        upper=zero + 1,
    )


@pytest.mark.parametrize("estimator", [IPW, SelfNormalized], ids=lambda e: e.__name__)
@pytest.mark.parametrize("tau", [0.0, 1.0])
def test_a_constant_outcome_at_a_bound(estimator, tau):
    # T ~ U[0, 1], E[Y] = 5, τ at a bound: 5, not 2.5.
    rng = np.random.default_rng(1)
    t = rng.uniform(size=20_000)
    rows = bounded_rows(tau, t, 5 + rng.normal(size=t.size))
    value, se = estimate(estimator(), rows, Scale.of(0.2, 1))
    assert se < 0.2
    assert value == pytest.approx(5, abs=SIGMAS * se)
    if estimator is IPW:
        value, se = estimate(IPW(boundary=Boundary.NONE), rows, Scale.of(0.2, 1))
        assert value == pytest.approx(2.5, abs=SIGMAS * se)


# T ~ U[0, 1], X ~ U[0, 1], τ = .1x, h = .2 and m = 1 + 3t, by hand: with s = τ/h ~ U[0, ½],
# a₀(s) = ½ + ¾s − ¼s³ has mean .6797 and a₁(s) = 3(1 − s²)²/16 has mean .15859, so
# none: E[(1 + 3τ)(a₀ − 1)] + 3h·E[a₁] = −.2645; mass: 3h·E[a₁/a₀] = .1464; linear: 0.
BIASES = {Boundary.NONE: -0.26453, Boundary.MASS: 0.14641, Boundary.LINEAR: 0.0}


@pytest.mark.parametrize("boundary", BIASES, ids=lambda b: b.name)
def test_bias_of_each_correction_near_a_bound(boundary):
    # A grid of contexts and doses in place of random ones: the mean over it is the expectation.
    x, t = (g.ravel() for g in np.meshgrid(*[(np.arange(400) + 0.5) / 400] * 2))
    rows = bounded_rows(0.1 * x, t, 1 + 3 * t)
    value, _ = estimate(IPW(boundary=boundary), rows, Scale.of(0.2, 1))
    truth = 1 + 3 * (0.1 * x).mean()
    assert value - truth == pytest.approx(BIASES[boundary], abs=5e-4)


@pytest.mark.parametrize("boundary", BIASES, ids=lambda b: b.name)
def test_bias_of_each_correction_in_samples(boundary):
    # The same with random rows, n = 500, as a user meets it.
    rng = np.random.default_rng(3)
    errors = []
    for _ in range(200):
        x, t = rng.uniform(size=(2, 500))
        rows = bounded_rows(0.1 * x, t, 1 + 3 * t + rng.normal(scale=0.3, size=500))
        value, _ = estimate(IPW(boundary=boundary), rows, Scale.of(0.2, 1))
        errors.append(value - 1.15)
    assert np.mean(errors) == pytest.approx(BIASES[boundary], abs=SIGMAS * stats.sem(errors))


def test_quadratic_correction_follows_a_parabola():
    # m = t²: linear leaves order h², the quadratic kernel nothing. A grid of doses, τ = 0.
    t = (np.arange(200_000) + 0.5) / 200_000
    rows = bounded_rows(0.0, t, t**2)
    scale = Scale.of(0.4, 1)
    linear, _ = estimate(IPW(), rows, scale)
    quadratic, _ = estimate(IPW(boundary=Boundary.QUADRATIC), rows, scale)
    # ∫K*v²dv·h² = (a₂² − a₁a₃)/(a₀a₂ − a₁²)·h² = (1/100 − 3/256)/(1/20 − 9/256)·.16
    assert linear == pytest.approx((1 / 100 - 3 / 256) / (1 / 20 - 9 / 256) * 0.16, abs=1e-6)
    assert quadratic == pytest.approx(0, abs=1e-6)


def smooth_design(rng, n):
    """X ~ U[0, 1], T ~ N(x, 1), Y = (t − x)² + x + noise, policy τ = x + ½: V = ¼ + ½."""
    x = rng.uniform(size=n)
    t = rng.normal(x)
    y = (t - x) ** 2 + x + rng.normal(scale=0.5, size=n)
    tau = x + 0.5
    return Rows(
        tau=tau[:, None],
        t=t[:, None],
        y=y,
        center=float(y.mean()),
        q=stats.norm.pdf(t - x),
        r_tau=0.8 * (tau - x) ** 2 + x,
        r_logged=0.8 * (t - x) ** 2 + x,
    )


FORMS = [IPW(), SelfNormalized(), DoublyRobust(self_normalized=False), DoublyRobust()]


@pytest.fixture(scope="module")
def replicated(replications):
    """Values and standard errors (samples, 4, 2) of the four estimators, n = 400, h = .5."""
    rng = np.random.default_rng(8)
    scale = Scale.of(0.5, 1)
    return np.array(
        [
            [estimate(form, rows, scale) for form in FORMS]
            for rows in (smooth_design(rng, 400) for _ in range(replications(1_000, 10_000)))
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("i", range(4), ids=["IPW", "SN", "DR", "DR-SN"])
def test_the_delta_error_is_the_spread_over_samples(replicated, i):
    # 1,000 samples know a standard deviation to 2.2 %.
    values, errors = replicated[:, i].T
    assert errors.mean() == pytest.approx(values.std(), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("i", range(4), ids=["IPW", "SN", "DR", "DR-SN"])
def test_bias_and_variance_are_those_of_the_theory(replicated, i):
    # Bias (κ₂/2)h²E[m″] of the outcome, or of the residual, is exact here but for normalizing:
    # m″ = 2 (DR: .4), κ₂ = 1/5, h = ½ → .05 (DR: .01).
    values = replicated[:, i, 0]
    expected = 0.75 + (0.05 if i < 2 else 0.01)
    slack = 0 if i in {0, 2} else 0.005  # a ratio of means has a bias of order 1/(nh)
    assert values.mean() == pytest.approx(expected, abs=SIGMAS * stats.sem(values) + slack)


@pytest.mark.slow
def test_variance_of_ipw_is_that_of_the_theory():
    # n·Var = (R/h)E[E[Y²|τ, X]/f] − V² to first order in h; h = .1 makes the next order small.
    rng = np.random.default_rng(9)
    kernel, h, n = Epanechnikov(), 0.1, 2_000
    scale = Scale.of(h, 1)
    values = [estimate(IPW(), smooth_design(rng, n), scale)[0] for _ in range(500)]
    second = 0.25**2 + 2 * 0.25 * 0.5 + 1 / 3 + 0.25  # E[(¼ + X)²] + noise variance
    variance = kernel.roughness / h * second / stats.norm.pdf(0.5) - 0.75**2
    # 500 samples know a variance to 6 %.
    assert n * np.var(values) == pytest.approx(variance, rel=0.2)


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e8])
def test_outcomes_far_from_zero(offset):
    # Σw·y/Σw and its error in rational arithmetic; the mean outcome is taken off before squaring.
    rows = CASES[0].rows(200)
    y = np.round(rows.y * 1024) / 1024 + offset  # exact in binary, with the offset too
    rows = replace(rows, y=y, center=float(y.mean()))
    w = [Fraction(v) for v in SelfNormalized().weight(rows, CASES[0].scale)]
    total = sum(w)
    value = sum(wi * Fraction(yi) for wi, yi in zip(w, y, strict=True)) / total
    squares = sum((wi * (Fraction(yi) - value)) ** 2 for wi, yi in zip(w, y, strict=True))
    found = estimate(SelfNormalized(), rows, CASES[0].scale)
    # Half a unit in the last place of 1e8 is 7e-9, of the result and of the center.
    assert found[0] == pytest.approx(float(value), rel=1e-14, abs=2e-8)
    assert found[1] == pytest.approx(float(squares / total**2) ** 0.5, rel=1e-9)
