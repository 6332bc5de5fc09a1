"""The forest that supplies features, and contexts extended by it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sweeps import long
from titrant.errors import DataError, InvalidArgument
from titrant.outcome import (
    CrossFit,
    FoldForests,
    Forest,
    RidgeModel,
    SmoothContext,
    Stack,
    fold_of,
    ridge_pair,
    smooth_library,
)

SMALL = Forest(trees=20)


def step_log(n=600, p=4, seed=0):
    """Dose and outcome jump where the first context is positive."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    jump = (x[:, 0] > 0).astype(float)
    t = 1.5 * jump + 0.8 * rng.normal(size=n)
    y = 2 * jump + (t - 1) ** 2 + 0.3 * rng.normal(size=n)
    return x, t, y


def test_it_finds_a_step():
    x, t, y = step_log()
    new, _, _ = step_log(seed=1)
    predicted = Forest().fit(x, np.column_stack([y, t])).predict(new)[:, 1] * t.std() + t.mean()
    clear = np.abs(new[:, 0]) > 0.2
    error = (predicted - 1.5 * (new[:, 0] > 0))[clear]
    assert np.sqrt(np.mean(error**2)) < 0.25  # the step's sd is .75, the noise's .8


def test_training_rows_are_told_by_trees_that_have_not_seen_them():
    # Of pure noise nothing can be told: only a forest that has seen a row knows its target.
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(500, 3)), rng.normal(size=(500, 2))
    forest = Forest()
    out = forest.fit_out_of_bag(x, noise)
    for j in range(2):
        assert np.corrcoef(forest.predict(x)[:, j], noise[:, j])[0, 1] > 0.3
        assert abs(np.corrcoef(out[:, j], noise[:, j])[0, 1]) < 0.15


def test_targets_are_in_sds_whatever_their_units_and_those_of_the_contexts():
    x, t, y = step_log(200)
    plain = clone(SMALL).fit_out_of_bag(x, np.column_stack([y, t]))
    units, zero = np.array([1e3, 0.02, 3.0, 1e-5]), np.array([5.0, -1.0, 100.0, 0.0])
    other = clone(SMALL).fit_out_of_bag(x * units + zero, np.column_stack([7 * y - 3, 40 * t + 5]))
    np.testing.assert_allclose(other, plain, atol=1e-6)


def test_the_seed_decides_and_nothing_else():
    x, t, y = step_log(200)
    targets = np.column_stack([y, t])
    a, b, c = (Forest(trees=9, seed=s).fit(x, targets).predict(x) for s in (3, 3, 4))
    np.testing.assert_array_equal(a, b)
    assert np.any(a != c)
    # Rows in another order are another draw: the same answer up to the noise of the draws.
    order = np.random.default_rng(0).permutation(200)
    shuffled = Forest().fit(x[order], targets[order]).predict(x)
    assert np.corrcoef(shuffled[:, 1], Forest().fit(x, targets).predict(x)[:, 1])[0, 1] > 0.98


@pytest.mark.parametrize("p", [0, 1, 60])
@pytest.mark.parametrize("n", [4, 30, 200])
def test_few_rows_and_few_or_many_contexts(n, p):
    rng = np.random.default_rng(0)
    x, targets = rng.normal(size=(n, p)), rng.normal(size=(n, 3))
    x[:, :1] = 2.0  # a constant, if there is a column
    forest = clone(SMALL)
    out = forest.fit_out_of_bag(x, targets)
    assert out.shape == (n, 3)
    assert np.isfinite(out).all()
    assert np.abs(forest.predict(x)).max() < 3.0


def test_trees_see_no_more_rows_than_allowed():
    x, t, y = step_log(400)
    forest = Forest(trees=3, rows=50, leaf=1).fit(x, np.column_stack([y, t]))
    assert max(tree.tree_.n_node_samples[0] for tree in forest.trees_) <= 50
    with pytest.raises(InvalidArgument, match="The `leaf` of `Forest` must be a whole number ≥ 1"):
        Forest(leaf=0).fit(x, t[:, None])


def test_rows_are_extended_by_a_forest_that_has_not_seen_their_fold():
    x, t, y = step_log(300)
    fold = fold_of(0, 300, 5, 0)
    forests = FoldForests(SMALL)
    learned = forests.fit_extend(x, t, y)
    extended = forests.extend(fold, x)
    assert forests.extra_ == 4
    assert extended.shape == (300, 4 + 4)
    np.testing.assert_array_equal(extended[:, :4], x)
    for k in range(5):
        np.testing.assert_array_equal(learned[k][:, :4], x[fold != k])
    # What fold 2 did does not change how its rows are extended, only those of the others.
    other = FoldForests(SMALL)
    other.fit_extend(x, np.where(fold == 2, -t, t), np.where(fold == 2, y[::-1], y))
    moved = np.any(other.extend(fold, x) != extended, axis=1)
    np.testing.assert_array_equal(moved[fold == 2], False)  # noqa: FBT003
    assert moved[fold != 2].mean() > 0.9


