"""Features of the context: robust units, levels, splines, products."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from titrant.errors import InvalidArgument
from titrant.moments import Moments
from titrant.outcome import ContextFeatures
from titrant.outcome.context import Bends, ContextMap, telling
from titrant.outcome.ridge import leverages, ridge_gcv
from titrant.scaling import Standard

ROUNDING = 1e-12
# An offset of 1e12 leaves about four digits of a column of order one.
AFTER_OFFSET = 1e-3


@parametrize_with_checks([ContextFeatures()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def contexts(n=200, seed=0):
    """A yes/no column, five levels, two that bend."""
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [rng.uniform(size=n) < 0.4, rng.integers(5, size=n), rng.normal(size=(n, 2))]
    ).astype(float)


def test_each_column_gets_the_features_it_can_carry():
    x = contexts()
    # 4 z, 5 levels, two columns of 7 splines (5 knots), 10 products, 5 levels times 3 others.
    assert ContextFeatures().fit_transform(x).shape == (200, 4 + 5 + 14 + 10 + 15)
    wide = np.random.default_rng(1).normal(size=(200, 16))
    assert ContextFeatures().fit_transform(wide).shape == (200, 16 + 16 * 7)
    wider = np.random.default_rng(1).normal(size=(200, 31))
    assert ContextFeatures().fit_transform(wider).shape == (200, 31)


def test_of_many_contexts_the_telling_ones_have_products():
    x = np.random.default_rng(2).normal(size=(400, 31))
    # A prediction that no context moves on average: only squares tell of 3 and 17.
    seen = np.column_stack([x, x[:, 3] * x[:, 17]])
    assert set(telling(x, seen[:, 31:])[:2]) == {3, 17}
    np.testing.assert_array_equal(telling(x, seen[:, 31:31]), np.arange(31))
    features = ContextFeatures(extra=1).fit(seen)
    # 31 z, splines and products of 15 of them, and what was predicted.
    assert features.transform(seen).shape == (400, 31 + 15 * 7 + 120 + 1)
    assert {3, 17} <= set(features.map_.crossed)
    assert len(features.map_.crossed) == 15
    # Up to 30 contexts all have splines.
    some = np.delete(seen, 30, axis=1)
    assert ContextFeatures(extra=1).fit_transform(some).shape == (400, 30 * 8 + 120 + 1)


def test_levels_act_differently_beside_other_contexts():
    # Law: what a code does to the slope of another context is a sum of features, to rounding.
    rng = np.random.default_rng(3)
    code, z = rng.integers(0, 4, 200), rng.normal(size=200)
    slopes = np.array([1.0, -2.0, 0.5, 3.0])
    phi = ContextFeatures().fit_transform(np.column_stack([code, z]))
    y = slopes[code] * z
    left = y - phi @ np.linalg.lstsq(phi, y, rcond=None)[0]
    assert np.abs(left).max() < 1e-9


def test_products_of_levels_are_no_more_than_a_regression_can_carry():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 12, size=(600, 10)).astype(float)
    # 120 levels leave one context beside each, which has none beside itself.
    number = ContextFeatures().fit_transform(codes).shape[1]
    assert number == 10 + 120 + 55 + 108


def test_rare_levels_have_no_indicator_and_new_ones_are_no_error():
    # 2 % is enough in 300 rows (6 ≥ 5), 1 % is not (3 < 5).
    column = np.repeat([0.0, 1.0, 2.0, 3.0], [200, 91, 6, 3])[:, None]
    fitted = ContextMap.of(column)
    np.testing.assert_array_equal(fitted.levels[0].values, [0.0, 1.0, 2.0])
    z = fitted.units(np.array([[7.0]]))[0, 0]
    np.testing.assert_allclose(fitted(np.array([[7.0]]))[0], [z, 0, 0, 0, z * z])


def test_splines_sum_to_one_and_are_straight_beyond_the_knots():
    bend = Bends(np.array([-2.0, -1.0, 0.5, 1.0, 3.0]))
    everywhere = bend(np.linspace(-9.0, 9.0, 181))
    np.testing.assert_allclose(everywhere.sum(axis=1), 1.0, atol=1e-11)
    for end in (np.linspace(-9, -2, 8), np.linspace(3, 11, 9)):
        np.testing.assert_allclose(np.diff(bend(end), n=2, axis=0), 0.0, atol=1e-11)
    # Continuous with two derivatives at an inner knot, with one at the outer: steps shrink as h.
    for knot in (-1.0, 3.0):
        jump = bend(np.array([knot + 1e-7])) - bend(np.array([knot - 1e-7]))
        assert np.abs(jump).max() < 1e-6


@pytest.mark.parametrize("n", [30, 1000])
@pytest.mark.parametrize("absurd", [1e9, -1e9, 1e200, -1.7e308])
def test_one_absurd_cell_does_not_flatten_a_column(n, absurd):
    x = np.random.default_rng(0).normal(size=(n, 2))
    spoiled = x.copy()
    spoiled[7, 1] = absurd
    clean, units = Standard.of_contexts(x), Standard.of_contexts(spoiled)
    z = units(spoiled)
    # The others keep most of their spread, and the cell is held near them.
    others = np.delete(z[:, 1], 7).std() / np.delete(clean(x)[:, 1], 7).std()
    assert 0.5 < others <= 1.05
    assert np.abs(z[7, 1]) < 7.0
    np.testing.assert_array_equal(z[:, 0], clean(x)[:, 0])


def test_a_rare_mark_keeps_its_column_beside_an_absurd_cell():
    column = np.zeros((1000, 1))
    column[:5], column[5] = 1.0, 1e9
    z = Standard.of_contexts(column)(column)[:, 0]
    assert z[0] - z[-1] > 1.0


@pytest.mark.parametrize(
    ("unit", "zero", "tolerance"),
    [
        (1.0, 1e12, AFTER_OFFSET),  # an offset
        (1e200, 0.0, ROUNDING),
        (1e-200, 0.0, ROUNDING),
        (8.64e13, 1.7e18, 1e-9),  # days as nanoseconds since 1970, of which floats keep 256
        (-3.0, 5.0, ROUNDING),
    ],
)
def test_no_unit_loses_a_column(unit, zero, tolerance):
    x = contexts()
    units, other = Standard.of_contexts(x), Standard.of_contexts(x * unit + zero)
    np.testing.assert_allclose(
        other(x * unit + zero), np.sign(unit) * units(x), atol=tolerance, rtol=tolerance
    )


def test_constant_columns_and_no_columns():
    constant = np.full((30, 2), 0.1 + 0.2)
    constant[::2, 1] = 0.3  # the same number but for rounding
    np.testing.assert_array_equal(ContextMap.of(constant)(constant), 0.0)
    assert ContextMap.of(np.empty((30, 0)))(np.empty((30, 0))).shape == (30, 0)


def test_new_rows_do_not_move_the_features_of_others():
    x = contexts()
    fitted = ContextFeatures().fit(x)
    np.testing.assert_array_equal(fitted.transform(x)[3:9], fitted.transform(x[3:9]))


def test_extra_columns_enter_as_they_are_if_they_tell_something():
    x = contexts()
    news, repeat = np.random.default_rng(3).normal(size=200), 0.5 * x[:, 2] ** 2 + x[:, 0]
    fitted = ContextMap.of(np.column_stack([x, news, repeat]), extra=2)
    np.testing.assert_array_equal(fitted.told, [1.0, 0.0])
    lines = fitted.lines(fitted(np.column_stack([x, news, repeat])))
    np.testing.assert_array_equal(lines[:, -2:], np.column_stack([news, 0 * repeat]))
    with pytest.raises(
        InvalidArgument, match=r"`extra` of `ContextFeatures` must be at most the 4"
    ):
        ContextFeatures(extra=5).fit(x)


@pytest.mark.parametrize("p", [3, 20, 33])
@pytest.mark.parametrize("extra", [0, 2])
def test_a_sum_of_features_is_found_without_them(p, extra):
    # Levels, splines, products, a code, and rows beyond the outer knots.
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, p + extra))
    x[:, 0], x[:, 1] = rng.integers(0, 5, 300), np.where(rng.random(300) < 0.1, -9999.0, x[:, 1])
    fitted = ContextMap.of(x, extra)
    new = np.vstack([x[:50], 4.0 * x[50:90]])
    phi = fitted(new)
    coef = rng.normal(size=phi.shape[1])
    assert fitted.width == phi.shape[1]
    level, lines = fitted.summed(new, coef)
    np.testing.assert_allclose(level, phi @ coef, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(lines, fitted.lines(phi))
    # Levels that are all too rare for an indicator.
    rare = ContextMap.of(x[:12, :3])
    phi = rare(new[:, :3])
    np.testing.assert_allclose(
        rare.summed(new[:, :3], coef[: rare.width])[0], phi @ coef[: rare.width]
    )


def test_predictions_are_told_from_features_that_outnumber_the_rows():
    # 217 features of 14 contexts could draw any column of 150 rows through its points.
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 14))
    extended = np.column_stack([x, np.where(x[:, 0] > 0, 0.6, -0.6)])
    fitted = ContextMap.of(extended, extra=1)
    assert fitted(extended).shape[1] == 14 + 14 * 7 + 105 + 1
    np.testing.assert_array_equal(fitted.told, [1.0])


def test_leverages_are_the_diagonal_of_the_hat_matrix():
    rng = np.random.default_rng(0)
    F, y = rng.normal(size=(50, 6)), rng.normal(size=50)
    moments = Moments.of(np.column_stack([F, y]))
    fit = ridge_gcv(moments)
    z = (F - F.mean(axis=0)) / F.std(axis=0)
    hat = 1 / 50 + z @ np.linalg.solve(z.T @ z + 50 * fit.penalty * np.eye(6), z.T)
    np.testing.assert_allclose(leverages(moments, fit, F), np.diag(hat), rtol=1e-10)


@pytest.mark.parametrize("p", [2, 6, 20])
@pytest.mark.parametrize("extra", [0, 2])
def test_every_feature_has_a_name(p, extra):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, p + extra))
    x[:, 0] = rng.integers(0, 4, 200)
    x[:20, 1] = 1e6  # several far values are a code, in a column of its own
    fitted = ContextFeatures(extra=extra).fit(x)
    names = fitted.get_feature_names_out()
    # One a column, none twice, and products are named after what they are products of.
    assert len(names) == len(set(names)) == fitted.transform(x).shape[1]
    assert names[0] == "x0"
    values = dict(zip(names, fitted.transform(x).T, strict=True))
    for name, column in values.items():
        factors = name.split(" × ")
        if len(factors) == 2:
            expected = values[factors[0]] * values[factors[1]]
            np.testing.assert_allclose(column, expected, atol=1e-12)
    own = fitted.get_feature_names_out([f"c{j}" for j in range(p + extra)])
    assert own[0] == "c0"
