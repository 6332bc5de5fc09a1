"""Intervals that hold at once: exact limits of dependence, and an integral in between."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm

from titrant import InvalidArgument
from titrant.inference.base import DRAWS, simultaneous_probability

# The level is estimated from DRAWS draws of the largest |t|; four of its standard errors.
MONTE_CARLO = 4 * np.sqrt(0.95 * 0.05 / DRAWS)


def equicorrelated(m, rho):
    return np.full((m, m), rho) + (1 - rho) * np.eye(m)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_one_estimate_needs_no_draws(level):
    for variance in (1.0, 1e-12, 0.0):
        assert simultaneous_probability(np.array([[variance]]), level) == 0.5 + level / 2


@pytest.mark.parametrize("m", [2, 5, 20])
def test_independent_estimates_are_sidaks(m):
    # P(all |z| < c) = (2p − 1)^m = level.
    for seed in (0, 1):
        p = simultaneous_probability(np.eye(m), 0.95, seed)
        assert (2 * p - 1) ** m == pytest.approx(0.95, abs=MONTE_CARLO)


@pytest.mark.parametrize("m", [2, 10])
def test_perfectly_correlated_estimates_are_one(m):
    covariance = np.full((m, m), 4.0)
    signs = np.resize([1.0, -1.0], m)
    for c in (covariance, covariance * np.outer(signs, signs)):
        p = simultaneous_probability(c, 0.95)
        assert 2 * p - 1 == pytest.approx(0.95, abs=MONTE_CARLO)


@pytest.mark.parametrize(("m", "rho"), [(3, 0.5), (8, 0.8), (15, 0.2)])
def test_in_between_it_is_an_integral(m, rho):
    # Given the common part x the others are independent: ∫ φ(x) P(|√ρx + √(1−ρ)z| < c)^m dx.
    p = simultaneous_probability(equicorrelated(m, rho), 0.9)
    c = norm.ppf(p)

    def inside(x):
        a, s = np.sqrt(rho) * x, np.sqrt(1 - rho)
        return norm.pdf(x) * (norm.cdf((c - a) / s) - norm.cdf((-c - a) / s)) ** m

    level = integrate.quad(inside, -8, 8)[0]
    assert level == pytest.approx(0.9, abs=4 * np.sqrt(0.9 * 0.1 / DRAWS))


def test_only_correlations_matter():
    # The unit of each estimate is its own.
    rng = np.random.default_rng(0)
    a = rng.normal(size=(4, 6))
    covariance = a @ a.T
    scale = np.array([1e-6, 1.0, 1e3, 7.0])
    scaled = covariance * np.outer(scale, scale)
    expected = simultaneous_probability(covariance, 0.95)
    assert simultaneous_probability(scaled, 0.95) == pytest.approx(expected, rel=1e-9)


def test_estimates_without_variance_do_not_count():
    covariance = np.zeros((4, 4))
    covariance[:2, :2] = np.eye(2)
    expected = simultaneous_probability(np.eye(2), 0.95)
    assert simultaneous_probability(covariance, 0.95) == expected
    assert simultaneous_probability(np.zeros((3, 3)), 0.95) == 0.975


def test_a_covariance_of_low_rank():
    # A curve over many parameters has a nearly singular covariance; rounding may go below zero.
    x = np.linspace(0, 1, 40)
    basis = np.stack([np.ones_like(x), x])
    p = simultaneous_probability(basis.T @ basis, 0.95)
    lower = simultaneous_probability(np.ones((2, 2)), 0.95)
    upper = simultaneous_probability(np.eye(40), 0.95)
    assert lower < p < upper


def test_more_estimates_and_higher_levels_need_more():
    by_m = [simultaneous_probability(equicorrelated(m, 0.3), 0.95) for m in (1, 2, 4, 8, 16)]
    assert (np.diff(by_m) > 0).all()
    by_level = [simultaneous_probability(equicorrelated(4, 0.3), q) for q in (0.5, 0.8, 0.99)]
    assert (np.diff(by_level) > 0).all()


def test_a_seed_is_an_answer():
    c = equicorrelated(5, 0.5)
    assert simultaneous_probability(c, 0.9, 1) == simultaneous_probability(c, 0.9, 1)
    assert simultaneous_probability(c, 0.9, 1) != simultaneous_probability(c, 0.9, 2)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, np.nan, "high"])
def test_the_level_is_a_probability(level):
    with pytest.raises(InvalidArgument, match="The `level` of `simultaneous` must be"):
        simultaneous_probability(np.eye(2), level)


def test_draws_are_the_generators_own_where_estimates_are_independent():
    # The root of the correlation is the symmetric one, so that of the identity is the identity.
    # Another root, such as eigenvectors, would depend on the processor.
    z = np.random.default_rng(5).standard_normal((DRAWS, 4))
    expected = norm.cdf(np.quantile(np.abs(z).max(axis=1), 0.9))
    assert simultaneous_probability(np.diag([1.0, 4.0, 0.25, 9.0]), 0.9, 5) == pytest.approx(
        expected, rel=1e-12
    )
