"""Ridge regression by generalized cross-validation, and the features it is run on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from sklearn.linear_model import Ridge as SklearnRidge

from outcome.models import log
from titrant.errors import InvalidArgument
from titrant.moments import Moments
from titrant.outcome import RidgeModel, SecondOrder, SmoothContext, Spline, Varying, fold_of, ridge
from titrant.outcome.ridge import (
    PENALTIES,
    SATURATED,
    cardinal,
    restricted_cubic,
    ridge_at,
    ridge_gcv,
)

# Normal equations against a direct solver, features of order one.
SOLVERS = 1e-8
# The least penalty, 1e-6, leaves a relative bias of that order times the condition number.
LEAST_PENALTY = 1e-4


def features_and_outcome(n=60, columns=8, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, columns)) * rng.uniform(0.5, 3, columns) + rng.normal(size=columns)
    return F, F[:, 0] - 0.5 * F[:, 1] + 3 + noise * rng.normal(size=n)


def naive_gcv(F, y, penalty):
    """GCV from the hat matrix of the standardized features, intercept unpenalized."""
    n = len(y)
    z = (F - F.mean(axis=0)) / F.std(axis=0)
    hat = np.full((n, n), 1 / n)
    hat += z @ np.linalg.solve(z.T @ z + n * penalty * np.eye(F.shape[1]), z.T)
    df = np.trace(hat)
    return df, np.mean((y - hat @ y) ** 2) / (1 - df / n) ** 2 / y.var()


@pytest.mark.parametrize("noise", [0.1, 1.0, 10.0])
def test_penalty_is_the_one_of_least_gcv(noise):
    F, y = features_and_outcome(noise=noise)
    fit = ridge_gcv(Moments.of(np.column_stack([F, y])))
    scores = [naive_gcv(F, y, penalty)[1] for penalty in PENALTIES]
    assert fit.penalty == PENALTIES[int(np.argmin(scores))]
    np.testing.assert_allclose([fit.df, fit.score], naive_gcv(F, y, fit.penalty), rtol=SOLVERS)


def test_coefficients_are_those_of_scikit_learn():
    F, y = features_and_outcome()
    fit = ridge_gcv(Moments.of(np.column_stack([F, y])))
    # scikit-learn penalizes the sum, not the mean, of squares: alpha = n·λ.
    reference = SklearnRidge(alpha=len(y) * fit.penalty).fit(F / F.std(axis=0), y)
    np.testing.assert_allclose(fit.coef, reference.coef_ / F.std(axis=0), rtol=SOLVERS)
    np.testing.assert_allclose(fit.intercept, reference.intercept_, rtol=SOLVERS)
    np.testing.assert_allclose(fit.predict(F), reference.predict(F / F.std(axis=0)), rtol=SOLVERS)


def test_more_features_than_rows_are_never_fitted_exactly():
    F, y = features_and_outcome(n=12, columns=40)
    fit = ridge_gcv(Moments.of(np.column_stack([F, y])))
    assert fit.df <= SATURATED * 12
    assert np.isfinite(fit.coef).all()
    two = ridge_gcv(Moments.of(np.column_stack([F, y])[:2]))
    assert np.isfinite(two.coef).all()


def test_a_constant_feature_gets_no_coefficient():
    F, y = features_and_outcome()
    F[:, 3] = 2.0
    fit = ridge_gcv(Moments.of(np.column_stack([F, y])))
    assert fit.coef[3] == 0.0
    nothing = ridge_gcv(Moments.of(np.column_stack([F, 0 * y + 5.0])))
    np.testing.assert_array_equal(nothing.predict(F), np.full(60, 5.0))


def test_folds_are_left_out_as_if_their_rows_were_deleted():
    X, t, y = log(90)
    fold = fold_of(0, 90, 3, 1)
    features = SecondOrder().on(X, t[:, None])
    F = features(X, t[:, None])
    expected = np.empty(90)
    for k in range(3):
        kept = fold != k
        fit = ridge_gcv(Moments.of(np.column_stack([F, y])[kept]))
        expected[~kept] = fit.predict(F[~kept])
    got = RidgeModel(SecondOrder()).out_of_fold(X, t, y, fold)
    np.testing.assert_allclose(got, expected, rtol=SOLVERS)


@pytest.mark.parametrize("penalty", [1e-3, 0.1, 10.0])
def test_a_given_penalty_takes_no_eigenvalues(penalty):
    F, y = features_and_outcome()
    flat = np.column_stack([F, np.full(len(y), 3.0)])
    fit = ridge_at(Moments.of(np.column_stack([flat, y])), penalty)
    np.testing.assert_allclose([fit.df, fit.score], naive_gcv(F, y, penalty), rtol=SOLVERS)
    reference = SklearnRidge(alpha=len(y) * penalty).fit(F / F.std(axis=0), y)
    np.testing.assert_allclose(fit.coef[:-1], reference.coef_ / F.std(axis=0), rtol=SOLVERS)
    assert fit.coef[-1] == 0.0


def test_the_given_penalty_of_least_gcv_is_the_fit_of_least_gcv():
    F, y = features_and_outcome()
    moments = Moments.of(np.column_stack([F, y]))
    best = ridge_gcv(moments)
    same = ridge_at(moments, best.penalty)
    np.testing.assert_allclose(same.coef, best.coef, rtol=SOLVERS)
    np.testing.assert_allclose(
        [same.df, same.score, same.intercept], [best.df, best.score, best.intercept], rtol=SOLVERS
    )


def test_folds_of_a_wide_fit_share_its_penalty(monkeypatch):
    monkeypatch.setattr(ridge, "WIDE", 3)
    X, t, y = log(90)
    fold = fold_of(0, 90, 3, 1)
    features = SecondOrder().on(X, t[:, None])
    F = features(X, t[:, None])
    columns = np.column_stack([F, y])
    penalty, expected = ridge_gcv(Moments.of(columns)).penalty, np.empty(90)
    for k in range(3):
        kept = fold != k
        # λ is relative to the number of rows, so n·λ stays.
        fit = ridge_at(Moments.of(columns[kept]), penalty * 90 / kept.sum())
        expected[~kept] = fit.predict(F[~kept])
    got = RidgeModel(SecondOrder()).out_of_fold(X, t, y, fold)
    np.testing.assert_allclose(got, expected, rtol=SOLVERS)


BASES = (
    SecondOrder(),
    SecondOrder(products_up_to=0),
    Spline(),
    SmoothContext(),
    Varying(),
    SmoothContext(extra=1),
)


@pytest.mark.parametrize("basis", BASES, ids=str)
@pytest.mark.parametrize("doses", [1, 2])
def test_predictions_are_coefficients_times_features(basis, doses):
    # level(x) + Σⱼ heightⱼ(x)·bⱼ(t) = b₀ + b'f(x, t), also with two doses and at other contexts.
    X, t, y = log(90)
    T = np.column_stack([t, y + t])[:, :doses]
    model = RidgeModel(basis).fit(X, T, y)
    new, at = X[::-1] + 0.3, T[::-1] - 0.2
    expected = model.ridge_.predict(model.features_(new, at))
    np.testing.assert_allclose(model.predict(new, at), expected, rtol=SOLVERS)


def test_the_best_dose_may_be_a_product_of_contexts():
    # Known answer: t² − 2t·x₁x₂ lies in the span of `Varying`, and of no other basis.
    rng = np.random.default_rng(0)
    X, t = rng.uniform(-1, 1, (300, 2)), rng.normal(size=300)
    y = t**2 - 2 * t * X[:, 0] * X[:, 1]
    off = {
        type(basis).__name__: np.abs(RidgeModel(basis).fit(X, t, y).predict(X, t) - y).max()
        for basis in (SecondOrder(), Spline(), SmoothContext(), Varying())
    }
    assert off.pop("Varying") < 1e-4  # the least penalty leaves that much
    assert min(off.values()) > 0.3


def test_blocks_of_rows_change_nothing(monkeypatch):
    X, t, y = log(90)
    whole = RidgeModel(Spline()).fit(X, t, y).predict(X, t)
    monkeypatch.setattr("titrant.outcome.ridge.BLOCK", 17)
    np.testing.assert_allclose(RidgeModel(Spline()).fit(X, t, y).predict(X, t), whole, rtol=SOLVERS)


def test_quadratic_finds_a_quadratic_truth():
    # y = (t − 2 − x₁)² + x₀x₂ − 3t: in the span, so recovered, also far from the data.
    X, t, _ = log(200)

    def truth(x, t):
        return (t - 2 - x[:, 1]) ** 2 + x[:, 0] * x[:, 2] - 3 * t

    model = RidgeModel(SecondOrder()).fit(X, t, truth(X, t))
    far, new = t + 20, X[::-1] + np.array([0, 5, 5])  # x₀ is yes/no: its square is itself
    expected = truth(new, far)
    np.testing.assert_allclose(model.predict(new, far), expected, rtol=LEAST_PENALTY)


def test_quadratic_of_two_doses_finds_their_product():
    X, t, _ = log(200)
    doses = np.column_stack([t, np.random.default_rng(5).normal(size=200)])
    y = doses[:, 0] * doses[:, 1] + doses[:, 1] ** 2 + X[:, 1] * doses[:, 1]
    model = RidgeModel(SecondOrder()).fit(X, doses, y)
    np.testing.assert_allclose(model.predict(X, doses), y, atol=LEAST_PENALTY * y.std())


def test_products_of_contexts_only_where_they_are_few():
    X, t, _ = log(50, p=3)
    doses = t[:, None]
    # s, s², 3 z, 3 sz and 6 products of z.
    assert SecondOrder().on(X, doses)(X, doses).shape == (50, 14)
    assert SecondOrder(products_up_to=2).on(X, doses)(X, doses).shape == (50, 8)
    # z, 5 b, 15 bz.
    assert Spline().on(X, doses)(X, doses).shape == (50, 23)
    assert Spline(knots=3).on(X, doses)(X, doses).shape == (50, 15)


def test_cardinal_splines_are_scipys_natural_splines():
    knots = np.array([-1.0, 0.0, 0.5, 2.0, 3.0])
    inside = np.linspace(-1, 3, 101)
    for j in range(5):
        reference = CubicSpline(knots, np.eye(5)[j], bc_type="natural")
        np.testing.assert_allclose(cardinal(inside, knots)[:, j], reference(inside), atol=1e-12)


def test_splines_are_straight_beyond_the_outer_knots():
    knots = np.array([-1.0, 0.0, 0.5, 2.0, 3.0])
    for end in (np.linspace(-9, -1, 9), np.linspace(3, 11, 9)):
        np.testing.assert_allclose(np.diff(cardinal(end, knots), n=2, axis=0), 0, atol=1e-11)
    # One bend of the classic basis, at s = 4 with knots 0, 1, 3:
    # (64 − 27·3/2 + 1·1/2)/9 = 24/9.
    np.testing.assert_allclose(
        restricted_cubic(np.array([4.0]), np.array([0.0, 1.0, 3.0]))[0, 2], 24 / 9
    )


def test_spline_follows_what_a_quadratic_cannot():
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(500, 1)), rng.uniform(0, 10, 500)
    truth = np.abs(t - 5) * (1 + 0.3 * X[:, 0])
    y = truth + 0.1 * rng.normal(size=500)
    error = {
        type(basis): np.mean((RidgeModel(basis).fit(X, t, y).predict(X, t) - truth) ** 2)
        for basis in (SecondOrder(), Spline())
    }
    assert error[Spline] < 0.2 * error[SecondOrder]


def test_a_dose_with_few_values_has_few_knots():
    X, _, y = log(60)
    two = np.tile([1.0, 2.0], 30)
    model = RidgeModel(Spline()).fit(X, two, y + 3 * two)
    assert len(model.features_.knots[0]) == 2
    assert len(RidgeModel(Spline()).fit(X, np.tile([1.0, 2.0, 4.0], 20), y).features_.knots[0]) == 3
    assert np.mean(model.predict(X, two + 1) - model.predict(X, two)) > 2


def test_bad_parameters_are_refused():
    with pytest.raises(InvalidArgument, match="The `knots` of `Spline` must be a whole number ≥ 3"):
        Spline(knots=2)
    with pytest.raises(InvalidArgument, match="`products_up_to` of `SecondOrder`"):
        SecondOrder(products_up_to=-1)
