"""Do the models find a truth of their kind?"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from titrant.errors import InvalidArgument
from titrant.propensity import (
    GaussianMixture,
    HeteroscedasticGaussian,
    KernelConditional,
    LinearGaussian,
    LocationScale,
    gaussian,
)

N = 4_000
# Root-mean-square error of densities that average about 0.3, with thousands of rows behind a
# dozen parameters: a few per cent.
PARAMETRIC = 0.02


def contexts(seed=0, columns=2):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(N, columns))


def phi(t, mean, sd):
    return np.exp(-0.5 * ((t - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))


def rmse(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


def test_heteroscedastic_truth():
    rng, X = contexts()
    mean, sd = 3.0 + X[:, 0], np.exp(-0.5 + 0.6 * X[:, 0] - 0.3 * X[:, 1])
    t = mean + sd * rng.normal(size=N)
    model = HeteroscedasticGaussian().fit(X, t)
    # Standard error of a coefficient of log sd: 1/√(2n) = 0.011.
    np.testing.assert_allclose(model.log_sd_.slopes, [0.6, -0.3], atol=0.04)
    assert model.log_sd_.intercept == pytest.approx(-0.5, abs=0.04)
    np.testing.assert_allclose(model.mean_.slopes, [1.0, 0.0], atol=0.05)
    truth = phi(t, mean, sd)
    assert rmse(model.density(X, t), truth) < 0.1 * rmse(
        LinearGaussian().fit(X, t).density(X, t), truth
    )


def test_heteroscedastic_survives_a_column_that_one_row_carries():
    rng, X = contexts()
    X[:, 1] = 0.0
    X[7, 1] = 1.0
    t = X[:, 0] + rng.normal(size=N)
    model = HeteroscedasticGaussian().fit(X, t)
    q = model.density(X, t)
    assert np.isfinite(q).all()
    assert rmse(np.delete(q, 7), np.delete(phi(t, X[:, 0], 1.0), 7)) < PARAMETRIC


def test_heteroscedastic_takes_wild_doses_in_smaller_steps():
    # With tails this heavy a full scoring step overshoots; the likelihood must still not fall.
    rng, X = contexts()
    t = X[:, 0] + rng.standard_cauchy(size=N)
    model = HeteroscedasticGaussian().fit(X, t)
    # The optimum is a stationary point: mean 1 of the squared standardized residuals.
    sd = np.exp(model.log_sd_.predict(X))
    squares = ((t - model.mean_.predict(X)) / sd) ** 2
    assert np.mean(squares) == pytest.approx(1.0, rel=0.01)


def test_heteroscedastic_says_when_it_has_not_settled(monkeypatch):
    rng, X = contexts()
    monkeypatch.setattr(gaussian, "_ITERATIONS", 1)
    with pytest.warns(ConvergenceWarning, match="took 1 steps without settling"):
        HeteroscedasticGaussian().fit(X, np.exp(X[:, 0]) * rng.normal(size=N))


def test_heteroscedastic_does_not_extrapolate_the_spread():
    rng, X = contexts()
    t = X[:, 0] + np.exp(0.5 * X[:, 0]) * rng.normal(size=N)
    model = HeteroscedasticGaussian().fit(X, t)
    far = np.array([[1.5 * X[:, 0].max(), 0.0]])
    widest = np.exp(model.log_sd_range_[1])
    assert model.density(far, model.mean_.predict(far)) == pytest.approx(phi(0, 0, widest))


def test_mixture_truth():
    rng, X = contexts()
    first = rng.uniform(size=N) < 0.7
    a, b = 1.0 + 0.5 * X[:, 0], 4.0 - X[:, 0] + X[:, 1]
    t = np.where(first, a + 0.6 * rng.normal(size=N), b + 0.3 * rng.normal(size=N))
    model = GaussianMixture().fit(X, t)
    assert model.components_ == 2
    np.testing.assert_allclose(model.weights_, [0.7, 0.3], atol=0.03)
    np.testing.assert_allclose(model.sds_, [0.6, 0.3], atol=0.03)
    np.testing.assert_allclose(model.means_[0].slopes, [0.5, 0.0], atol=0.05)
    np.testing.assert_allclose(model.means_[1].slopes, [-1.0, 1.0], atol=0.05)
    truth = 0.7 * phi(t, a, 0.6) + 0.3 * phi(t, b, 0.3)
    assert rmse(model.density(X, t), truth) < PARAMETRIC


def test_mixture_of_two_spreads_around_one_mean():
    rng, X = contexts(seed=1)
    sd = np.where(rng.uniform(size=N) < 0.5, 0.2, 2.0)
    t = X[:, 0] + sd * rng.normal(size=N)
    model = GaussianMixture().fit(X, t)
    assert model.components_ == 2
    np.testing.assert_allclose(np.sort(model.sds_), [0.2, 2.0], rtol=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_mixture_of_one_is_linear_gaussian(seed):
    rng, X = contexts(seed)
    t = 3.0 + X[:, 0] + 0.5 * rng.normal(size=N)
    model, line = GaussianMixture().fit(X, t), LinearGaussian().fit(X, t)
    assert model.components_ == 1
    assert model.bic_[0] == model.bic_.min()
    np.testing.assert_allclose(model.density(X, t), line.density(X, t), rtol=1e-10)


def test_mixture_of_few_rows_stays_simple():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 4))
    t = rng.normal(size=12)
    model, line = GaussianMixture(components=5).fit(X, t), LinearGaussian().fit(X, t)
    assert model.components_ == 1
    np.testing.assert_allclose(model.density(X, t), line.density(X, t), rtol=1e-10)


def test_mixture_does_not_sharpen_on_repeated_doses():
    rng, X = contexts()
    t = X[:, 0] + rng.normal(size=N)
    t[: N // 3] = 2.0
    model = GaussianMixture().fit(X, t)
    assert model.sds_.min() >= 0.05 * LinearGaussian().fit(X, t).sd_


def test_mixture_is_seeded():
    rng, X = contexts()
    t = np.abs(X[:, 0]) + rng.gamma(2.0, size=N)
    one, two = (GaussianMixture(seed=3).fit(X, t).density(X, t) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("parameter", ["components", "starts"])
def test_mixture_refuses_counts_below_one(parameter):
    model = GaussianMixture().set_params(**{parameter: 0})
    with pytest.raises(InvalidArgument, match=f"`{parameter}` of `GaussianMixture` must be"):
        model.fit(np.ones((9, 1)), np.arange(9.0))


def test_location_scale_with_regressors_of_the_user():
    rng, X = contexts()
    mean, scale = np.sin(2 * X[:, 0]), np.where(X[:, 1] > 0, 1.5, 0.5)
    # A skewed residual of mean 0 and variance 1.
    t = mean + scale * (rng.gamma(4.0, size=N) - 4.0) / 2.0
    forest = RandomForestRegressor(60, min_samples_leaf=20, random_state=0)
    neighbors = KNeighborsRegressor(200)
    model = LocationScale(mean=forest, scale=neighbors).fit(X, t)
    z = 2.0 * (t - mean) / scale + 4.0
    truth = np.where(z > 0, 2.0 / scale * np.maximum(z, 0) ** 3 * np.exp(-z) / 6.0, 0.0)
    flexible = rmse(model.density(X, t), truth)
    assert flexible < 0.5 * rmse(LocationScale().fit(X, t).density(X, t), truth)
    assert flexible < 0.5 * rmse(LinearGaussian().fit(X, t).density(X, t), truth)


def test_location_scale_takes_residuals_out_of_fold():
    # One neighbor interpolates: in-sample residuals are 0, out of fold they have sd √2.
    rng, X = contexts()
    t = rng.normal(size=N)
    model = LocationScale(mean=KNeighborsRegressor(1)).fit(X, t)
    assert model.scale_range_[0] == pytest.approx(np.sqrt(2.0), rel=0.05)


def test_location_scale_linear_in_both_parts_finds_the_heteroscedastic_truth():
    rng, X = contexts()
    sd = np.exp(-0.5 + 0.4 * X[:, 0])
    t = X[:, 1] + sd * rng.normal(size=N)
    model = LocationScale(scale=LinearRegression()).fit(X, t)
    assert rmse(model.density(X, t), phi(t, X[:, 1], sd)) < 0.04


def test_location_scale_refuses_one_fold():
    with pytest.raises(InvalidArgument, match="`folds` of `LocationScale`"):
        LocationScale(folds=1).fit(np.ones((9, 1)), np.arange(9.0))


def test_kernel_conditional_is_not_inflated_at_its_own_rows():
    rng, X = contexts(columns=4)
    X, t = X[:1500], X[:1500, 0] + rng.normal(size=1500)
    x, u = contexts(seed=9, columns=4)[1][:1500], None
    u = x[:, 0] + np.random.default_rng(10).normal(size=1500)
    model = KernelConditional().fit(X, t)
    # The leave-one-out score of the training rows is that of fresh rows, up to noise.
    assert model.score(X, t) == pytest.approx(model.score(x, u), abs=0.06)
