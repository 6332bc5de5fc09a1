"""The dose table: an interpolant."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline
from sklearn.tree import DecisionTreeRegressor

from outcome.models import log
from titrant.errors import InvalidArgument
from titrant.outcome import CrossFit, DoseTable, RidgeModel, SecondOrder

ROUNDING = 1e-12

RNG = np.random.default_rng(0)
TABLE = DoseTable(-1.0, 3.0, RNG.normal(size=(30, 9)))


def test_it_goes_through_the_tabulated_values():
    for j, dose in enumerate(TABLE.grid):
        np.testing.assert_allclose(TABLE(np.full(30, dose)), TABLE.values[:, j], rtol=ROUNDING)


def test_it_is_scipys_hermite_spline():
    t = RNG.uniform(-1, 3, 30)
    slopes = np.gradient(TABLE.values, 0.5, axis=1, edge_order=2)
    for i in range(30):
        reference = CubicHermiteSpline(TABLE.grid, TABLE.values[i], slopes[i])
        np.testing.assert_allclose(TABLE(t)[i], reference(t[i]), rtol=1e-10)


def test_a_quadratic_curve_is_exact():
    # r = (t − c)² + 2t on 7 doses; values at any dose of the range.
    c = RNG.normal(size=30)
    table = DoseTable(0.0, 6.0, (np.arange(7.0) - c[:, None]) ** 2 + 2 * np.arange(7.0))
    t = RNG.uniform(0, 6, 30)
    np.testing.assert_allclose(table(t), (t - c) ** 2 + 2 * t, rtol=1e-10)


def test_beyond_the_grid_nothing_changes():
    ends = TABLE.values[:, [0, -1]]
    for far in (1e-9, 1.0, 1e9):
        np.testing.assert_allclose(TABLE(np.full(30, -1.0 - far)), ends[:, 0], rtol=ROUNDING)
        np.testing.assert_allclose(TABLE(np.full(30, 3.0 + far)), ends[:, 1], rtol=ROUNDING)


def test_several_doses_of_each_row_at_once():
    t = RNG.uniform(-2, 4, (30, 5))
    for j in range(5):
        np.testing.assert_array_equal(TABLE(t)[:, j], TABLE(t[:, j]))


def test_of_a_cross_fitted_model_each_row_is_tabulated_by_its_own_fold():
    X, t, y = log(60)
    fitted = CrossFit(RidgeModel(SecondOrder()), folds=3).fit(X, t, y)
    fold = fitted.fold(0, 60)
    table = DoseTable.of(fitted, fold, X, bounds=(0.0, 10.0), size=5)
    dose = RNG.uniform(0, 10, 60)
    # The model is quadratic in the dose, so the table is exact.
    np.testing.assert_allclose(table(dose), fitted.predict(fold, X, dose), rtol=1e-9)
    assert DoseTable.of(fitted, fold, X, bounds=(0.0, 10.0)).values.shape == (60, 81)


def test_a_step_function_is_followed_to_the_grid():
    X, t, y = log(60)
    tree = CrossFit(DecisionTreeRegressor(random_state=0), folds=2).fit(X, t, y)
    fold = tree.fold(0, 60)
    table = DoseTable.of(tree, fold, X, bounds=(0.0, 10.0), size=11)
    np.testing.assert_array_equal(table(np.full(60, 4.0)), tree.predict(fold, X, np.full(60, 4.0)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DoseTable(1.0, 1.0, np.ones((2, 4))), "The `upper` of `DoseTable` must be above"),
        (lambda: DoseTable(0.0, np.inf, np.ones((2, 4))), "`upper`"),
        (lambda: DoseTable(0.0, 1.0, np.ones((2, 2))), "at least 3 doses wide"),
        (lambda: DoseTable(0.0, 1.0, np.full((2, 4), np.nan)), "`values`"),
        (lambda: TABLE(np.ones(29)), "an array with 30 rows"),
        (lambda: DoseTable.of(None, None, None, bounds=(0.0, 1.0), size=2), "`size`"),
    ],
)
def test_bad_tables_are_refused(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()
