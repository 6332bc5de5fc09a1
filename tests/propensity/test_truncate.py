"""Laws of a propensity cut to bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import truncnorm

from titrant.errors import DataError, InvalidArgument
from titrant.propensity import (
    PROPENSITIES,
    Known,
    LinearGaussian,
    MultivariateGaussian,
    truncated_cdf,
    truncated_density,
)

# Adaptive quadrature between the bounds.
INTEGRAL = 1e-8
# Two closed forms of the truncated normal; scipy's loses a few digits in the tails.
REFERENCE = 1e-9

SCALAR = [model for model in PROPENSITIES if model is not MultivariateGaussian]


@pytest.mark.parametrize("model", SCALAR)
@pytest.mark.parametrize("bounds", [(14.0, 16.0), (-np.inf, 13.0), (18.0, np.inf)])
def test_mass_inside_the_bounds_is_one(model, bounds, log, fresh):
    fitted = model().fit(*log)
    x = fresh[0][:1]
    low, high = bounds
    mass, _ = quad(
        lambda t: truncated_density(fitted, x, t, low, high)[0],
        max(low, -20.0),
        min(high, 60.0),
        limit=500,
        epsabs=1e-10,
    )
    assert mass == pytest.approx(1.0, abs=INTEGRAL)


@pytest.mark.parametrize("model", SCALAR)
def test_cdf_and_density_agree_and_stop_at_the_bounds(model, log, fresh):
    fitted = model().fit(*log)
    X, t = fresh
    low, high = t - 1.0, np.full(len(t), 40.0)  # one bound a row
    step = 1e-4
    slope = np.subtract(*(truncated_cdf(fitted, X, t + s, low, high) for s in (step, -step))) / (
        2 * step
    )
    np.testing.assert_allclose(slope, truncated_density(fitted, X, t, low, high), rtol=1e-4)
    for outside in (low - 0.01, high + 0.01):
        assert np.all(truncated_density(fitted, X, outside, low, high) == 0.0)
    np.testing.assert_array_equal(truncated_cdf(fitted, X, low - 1.0, low, high), 0.0)
    np.testing.assert_array_equal(truncated_cdf(fitted, X, high + 1.0, low, high), 1.0)
    column = truncated_density(fitted, X, t, low[:, None], high[:, None])
    np.testing.assert_array_equal(column, truncated_density(fitted, X, t, low, high))


@pytest.mark.parametrize("far", [0.0, 8.0, 30.0, -30.0])
def test_linear_gaussian_against_scipy_far_into_the_tails(far, log, fresh):
    model = LinearGaussian().fit(*log)
    X, _ = fresh
    mean, sd = model.mean_.predict(X), model.sd_
    low, high = mean + far * sd, mean + (far + 1.0) * sd
    t = low + 0.3 * sd
    law = truncnorm(far, far + 1.0, loc=mean, scale=sd)
    np.testing.assert_allclose(truncated_density(model, X, t, low, high), law.pdf(t), rtol=1e-8)
    np.testing.assert_allclose(truncated_cdf(model, X, t, low, high), law.cdf(t), rtol=1e-8)


@pytest.mark.parametrize("model", SCALAR)
def test_no_bounds_change_nothing(model, log, fresh):
    fitted = model().fit(*log)
    free = (-np.inf, np.inf)
    np.testing.assert_array_equal(truncated_density(fitted, *fresh, *free), fitted.density(*fresh))
    np.testing.assert_array_equal(truncated_cdf(fitted, *fresh, *free), fitted.cdf(*fresh))


def test_a_known_law_is_truncated_by_its_cdf():
    # Exponential on [0, ∞) cut to [1, 2]: density e^{−t}/(e^{−1} − e^{−2}).
    model = Known(lambda _X, t: np.exp(-t), lambda _X, t: 1.0 - np.exp(-t))
    X, t = np.zeros((3, 1)), np.array([0.5, 1.5, 2.0])
    mass = np.exp(-1.0) - np.exp(-2.0)
    np.testing.assert_allclose(
        truncated_density(model, X, t, 1.0, 2.0), [0.0, np.exp(-1.5) / mass, np.exp(-2.0) / mass]
    )
    np.testing.assert_allclose(
        truncated_cdf(model, X, t, 1.0, 2.0), [0.0, (np.exp(-1.0) - np.exp(-1.5)) / mass, 1.0]
    )
    # Far in its tail the plain difference of a cdf is 0: refused, not nan.
    with pytest.raises(DataError, match="no probability inside the bounds in 3 of 3 rows"):
        truncated_density(model, X, t, 50.0, 51.0)


def test_bounds_that_cross_are_refused(log, fresh):
    model = LinearGaussian().fit(*log)
    with pytest.raises(DataError, match="it is not in 50 of 50 rows"):
        truncated_density(model, *fresh, 3.0, 3.0)


def test_vector_treatments_are_truncated_only_if_nothing_is_cut(log):
    X, t = log
    T = np.column_stack([t, t**2])
    model = MultivariateGaussian().fit(X, T)
    free = np.full(T.shape, np.inf)
    np.testing.assert_array_equal(truncated_density(model, X, T, -free, free), model.density(X, T))
    with pytest.raises(InvalidArgument, match="vector propensities is not supported yet"):
        truncated_density(model, X, T, 0.0, np.inf)