def test_rows_far_down_a_log_and_vector_doses():
    x, t, y = step_log(100)
    doses = np.column_stack([t, t**2])
    forests = FoldForests(SMALL, seed=1)
    learned = forests.fit_extend(x, doses, y, first_row=1003)
    numbers = np.arange(1003, 1103)
    again = FoldForests(SMALL, seed=1).fit_extend(x, doses, y, numbers=numbers)
    for a, b in zip(learned, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert forests.extend(fold_of(1003, 100, 5, 1), x).shape == (100, 4 + 6)
    with pytest.raises(InvalidArgument, match="between 0 and 4"):
        forests.extend(np.full(100, 5), x)
    with pytest.raises(DataError, match="needs at least 10 rows"):
        FoldForests().fit_extend(x[:8], t[:8], y[:8])


def test_extended_contexts_find_the_outcome_that_plain_models_miss():
    # The loss at one dose, known for every row; the plain pair blames the dose for the jump.
    x, t, y = step_log(800)
    fold = fold_of(0, 800, 5, 0)
    at = np.full(800, 0.75)
    truth = 2.0 * (x[:, 0] > 0) + (0.75 - 1) ** 2
    forests = FoldForests()
    learned = forests.fit_extend(x, t, y)
    rich = CrossFit(Stack(smooth_library(extra=2))).fit(x, t, y, extended=learned)
    plain = CrossFit(Stack(ridge_pair())).fit(x, t, y)
    error = {
        "rich": np.mean((rich.predict(fold, forests.extend(fold, x), at) - truth) ** 2),
        "plain": np.mean((plain.predict(fold, x, at) - truth) ** 2),
    }
    assert error["rich"] < 0.5 * error["plain"]


def test_curves_of_extended_models_are_predictions_along_a_grid():
    x, t, y = step_log(200)
    extended = FoldForests(SMALL).fit_extend(x, t, y)[0]
    rows = fold_of(0, 200, 5, 0) != 0
    for model in (RidgeModel(SmoothContext(extra=2)), *smooth_library(extra=2).values()):
        fitted = clone(model).fit(extended, t[rows], y[rows])
        curves = fitted.curve(extended[:9], np.array([-1.0, 0.3, 2.0]))
        for j, dose in enumerate((-1.0, 0.3, 2.0)):
            expected = fitted.predict(extended[:9], np.full(9, dose))
            np.testing.assert_allclose(curves[:, j], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("n", "p"), [(30, 60), (40, 0), *long((30, 3), (200, 60))])
def test_rich_models_of_few_rows(n, p):
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(n, p)), rng.normal(size=n)
    if p:
        x[3, 0] = 1e9
        x[:, -1] = x[:, 0]
    y = t**2 + 0.1 * rng.normal(size=n)
    forests = FoldForests(SMALL)
    learned = forests.fit_extend(x, t, y)
    model = CrossFit(Stack(smooth_library(extra=forests.extra_), folds=3)).fit(
        x, t, y, extended=learned
    )
    fold = fold_of(0, n, 5, 0)
    predicted = model.predict(fold, forests.extend(fold, x), t)
    assert np.all((predicted >= y.min()) & (predicted <= y.max()))


def test_forests_take_lists_and_frames_and_refuse_what_is_no_table():
    x, t, y = step_log(60)
    targets = np.column_stack([y, t])
    said = clone(SMALL).fit(x, targets).predict(x)
    np.testing.assert_array_equal(clone(SMALL).fit(x.tolist(), targets.tolist()).predict(x), said)
    frame = pd.DataFrame(x, columns=list("abcd"))
    np.testing.assert_array_equal(clone(SMALL).fit(frame, targets).predict(frame), said)
    assert clone(SMALL).fit(x, y).predict(x).shape == (60, 1)
    gap = np.where(np.arange(60)[:, None] == 3, np.nan, x)
    with pytest.raises(DataError, match="cannot learn from 1 of 60 rows"):
        clone(SMALL).fit(gap, targets)
    with pytest.raises(DataError, match=r"arrays of shapes \(60, 4\) and \(59, 2\)"):
        clone(SMALL).fit(x, targets[1:])
    with pytest.raises(NotFittedError):
        clone(SMALL).predict(x)
    fitted = clone(SMALL).fit(x, targets)
    with pytest.raises(DataError, match="cannot be asked about 1 of 60 rows"):
        fitted.predict(gap)
    with pytest.raises(DataError, match="contexts of 4 columns"):
        fitted.predict(x[:, :3])


def test_forests_of_folds_alone():
    x, t, y = step_log(60)
    forests = FoldForests(SMALL)
    with pytest.raises(NotFittedError):
        forests.extend(np.zeros(60, dtype=int), x)
    forests.fit_extend(x.tolist(), t.tolist(), y.tolist())
    assert forests.extend(np.empty(0, dtype=int), x[:0]).shape == (0, 4 + 4)
    with pytest.raises(DataError, match="the fold of each of 60 rows"):
        forests.extend(np.zeros(59, dtype=int), x)
