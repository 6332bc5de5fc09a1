"""Outcome curves by models that have not seen the row, and how they are stacked."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from learn.examples import SEEN, Memorizing, numbered, quadratic_log
from titrant.learn.setting import silent
from titrant.learn.tables import Predictions, fit_and_predict, unseen
from titrant.outcome import RidgeModel, SecondOrder, Spline, fold_of

ROUNDING = 1e-12
SEARCH = 1e-5  # of a generic minimizer on the simplex

GRID = np.linspace(-1.0, 2.0, 5)
FOLDS = 4


def tables(models, log):
    fold = fold_of(0, len(log), FOLDS, 0)
    return fold, list(unseen(models, log, fold, GRID, silent))


def test_no_row_is_predicted_by_a_model_that_has_seen_it_or_the_fold_scored():
    # The memorizing model raises when it meets a row that it was fitted on; its diary shows that
    # every one and every two folds are left out once.
    SEEN.pop("tables", None)
    log = numbered(60)
    fold, _ = tables({"m": Memorizing("tables")}, log)
    rows = {k: set(np.flatnonzero(fold == k).astype(float)) for k in range(FOLDS)}
    every = set(map(float, range(60)))
    left_out = [frozenset(every - seen) for seen in SEEN["tables"]]
    expected = [frozenset(rows[k]) for k in range(FOLDS)]
    expected += [frozenset(rows[j] | rows[k]) for j, k in combinations(range(FOLDS), 2)]
    assert left_out == expected


def test_each_row_is_predicted_without_its_fold_and_without_the_fold_scored():
    # A naive loop: for scoring fold k, row i is predicted by a fit without fold(i) and without k.
    log = quadratic_log(60)
    models = {"quadratic": RidgeModel(SecondOrder()), "spline": RidgeModel(Spline())}
    fold, (without_own, *without_both) = tables(models, log)
    for k in range(FOLDS):
        for own in range(FOLDS):
            train = np.flatnonzero((fold != own) & (fold != k))
            rows = np.flatnonzero(fold == own)[:2]
            expected = fit_and_predict(models, log, train, rows, GRID)
            given = without_own if own == k else without_both[k]
            # Those for scoring fold k have the rows of the other folds, in their order.
            i = rows if own == k else np.searchsorted(np.flatnonzero(fold != k), rows)
            np.testing.assert_allclose(given.curves[:, i], expected.curves, rtol=ROUNDING)
            np.testing.assert_allclose(given.logged[:, i], expected.logged, rtol=ROUNDING)
            np.testing.assert_allclose(given.mean[i], log.outcome[train].mean(), rtol=ROUNDING)


def test_progress_counts_the_fits():
    said = []
    log = quadratic_log(40)
    fold = fold_of(0, 40, 3, 0)
    models = {"quadratic": RidgeModel(SecondOrder())}
    list(unseen(models, log, fold, GRID, lambda *step: said.append(step)))
    assert said == [("outcome models", k, 6) for k in range(1, 7)]


def predictions(n=200, seed=0) -> tuple[Predictions, np.ndarray]:
    """Three models of an outcome: a good one, a poor one and noise."""
    rng = np.random.default_rng(seed)
    truth, mean = rng.normal(size=n), rng.normal(5, 0.1, n)
    logged = mean + np.stack([truth + 0.1 * rng.normal(size=n), 0.5 * truth, rng.normal(size=n)])
    curves = logged[:, :, None] + GRID
    return Predictions(GRID, curves, logged, mean), mean + truth + 0.3 * rng.normal(size=n)


def test_a_stack_of_known_weights():
    # One row, two models that say 3 and 5 where the mean is 1, weights ½ and ¼, ¼ on the mean:
    # 1.5 + 1.25 + .25 = 3 at the logged dose; one more at each dose of the grid.
    two = Predictions(
        GRID, np.array([[3 + GRID], [5 + GRID]]), np.array([[3.0], [5.0]]), np.array([1.0])
    )
    stacked = two.stacked(np.array([0.5, 0.25]))
    np.testing.assert_allclose(stacked.logged, [3.0])
    np.testing.assert_allclose(stacked.table(GRID[None]), [3 + 0.75 * GRID], rtol=1e-12)


def test_no_weight_leaves_the_mean():
    # Then y − r̂ = y − ȳ: centered IPW.
    found, _ = predictions()
    stacked = found.stacked(np.zeros(3))
    np.testing.assert_array_equal(stacked.logged, found.mean)
    np.testing.assert_allclose(stacked.table(np.zeros(200)), found.mean, rtol=ROUNDING)


def test_weights_are_least_squares_on_the_simplex():
    found, y = predictions()
    w = found.weights(y)
    assert (w >= 0).all()
    assert w.sum() <= 1 + ROUNDING

    def loss(v):
        return np.mean((y - found.mean - v @ (found.logged - found.mean)) ** 2)

    limits = {"type": "ineq", "fun": lambda v: 1 - v.sum()}
    reference = minimize(loss, np.full(3, 0.2), bounds=[(0, 1)] * 3, constraints=limits, tol=1e-12)
    np.testing.assert_allclose(w, reference.x, atol=SEARCH * 10)
    assert loss(w) <= reference.fun + SEARCH
    assert w[0] > 0.9  # the good model has nearly all of it


def test_models_that_predict_nothing_get_nothing():
    rng = np.random.default_rng(3)
    mean = np.zeros(400)
    against = rng.normal(size=400)
    found = Predictions(GRID, np.zeros((1, 400, 5)), -against[None], mean)
    assert found.weights(against) == pytest.approx([0.0])
