"""Laws of every outcome model: units do not matter, rows are separate, no peeking."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from outcome.models import DETERMINISTIC, MODELS, VECTOR, log
from titrant.errors import DataError
from titrant.outcome import (
    Bounded,
    RidgeModel,
    SecondOrder,
    Stack,
    Trees,
    Well,
    fold_of,
    library,
    ridge_pair,
)
from titrant.outcome.base import curve_of, given_of

# Outcomes of order one. Shifting by 20 loses 1e-15 of them, and a Gram matrix of condition 1e4
# gives it back as 1e-11.
EQUIVARIANCE = 1e-8
ROUNDING = 1e-12

X, T, Y = log()
X_NEW, T_NEW, _ = log(40, seed=1)
each = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def fitted(model, x=X, t=T, y=Y):
    return clone(model).fit(x, t, y)


@each
def test_shifting_the_outcome_shifts_the_predictions(model):
    # r̂(y + c) = r̂(y) + c
    base = fitted(model).predict(X_NEW, T_NEW)
    for c in (20.0, -1000.0):
        moved = fitted(model, y=Y + c).predict(X_NEW, T_NEW) - c
        np.testing.assert_allclose(moved, base, atol=EQUIVARIANCE)


@each
def test_scaling_the_outcome_scales_the_predictions(model):
    # r̂(k·y) = k·r̂(y); a loss becomes a reward with k < 0
    base = fitted(model).predict(X_NEW, T_NEW)
    for k in (1e-3, 7.0, -2.5):
        scaled = fitted(model, y=k * Y).predict(X_NEW, T_NEW) / k
        np.testing.assert_allclose(scaled, base, atol=EQUIVARIANCE)


@each
def test_the_unit_of_the_dose_does_not_matter(model):
    base = fitted(model).predict(X_NEW, T_NEW)
    other = fitted(model, t=12 + 0.01 * T).predict(X_NEW, 12 + 0.01 * T_NEW)
    np.testing.assert_allclose(other, base, atol=EQUIVARIANCE)


# Where nothing is drawn at random, also the direction of the dose and of contexts is of no matter.
@pytest.mark.parametrize("model", DETERMINISTIC.values(), ids=DETERMINISTIC.keys())
def test_left_and_right_do_not_matter(model):
    base = fitted(model).predict(X_NEW, T_NEW)
    other = fitted(model, x=-X, t=12 - 0.01 * T).predict(-X_NEW, 12 - 0.01 * T_NEW)
    np.testing.assert_allclose(other, base, atol=EQUIVARIANCE)


@each
def test_the_units_of_the_context_do_not_matter(model):
    base = fitted(model).predict(X_NEW, T_NEW)
    unit, zero = np.array([1000.0, 0.02, 3.0]), np.array([5.0, -1.0, 100.0])
    other = fitted(model, x=X * unit + zero).predict(X_NEW * unit + zero, T_NEW)
    np.testing.assert_allclose(other, base, atol=EQUIVARIANCE)


@each
def test_rows_are_predicted_by_themselves(model):
    model = fitted(model)
    whole = model.predict(X_NEW, T_NEW)
    parts = [model.predict(X_NEW[i : i + 1], T_NEW[i : i + 1]) for i in range(len(T_NEW))]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=ROUNDING, atol=ROUNDING)
    assert model.predict(X_NEW[:20], T_NEW[:20, None]).shape == (20,)


@each
def test_the_same_data_give_the_same_bits(model):
    np.testing.assert_array_equal(
        fitted(model).predict(X_NEW, T_NEW), fitted(model).predict(X_NEW, T_NEW)
    )


@each
def test_curves_are_predictions_along_a_grid(model):
    model, grid = fitted(model), np.array([2.0, 5.0, 9.5])
    curves = model.curve(X_NEW, grid)
    for j, dose in enumerate(grid):
        expected = model.predict(X_NEW, np.full(40, dose))
        np.testing.assert_allclose(curves[:, j], expected, rtol=ROUNDING, atol=ROUNDING)


@each
def test_contexts_are_given_once_for_any_doses(model):
    model = fitted(model)
    given = model.given(X_NEW)
    for t in (T_NEW, T_NEW[::-1], T_NEW[:, None]):
        np.testing.assert_array_equal(given(t), model.predict(X_NEW, t))


class Doubled(Stack):
    """A user's own stack, which writes `predict` anew and nothing else."""

    def predict(self, X, t):
        return 2.0 * Stack.given(self, X)(t)


def test_a_model_that_writes_predict_anew_is_asked_by_it_in_every_way():
    plain, doubled = (kind(ridge_pair()).fit(X, T, Y) for kind in (Stack, Doubled))
    expected = 2 * plain.given(X_NEW)(T_NEW)
    np.testing.assert_array_equal(given_of(doubled, X_NEW)(T_NEW), expected)
    curves = curve_of(doubled, X_NEW, T_NEW[:3])
    np.testing.assert_allclose(curves, 2 * plain.curve(X_NEW, T_NEW[:3]), rtol=ROUNDING)


@each
def test_out_of_fold_predictions_see_no_outcome_of_their_fold(model):
    # Changing the outcomes of a fold moves predictions everywhere but there.
    fold = fold_of(0, len(Y), 3, 0)
    base = clone(model).out_of_fold(X, T, Y, fold)
    changed = clone(model).out_of_fold(X, T, np.where(fold == 2, Y[::-1] - 3, Y), fold)
    np.testing.assert_array_equal(changed[fold == 2], base[fold == 2])
    assert np.all(changed[fold == 1] != base[fold == 1]) or isinstance(model, Bounded)


