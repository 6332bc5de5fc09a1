"""Small cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from titrant.errors import InvalidArgument
from titrant.propensity import (
    GaussianMixture,
    KernelConditional,
    LinearGaussian,
    MultivariateGaussian,
)
from titrant.propensity.kernel_conditional import KernelDensity, binned, silverman
from titrant.propensity.mixture import Regressions, criterion

# A handful of additions and one exponential.
EXACT = 1e-12

X = np.array([[0.0], [1.0], [2.0]])


def phi(z):
    return np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)


def test_linear_gaussian_on_three_rows():
    # t̄ = 1, slope = Σ(x−1)(t−1)/Σ(x−1)² = (1 + 0 + 0)/2 = ½, intercept = 1 − ½ = ½;
    # fitted ½, 1, 3/2; residuals −½, 1, −½; s² = 1.5/(3 − 2) = 1.5.
    model = LinearGaussian().fit(X, [0.0, 2.0, 1.0])
    assert model.mean_.slopes == pytest.approx([0.5], abs=EXACT)
    assert model.mean_.intercept == pytest.approx(0.5, abs=EXACT)
    assert model.sd_ == pytest.approx(np.sqrt(1.5), abs=EXACT)
    # At x = 2 the mean is 3/2: the density there is 1/√(2π·1.5), half the mass lies below.
    assert model.density([[2.0]], 1.5) == pytest.approx([1 / np.sqrt(3 * np.pi)], abs=EXACT)
    assert model.cdf([[2.0]], 1.5) == pytest.approx([0.5], abs=EXACT)


def test_linear_gaussian_keeps_log_densities_far_away():
    model = LinearGaussian().fit(X, [0.0, 2.0, 1.0])
    # 1000 from the mean: the density underflows, its logarithm does not.
    expected = -0.5 * 1000.0**2 / 1.5 - 0.5 * np.log(3 * np.pi)
    assert model.log_density([[2.0]], 1001.5) == pytest.approx([expected], rel=EXACT)


def test_kernel_conditional_leaves_a_training_row_out_of_its_own_density():
    model = KernelConditional(context_bandwidths=[1.0], treatment_bandwidth=1.0)
    model.fit(X, [0.0, 1.0, 2.0])
    # Row 0: votes of rows 1 and 2 are e^{−1/2}, e^{−2}; their doses are 1 and 2 away.
    a, b = np.exp(-0.5), np.exp(-2.0)
    assert model.density([[0.0]], 0.0) == pytest.approx(
        [(a * phi(1.0) + b * phi(2.0)) / (a + b)], abs=EXACT
    )
    # At another dose all three rows vote, and so they do in the cdf.
    assert model.density([[0.0]], 0.5) == pytest.approx(
        [(phi(0.5) + a * phi(0.5) + b * phi(1.5)) / (1 + a + b)], abs=EXACT
    )


def test_kernel_conditional_removes_one_of_two_equal_rows():
    model = KernelConditional(context_bandwidths=[1.0], treatment_bandwidth=1.0)
    model.fit(np.array([[0.0], [0.0], [1.0]]), [0.0, 0.0, 1.0])
    a = np.exp(-0.5)
    assert model.density([[0.0]], 0.0) == pytest.approx(
        [(phi(0.0) + a * phi(1.0)) / (1 + a)], abs=EXACT
    )


def test_kernel_conditional_far_from_all_rows_follows_the_nearest():
    model = KernelConditional(context_bandwidths=[1.0], treatment_bandwidth=1.0)
    model.fit(X, [0.0, 5.0, 1.0])
    # 88 bandwidths from the nearest row every vote underflows.
    assert model.density([[90.0]], 1.0) == pytest.approx([phi(0.0)], rel=1e-6)
    # A value a hundred times as far from the median as the last one is a slip: it counts as that.
    median = [[float(np.median(X))]]
    assert model.density([[1e4]], 0.5) == pytest.approx(model.density(median, 0.5), rel=EXACT)


@pytest.mark.parametrize("bandwidths", [[1.0], [1.0, 0.0], [1.0, np.nan], "wide"])
def test_kernel_conditional_refuses_bandwidths(bandwidths):
    model = KernelConditional(context_bandwidths=bandwidths)
    with pytest.raises(InvalidArgument, match="`context_bandwidths` of `KernelConditional`"):
        model.fit(np.random.default_rng(0).normal(size=(9, 2)), np.arange(9.0))


def test_multivariate_gaussian_on_four_rows():
    # x = −1, −1, 1, 1 and two doses (x + 1, ·) with residuals ±1: both means are affine,
    # e₁ = (1, −1, 1, −1), e₂ = (1, −1, −1, 1), so S = diag(4, 4)/(4 − 2) = 2·I.
    rows = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    t = np.array([[1.0, 1.0], [-1.0, -1.0], [3.0, -1.0], [1.0, 1.0]])
    model = MultivariateGaussian().fit(rows, t)
    np.testing.assert_allclose(model.covariance_, 2 * np.eye(2), atol=EXACT)
    np.testing.assert_allclose(model.mean_.slopes, [[1.0, 0.0]], atol=EXACT)
    # At the mean of x = 1, (2, 0), the density is 1/(2π·√4).
    assert model.density([[1.0]], [[2.0, 0.0]]) == pytest.approx([1 / (4 * np.pi)], abs=EXACT)


def test_silverman_and_linear_binning_by_hand():
    # 1…5: sd √2.5, IQR 2 → 2/1.349 is smaller; n^(−1/5) = 5^(−0.2).
    assert silverman(np.arange(1.0, 6.0)) == pytest.approx(0.9 * 2 / 1.349 * 5**-0.2)
    # Three equal values of five: the quartiles coincide, so the sd is used.
    values = np.array([0.0, 1.0, 1.0, 1.0, 2.0])
    assert silverman(values) == pytest.approx(0.9 * np.std(values, ddof=1) * 5**-0.2)
    # 0.3 lies between 0 and 1: 70 % to the left; 2 lies on the grid.
    centers, weights = binned(np.array([0.3, 2.0]), 1.0)
    np.testing.assert_allclose(centers, [0.0, 1.0, 2.0])
    np.testing.assert_allclose(weights, [0.35, 0.15, 0.5])


def test_binned_density_is_close_to_the_exact_one():
    values = np.random.default_rng(3).normal(size=5_000)
    exact = KernelDensity(values, np.full(5_000, 1 / 5_000), silverman(values))
    short = KernelDensity.of(values)
    assert len(short.centers) < 500
    grid = np.linspace(-4.0, 4.0, 81)

    def evaluate(kde):
        z = (grid[:, None] - kde.centers) / kde.bandwidth
        return phi(z) @ kde.weights / kde.bandwidth

    # The kernel is 0.3 % wider (width²/6 = bandwidth²/150 more variance).
    np.testing.assert_allclose(evaluate(short), evaluate(exact), atol=2e-3 * 0.4)


@pytest.mark.parametrize("components", [1, 2, 3])
def test_the_criterion_of_a_mixture_counts_every_parameter(components):
    # K regressions have K·k coefficients, K standard deviations and K − 1 free weights.
    rng = np.random.default_rng(components)
    Z, r = np.column_stack([np.ones(50), rng.normal(size=(50, 2))]), rng.normal(size=50)
    weights = np.full(components, 1 / components)
    coef, sds = rng.normal(size=(components, 3)), rng.uniform(0.5, 2.0, components)
    fit = Regressions(np.log(weights), coef, sds)
    density = sum(
        w * np.exp(-0.5 * ((r - Z @ b) / s) ** 2) / (s * np.sqrt(2 * np.pi))
        for w, b, s in zip(weights, coef, sds, strict=True)
    )
    parameters = components * 3 + components + (components - 1)
    expected = -2 * np.log(density).sum() + parameters * np.log(50)
    assert criterion(fit, Z, r) == pytest.approx(expected, rel=1e-12)


def test_one_component_has_the_criterion_of_a_regression():
    # In units of the residual sd √(RSS/(n − k)), RSS = n − k: −2ℓ = n·log(2π(n − k)/n) + n.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    t = X @ [1.0, -0.5] + rng.normal(size=80)
    found = GaussianMixture(components=1).fit(X, t).bic_
    expected = 80 * np.log(2 * np.pi * 77 / 80) + 80 + 4 * np.log(80)
    assert found == pytest.approx([expected], rel=1e-6)
