"""The propensity given as functions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone

from titrant.errors import DataError, InvalidArgument
from titrant.propensity import Known, calibration

X = np.array([[0.0], [1.0], [2.0]])
T = np.array([0.0, 2.0, 2.0])


def density(X, t):
    return norm.pdf(t, X[:, 0])


def cdf(X, t):
    return norm.cdf(t, X[:, 0])


def test_functions_are_passed_on():
    model = Known(density, cdf, lambda X, rng: X[:, 0] + rng.standard_normal(len(X)))
    assert model.fit(X, T) is model
    np.testing.assert_array_equal(model.density(X, T), norm.pdf([0.0, 1.0, 0.0]))
    np.testing.assert_array_equal(model.cdf(X, T), norm.cdf([0.0, 1.0, 0.0]))
    assert model.score(X, T) == pytest.approx(np.mean(norm.logpdf([0.0, 1.0, 0.0])))
    np.testing.assert_array_equal(
        model.sample(X, 1), X[:, 0] + np.random.default_rng(1).standard_normal(3)
    )
    assert repr(model) == "Known(density)"


def test_clones_are_the_object_itself():
    model = Known(density=density, cdf=cdf)
    assert clone(model) is model


@pytest.mark.parametrize("method", ["cdf", "sample"])
def test_a_function_not_given_is_named(method):
    with pytest.raises(InvalidArgument, match=f"Pass `{method}=` to `Known`"):
        getattr(Known(density), method)(X, 1)


def test_functions_that_give_nonsense_are_refused():
    with pytest.raises(InvalidArgument, match=r"`density` of `Known` must be a function"):
        Known(0.5)
    with pytest.raises(DataError, match=r"one value a row; got shape \(\) for 3 rows"):
        Known(lambda _X, _t: 0.5).density(X, T)
    with pytest.raises(DataError, match="negative or not finite in 2 of 3 rows"):
        Known(lambda _X, _t: np.array([1.0, -1.0, np.nan])).density(X, T)
    with pytest.raises(DataError, match=r"outside \[0, 1\] in 1 of 3 rows"):
        Known(density, lambda _X, _t: np.array([1.0, 1.1, 0.0])).cdf(X, T)


def test_calibration_accepts_a_known_law():
    rng = np.random.default_rng(0)
    rows = 0.5 * rng.normal(size=(800, 1))
    found = calibration(Known(density, cdf), rows, rows[:, 0] + rng.normal(size=800))
    assert found.ks_p_value > 0.01
