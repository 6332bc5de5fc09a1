"""What is true of any propensity, over the room's list."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from titrant.errors import DataError
from titrant.propensity import (
    PROPENSITIES,
    DensityAverage,
    GatedMixture,
    KernelConditional,
    MultivariateGaussian,
    SmoothLocation,
    SmoothLocationScale,
)
from titrant.propensity import base as room

# Adaptive quadrature of a smooth function, asked for 1e-10.
INTEGRAL = 1e-8
# Central differences with a step of 1e-4 of the spread: error about step² and cdf rounding/step.
DIFFERENCE = 1e-6
# The same formulas on numbers that differ by rounding, through an iterative fit.
EQUIVARIANCE = 1e-6
# Sums in another order.
ROUNDING = 1e-12

SCALAR = [model for model in PROPENSITIES if model is not MultivariateGaussian]
# A product kernel has no coefficients, and counts a repeated column twice. Splines and products of
# a combination of columns are new features, and a ridge can do with fewer rows than coefficients.
BENT = [SmoothLocation, SmoothLocationScale, GatedMixture, DensityAverage]
LINEAR = [model for model in PROPENSITIES if model not in (KernelConditional, *BENT)]


@pytest.fixture(scope="module", params=SCALAR, ids=lambda model: model.__name__)
def fitted(request, log):
    return request.param().fit(*log)


def test_density_integrates_to_one(fitted, fresh):
    X, t = fresh
    for row in range(3):
        x = X[row : row + 1]
        mass, _ = quad(
            lambda dose, x=x: fitted.density(x, dose)[0],
            t.mean() - 40.0,
            t.mean() + 40.0,
            points=[t[row]],
            epsabs=1e-10,
            limit=500,
        )
        assert mass == pytest.approx(1.0, abs=INTEGRAL)


def test_density_is_the_derivative_of_the_cdf(fitted, fresh):
    X, t = fresh
    step = 1e-4
    slope = (fitted.cdf(X, t + step) - fitted.cdf(X, t - step)) / (2 * step)
    np.testing.assert_allclose(slope, fitted.density(X, t), atol=DIFFERENCE)


def test_cdf_runs_from_zero_to_one(fitted, fresh):
    X, _ = fresh
    assert np.all(fitted.cdf(X, -np.inf) == 0.0)
    np.testing.assert_allclose(fitted.cdf(X, np.inf), 1.0, rtol=ROUNDING)
    assert np.all(fitted.density(X, np.inf) == 0.0)
    grid = np.array([fitted.cdf(X, dose) for dose in np.linspace(0.0, 30.0, 50)])
    assert np.all(np.diff(grid, axis=0) >= -ROUNDING)


def test_probability_of_an_interval_is_the_difference_of_the_cdf(fitted, fresh):
    X, t = fresh
    probability = np.exp(fitted.log_probability(X, t, t + 1.5))
    np.testing.assert_allclose(
        probability, fitted.cdf(X, t + 1.5) - fitted.cdf(X, t), rtol=1e-9, atol=ROUNDING
    )


def test_samples_follow_the_cdf(fitted, fresh):
    X = np.repeat(fresh[0], 40, axis=0)
    ranks = fitted.cdf(X, fitted.sample(X, seed=5))
    # Under the law the p-value is uniform; the seed is fixed, so this is no lottery.
    assert kstest(ranks, "uniform").pvalue > 0.01
    np.testing.assert_array_equal(fitted.sample(X, 5), fitted.sample(X, np.random.default_rng(5)))
    assert np.any(fitted.sample(X, 5) != fitted.sample(X, 6))


@pytest.mark.parametrize("model", PROPENSITIES)
def test_units_of_dose_and_context_do_not_matter(model, log, fresh):
    # T' = cT + a has density f((t' − a)/c)/|c|.
    (X, t), (x, u) = log, fresh
    plain = model().fit(X, t).density(x, u)
    units = np.array([1e3, -0.5, 7.0])
    other = model().fit(X * units + 3.0, -40.0 * t + 5.0).density(x * units + 3.0, -40.0 * u + 5.0)
    np.testing.assert_allclose(other * 40.0, plain, rtol=EQUIVARIANCE)


@pytest.mark.parametrize("model", LINEAR)
def test_a_column_that_repeats_or_never_changes_tells_nothing(model, log, fresh):
    (X, t), (x, u) = log, fresh
    plain = model().fit(X, t).density(x, u)

    def padded(rows):
        return np.column_stack([rows, rows[:, 0] - 2 * rows[:, 2], np.full(len(rows), 7.0)])

    wide = model().fit(padded(X), t).density(padded(x), u)
    np.testing.assert_allclose(wide, plain, rtol=EQUIVARIANCE)


@pytest.mark.parametrize("model", PROPENSITIES)
def test_a_column_that_never_changes_tells_nothing(model, log, fresh):
    (X, t), (x, u) = log, fresh
    plain = model().fit(X, t).density(x, u)

    def padded(rows):
        return np.column_stack([np.full(len(rows), 7.0), rows])

    np.testing.assert_allclose(
        model().fit(padded(X), t).density(padded(x), u), plain, rtol=EQUIVARIANCE
    )


@pytest.mark.parametrize("model", PROPENSITIES)
def test_a_constant_column_gives_the_unconditional_density(model, log):
    _, t = log
    one = np.ones((len(t), 1))
    fitted = model().fit(one, t)
    q = fitted.density(one, np.full(len(t), t[0]))
    np.testing.assert_allclose(q, q[0], rtol=0.05 if model is KernelConditional else ROUNDING)
    assert 0.05 < q[0] < 1.0


@pytest.mark.parametrize("model", PROPENSITIES)
def test_rows_do_not_depend_on_their_company(model, log, fresh, monkeypatch):
    X, t = fresh
    fitted = model().fit(*log)
    whole = fitted.density(X, t)
    parts = np.concatenate([fitted.density(X[i : i + 7], t[i : i + 7]) for i in range(0, 50, 7)])
    np.testing.assert_allclose(parts, whole, rtol=ROUNDING)
    monkeypatch.setattr(room, "_BLOCK", 900)
    np.testing.assert_allclose(fitted.density(X, t), whole, rtol=ROUNDING)
    if model is not MultivariateGaussian:
        np.testing.assert_allclose(fitted.cdf(X, t), model().fit(*log).cdf(X, t), rtol=ROUNDING)


@pytest.mark.parametrize("model", PROPENSITIES)
def test_a_dose_without_randomness_is_refused(model, log):
    X, _ = log
    with pytest.raises(DataError, match=r"constant or an exact linear function .* 400 rows"):
        model().fit(X, np.full(len(X), 3.0))
    if model is not KernelConditional:
        with pytest.raises(DataError, match="has no density given the context"):
            model().fit(X, X @ [1.0, 2.0, 3.0])


@pytest.mark.parametrize("model", LINEAR)
def test_too_few_rows_are_refused(model):
    X = np.random.default_rng(0).normal(size=(4, 5))
    with pytest.raises(DataError, match="4 rows cannot determine 4 coefficients"):
        model().fit(X, np.arange(4.0) ** 2)


@pytest.mark.parametrize("model", PROPENSITIES)
def test_no_columns_are_refused_as_scikit_learn_does(model):
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        model().fit(np.empty((9, 0)), np.arange(9.0))


@pytest.mark.parametrize("model", SCALAR)
def test_bad_treatments_are_refused_with_counts(model, log, fresh):
    X, t = fresh
    fitted = model().fit(*log)
    with pytest.raises(DataError, match=r"shape \(3,\) for 50 rows"):
        fitted.density(X, [1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="NaN in 2 of 50 rows"):
        fitted.cdf(X, np.where(np.arange(50) < 2, np.nan, t))
    np.testing.assert_array_equal(fitted.density(X, t[:, None]), fitted.density(X, t))
