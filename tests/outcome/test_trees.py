"""Smoothed trees."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.ensemble import ExtraTreesRegressor

from outcome.models import log
from titrant.errors import InvalidArgument
from titrant.outcome import Trees
from titrant.scaling import Standard, grained, residual_sd

X, T, Y = log(120)
# Standardizing there and back, and numbers grained to 2⁻²⁴.
GRAINED = 1e-6


def test_residual_sd_is_that_of_ols():
    reference = sm.OLS(T, sm.add_constant(X)).fit().resid.std()
    np.testing.assert_allclose(residual_sd(X, T[:, None]), [reference], rtol=1e-10)


def test_a_stray_dose_does_not_set_the_unit():
    rng = np.random.default_rng(3)
    x, t = np.ones((300, 1)), rng.normal(0.0, 2.0, (300, 1))
    assert residual_sd(x, t)[0] == pytest.approx(t.std(), rel=1e-12)
    t[7] = 500.0
    assert t.std() > 20.0
    # 2 up to the noise of two tail quantiles of 300 rows
    assert residual_sd(x, t)[0] == pytest.approx(2.0, rel=0.15)
    lumps = np.repeat([0.0, 1.0], 150)[:, None]
    assert residual_sd(x, lumps)[0] == pytest.approx(0.5, rel=1e-12)


def test_predictions_are_a_binomial_average_of_the_forest():
    model = Trees(trees=9, seed=3).fit(X, T, Y)
    columns, outcome = Standard.of(np.column_stack([X, T])), Standard.of(Y[:, None])
    forest = ExtraTreesRegressor(9, min_samples_leaf=5, random_state=3)
    forest.fit(grained(columns(np.column_stack([X, T]))), grained(outcome(Y[:, None]))[:, 0])
    step = 0.25 * residual_sd(X, T[:, None])[0]
    expected = np.zeros(120)
    for k, weight in zip((-2, -1, 0, 1, 2), (1, 4, 6, 4, 1), strict=True):
        moved = grained(columns(np.column_stack([X, T + k * step])))
        expected += weight / 16 * (Y.mean() + Y.std() * forest.predict(moved))
    np.testing.assert_allclose(model.predict(X, T), expected, rtol=GRAINED)


def test_without_width_it_is_the_forest():
    model = Trees(trees=9, width=0.0).fit(X, T, Y)
    columns = np.hstack([model.context_.grained(X), model.dose_.grained(T[:, None])])
    said = np.mean([tree.predict(columns) for tree in model.trees_], axis=0)
    expected = Y.mean() + Y.std() * said
    np.testing.assert_allclose(model.predict(X, T), expected, rtol=GRAINED)


def test_smoothing_smooths():
    grid = np.linspace(2, 10, 400)
    rough = Trees(trees=9, width=0.0).fit(X, T, Y).curve(X[:20], grid)
    smooth = Trees(trees=9).fit(X, T, Y).curve(X[:20], grid)
    assert np.abs(np.diff(smooth)).max() < 0.6 * np.abs(np.diff(rough)).max()


@pytest.mark.parametrize(
    ("parameters", "name"),
    [({"trees": 0}, "trees"), ({"leaf": 0}, "leaf"), ({"width": -1.0}, "width")],
)
def test_bad_parameters_are_refused(parameters, name):
    with pytest.raises(InvalidArgument, match=f"The `{name}` of `Trees`"):
        Trees(**parameters).fit(X, T, Y)


def test_standard_units():
    # Column 1: mean 2, sd 1; column 2 constant.
    x = np.array([[1.0, 7.0], [3.0, 7.0]])
    units = Standard.of(x)
    np.testing.assert_array_equal(units(x), [[-1, 0], [1, 0]])
    np.testing.assert_array_equal(units.back(units(x)), x)
    # 0.1 is 1677721.6 grains of 2⁻²⁴.
    assert grained(np.array([0.1]))[0] == 1677722 / 2**24