@each
def test_out_of_fold_predictions_are_those_of_the_loop(model):
    # Units and knots may come from all rows, so ridge models agree with refitting to within the
    # noise of 150 rows, not to the last digit; all others are the loop.
    fold = fold_of(0, len(Y), 3, 0)
    expected = np.empty(len(Y))
    for k in range(3):
        refit = fitted(model, X[fold != k], T[fold != k], Y[fold != k])
        expected[fold == k] = refit.predict(X[fold == k], T[fold == k])
    got = clone(model).out_of_fold(X, T, Y, fold)
    ridge = "RidgeModel" in str(model)
    tolerance = 0.1 * Y.std() if ridge else 0.0
    assert np.sqrt(np.mean((got - expected) ** 2)) <= tolerance


@each
def test_it_learns_the_shape(model):
    # The truth is V-shaped: a line explains a fifth of it at most, every other model most of it.
    truth = np.abs(T_NEW - 4 - X_NEW[:, 0] - X_NEW[:, 1]) + 0.5 * X_NEW[:, 2]
    error = np.mean((fitted(model).predict(X_NEW, T_NEW) - truth) ** 2) / truth.var()
    assert error < (1.0 if "LinearRegression" in str(model) else 0.55)


@each
def test_a_constant_outcome_is_predicted(model):
    prediction = fitted(model, y=np.full(len(T), 3.25)).predict(X_NEW, T_NEW)
    np.testing.assert_allclose(prediction, 3.25, atol=EQUIVARIANCE)


@each
def test_constant_columns_say_nothing(model):
    plain = fitted(model, x=X[:, :1] * 0 + 7.0)
    assert np.isfinite(plain.predict(X_NEW[:, :1], T_NEW)).all()
    same_dose = fitted(model, t=np.full(len(T), 2.0))
    assert np.isfinite(same_dose.predict(X_NEW, T_NEW)).all()


@each
def test_no_contexts_at_all(model):
    model = fitted(model, x=X[:, :0])
    assert np.isfinite(model.predict(X_NEW[:, :0], T_NEW)).all()


@each
def test_it_needs_to_be_fitted_and_stays_as_it_was_given(model):
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(model))
    before = str(model.get_params())
    fresh = clone(model)
    assert fresh.fit(X, T, Y) is fresh
    assert str(fresh.get_params()) == before
    check_is_fitted(fresh)


@each
def test_tables_that_cannot_be_used_are_refused(model):
    with pytest.raises(DataError, match=r"contexts \(n, p\) and doses"):
        clone(model).fit(X[:, 0], T, Y)
    with pytest.raises(DataError, match="one outcome per row"):
        clone(model).fit(X, T, Y[1:])
    with pytest.raises(DataError, match=r"cannot learn from 1 of 150 rows"):
        clone(model).fit(X, np.where(np.arange(150) == 3, np.nan, T), Y)
    with pytest.raises(DataError, match="at least"):
        clone(model).fit(X[:1], T[:1], Y[:1])


@pytest.mark.parametrize("model", VECTOR.values(), ids=VECTOR.keys())
def test_several_doses(model):
    # A second dose that does nothing, then one that matters.
    rng = np.random.default_rng(3)
    doses = np.column_stack([T, rng.normal(size=len(T))])
    one = fitted(model, t=doses)
    assert one.predict(X, doses).shape == (150,)
    outcome = Y + 2 * doses[:, 1]
    both = fitted(model, t=doses, y=outcome).predict(X, doses + np.array([0.0, 1.0]))
    assert np.mean(both - fitted(model, t=doses, y=outcome).predict(X, doses)) > 0.5


def test_the_library_of_several_doses_leaves_out_the_well():
    assert list(library(2)) == ["quadratic", "spline", "varying", "trees"]
    assert list(library()) == ["quadratic", "spline", "varying", "well", "trees"]
    doses = np.column_stack([T, T**2])
    model = Stack(folds=2).fit(X, doses, Y)
    assert model.names_ == ("quadratic", "spline", "varying", "trees")
    with pytest.raises(DataError, match="`Well` models one dose; this treatment has 2"):
        Well().fit(X, doses, Y)


def test_seeds_of_the_library_are_the_stacks():
    assert library(seed=5)["trees"].model.seed == 5
    a, b = (Trees(trees=3, seed=s).fit(X, T, Y).predict(X_NEW, T_NEW) for s in (0, 1))
    assert np.any(a != b)


def test_bounded_predictions_stay_within_the_quantiles():
    model = fitted(Bounded(RidgeModel(SecondOrder()), share=0.05))
    low, high = np.quantile(Y, [0.05, 0.95])
    far = model.predict(X_NEW, T_NEW * 100)
    assert far.min() >= low
    assert far.max() == high
    inside = model.model_.predict(X_NEW, T_NEW)
    np.testing.assert_array_equal(model.predict(X_NEW, T_NEW), np.clip(inside, low, high))
    with pytest.raises(ValueError, match="The `share` of `Bounded`"):
        fitted(Bounded(RidgeModel(SecondOrder()), share=0.0))
    with pytest.raises(ValueError, match="`margin` of `Bounded`"):
        fitted(Bounded(RidgeModel(SecondOrder()), margin=-1.0))


def test_a_margin_widens_the_limits_by_their_distance():
    tight, wide = (Bounded(RidgeModel(SecondOrder()), margin=m) for m in (0.0, 0.5))
    (a, b), (c, d) = fitted(tight).limits_, fitted(wide).limits_
    assert (c, d) == pytest.approx((a - 0.5 * (b - a), b + 0.5 * (b - a)))
