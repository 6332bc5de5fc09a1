"""Folds and cross-fitting: pure functions of the row number, and no row meets its own outcome."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.neighbors import KNeighborsRegressor

from titrant.errors import DataError, InvalidArgument
from titrant.outcome import CrossFit, fold_of
from titrant.outcome.crossfit import splitmix64

SEEDS = st.integers(0, 2**64 - 1)
FOLDS = st.integers(1, 12)


def log(n=60, p=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng.normal(size=n), rng.normal(size=n)


def test_splitmix64_is_the_published_generator():
    # The first three outputs of splitmix64 seeded with 1234567 (Vigna's reference program).
    golden = 0x9E3779B97F4A7C15
    states = np.array([(1234567 + k * golden) % 2**64 for k in range(3)], dtype=np.uint64)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert splitmix64(states).tolist() == expected


@given(st.integers(0, 10**12), st.integers(0, 80), st.integers(0, 80), FOLDS, SEEDS)
def test_folds_do_not_depend_on_batches(first_row, n, m, folds, seed):
    # Folds of a batch followed by the next = folds of both at once.
    whole = fold_of(first_row, n + m, folds, seed)
    parts = [fold_of(first_row, n, folds, seed), fold_of(first_row + n, m, folds, seed)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@given(st.integers(0, 200), FOLDS, SEEDS)
def test_folds_are_balanced_to_within_one_row(n, folds, seed):
    counts = np.bincount(fold_of(0, n, folds, seed), minlength=folds)
    assert len(counts) == folds
    assert counts.max() - counts.min() <= 1


def test_folds_look_random():
    # Each fold falls on each place of a block with frequency 1/5; 20,000 blocks: sd 0.0028.
    place = fold_of(0, 100_000, 5, 3).reshape(-1, 5)
    share = np.array([[np.mean(place[:, j] == k) for j in range(5)] for k in range(5)])
    assert np.abs(share - 0.2).max() < 0.012
    assert np.mean(fold_of(0, 1000, 5, 3) == fold_of(0, 1000, 5, 4)) < 0.3


def test_no_row_is_predicted_from_its_own_outcome():
    # A nearest neighbor remembers every outcome it saw: predicting the training rows, it is
    # right exactly when it saw the row.
    X, t, y = log()
    memory = KNeighborsRegressor(n_neighbors=1)
    honest = CrossFit(memory, folds=4, seed=2).fit(X, t, y)
    fold = honest.fold(0, len(y))
    assert np.all(honest.predict(fold, X, t) != y)
    # … while each of the other three models saw it, and says so.
    for shift in (1, 2, 3):
        np.testing.assert_array_equal(honest.predict((fold + shift) % 4, X, t), y)
    # One fold is no cross-fitting.
    same = CrossFit(memory, folds=1).fit(X, t, y)
    np.testing.assert_array_equal(same.predict(same.fold(0, len(y)), X, t), y)


def test_predictions_do_not_depend_on_batches():
    X, t, y = log()
    fitted = CrossFit(KNeighborsRegressor(3), folds=5, seed=1).fit(X, t, y)
    whole = fitted.predict(fitted.fold(0, 60), X, t)
    parts = [
        fitted.predict(fitted.fold(a, b - a), X[a:b], t[a:b]) for a, b in ((0, 7), (7, 8), (8, 60))
    ]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_log_that_starts_later_keeps_its_row_numbers():
    X, t, y = log()
    fitted = CrossFit(KNeighborsRegressor(1), folds=4).fit(X, t, y, first_row=101)
    assert np.all(fitted.predict(fitted.fold(101, 60), X, t) != y)


def test_it_is_the_loop_over_folds():
    X, t, y = log()
    t = np.column_stack([t, t**2])  # two doses
    fitted = CrossFit(KNeighborsRegressor(3), folds=5, seed=9).fit(X, t, y)
    fold, columns = fold_of(0, 60, 5, 9), np.hstack([X, t])
    expected = [
        KNeighborsRegressor(3)
        .fit(columns[fold != fold[i]], y[fold != fold[i]])
        .predict(columns[[i]])[0]
        for i in range(60)
    ]
    np.testing.assert_allclose(fitted.predict(fold, X, t), expected, rtol=1e-14)


def test_curves_are_predictions_along_a_grid():
    X, t, y = log()
    fitted = CrossFit(KNeighborsRegressor(3), folds=5).fit(X, t, y)
    fold, grid = fitted.fold(0, 60), np.array([-1.0, 0.0, 2.5])
    curves = fitted.curve(fold, X, grid)
    for j, dose in enumerate(grid):
        np.testing.assert_array_equal(curves[:, j], fitted.predict(fold, X, np.full(60, dose)))


def test_it_has_the_manners_of_scikit_learn():
    model = CrossFit(KNeighborsRegressor(7), folds=3, seed=4)
    assert clone(model).get_params()["model__n_neighbors"] == 7
    assert clone(model).set_params(folds=2).folds == 2


def test_what_cannot_work_is_refused():
    X, t, y = log(9)
    with pytest.raises(DataError, match=r"at least 10 rows to learn from; got 9. Use fewer"):
        CrossFit(KNeighborsRegressor(1)).fit(X, t, y)
    with pytest.raises(
        InvalidArgument, match="The `folds` of `CrossFit` must be a whole number ≥ 1"
    ):
        CrossFit(KNeighborsRegressor(1), folds=0).fit(X, t, y)
    with pytest.raises(InvalidArgument, match="`seed`"):
        CrossFit(KNeighborsRegressor(1), seed=-1).fit(X, t, y)
    fitted = CrossFit(KNeighborsRegressor(1), folds=2).fit(X, t, y)
    with pytest.raises(InvalidArgument, match="The `fold` of `CrossFit` must be between 0 and 1"):
        fitted.predict(np.full(9, 2), X, t)
