"""The stack: weights by constrained least squares on out-of-fold predictions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from outcome.models import log
from titrant.errors import DataError, InvalidArgument
from titrant.outcome import OutcomeModel, Stack, fold_of, ridge_pair, smooth_library
from titrant.outcome.stack import bounded_nnls

# Sums of squares of an active-set method may exceed those of another solver by rounding only.
OBJECTIVE = 1e-9
# SLSQP stops at 1e-12 of an objective of order 1; weights then agree to its square root.
WEIGHTS = 1e-5


def objective(a, b, w):
    return np.sum((a @ w - b) ** 2) / np.sum(b**2)


def problem(m, seed, strength=1.0):
    rng = np.random.default_rng(seed)
    b = rng.normal(size=40)
    a = strength * b[:, None] * rng.uniform(-0.5, 1, m) + rng.normal(size=(40, m))
    return a, b


@given(st.integers(1, 5), st.integers(0, 10**6), st.sampled_from([0.0, 0.3, 1.0, 5.0]))
def test_weights_are_feasible_and_no_other_solver_does_better(m, seed, strength):
    a, b = problem(m, seed, strength)
    w = bounded_nnls(a, b)
    assert w.min() >= 0
    assert w.sum() <= 1 + 1e-12
    reference = minimize(
        lambda v: objective(a, b, v),
        np.full(m, 0.5 / m),
        jac=lambda v: 2 * a.T @ (a @ v - b) / np.sum(b**2),
        bounds=[(0, 1)] * m,
        constraints={
            "type": "ineq",
            "fun": lambda v: 1 - v.sum(),
            "jac": lambda v: -np.ones_like(v),
        },
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 300},
    )
    assert objective(a, b, w) <= reference.fun + OBJECTIVE
    np.testing.assert_allclose(w, reference.x, atol=np.sqrt(WEIGHTS))


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0])
def test_weights_are_the_best_on_a_fine_grid(scale):
    # A small scale asks for weights above one: the limit binds.
    a, b = problem(2, 3, 2.0)
    a = a * scale
    best = objective(a, b, bounded_nnls(a, b))
    ticks = np.linspace(0, 1, 201)
    grid = [objective(a, b, np.array([u, v])) for u in ticks for v in ticks if u + v <= 1]
    assert best <= min(grid) + OBJECTIVE
    assert best >= min(grid) - 1e-3


def test_weights_worked_out_by_hand():
    # Minimize (2w₁ − 1)² + (2w₂ − 1)²: w = (½, ½), on the limit, reached freely.
    np.testing.assert_allclose(bounded_nnls(np.diag([2.0, 2.0]), np.ones(2)), [0.5, 0.5])
    # (w₁ − 1)² + (w₂ − 1)² with w₁ + w₂ ≤ 1: again (½, ½), the limit binding.
    np.testing.assert_allclose(bounded_nnls(np.eye(2), np.ones(2)), [0.5, 0.5])
    # A member that points the wrong way gets nothing, and a useless target gives no weights.
    np.testing.assert_array_equal(bounded_nnls(np.array([[-1.0], [-1.0]]), np.ones(2)), [0.0])
    np.testing.assert_array_equal(bounded_nnls(np.eye(2), np.zeros(2)), [0.0, 0.0])
    # One member of a third of the size needed: full weight.
    np.testing.assert_allclose(bounded_nnls(np.full((2, 1), 1 / 3), np.ones(2)), [1.0])


def test_two_equal_members_share_what_one_would_get():
    X, t, y = log()
    one = Stack({"a": KNeighborsRegressor(5)}).fit(X, t, y)
    two = Stack({"a": KNeighborsRegressor(5), "b": KNeighborsRegressor(5)}).fit(X, t, y)
    np.testing.assert_allclose(two.weights_.sum(), one.weights_.sum(), rtol=1e-9)
    np.testing.assert_allclose(two.predict(X, t), one.predict(X, t), rtol=1e-9)


def test_it_is_the_loop_over_folds():
    X, t, y = log(60)
    members = {"line": LinearRegression(), "near": KNeighborsRegressor(4)}
    model = Stack(members, folds=3, seed=7).fit(X, t, y)
    fold, columns = fold_of(0, 60, 3, 7), np.column_stack([X, t])
    held_out, target = np.empty((60, 2)), np.empty(60)
    for k in range(3):
        kept = fold != k
        target[~kept] = y[~kept] - y[kept].mean()
        for j, member in enumerate(members.values()):
            prediction = member.fit(columns[kept], y[kept]).predict(columns[~kept])
            held_out[~kept, j] = prediction - y[kept].mean()
    weights = bounded_nnls(held_out, target)
    np.testing.assert_allclose(model.weights_, weights, rtol=1e-9)
    assert model.names_ == ("line", "near")
    expected = y.mean() + sum(
        w * (member.fit(columns, y).predict(columns) - y.mean())
        for w, member in zip(weights, members.values(), strict=True)
    )
    np.testing.assert_allclose(model.predict(X, t), expected, rtol=1e-9)


class Oracle(OutcomeModel):
    """Knows the truth."""

    def __init__(self, slope=1.0):
        self.slope = slope

    def fit(self, X, t, y):  # noqa: ARG002
        self.fitted_ = True
        return self

    def predict(self, X, t):
        return self.slope * (X[:, 0] + np.ravel(t))


def test_a_perfect_model_gets_all_the_weight_and_noise_next_to_none():
    X, t, _ = log(400)
    truth = X[:, 0] + t
    perfect = Stack({"truth": Oracle(), "near": KNeighborsRegressor(1)}).fit(X, t, truth)
    np.testing.assert_allclose(perfect.weights_, [1.0, 0.0], atol=0.01)
    noise = np.random.default_rng(0).normal(size=400)
    assert Stack(ridge_pair()).fit(X, t, noise).weights_.sum() < 0.3


def test_members_without_weight_are_not_fitted_again():
    X, t, _ = log(100)
    model = Stack({"wrong": Oracle(-1.0), "right": Oracle()}).fit(X, t, X[:, 0] + t)
    assert list(model.models_) == ["right"]
    nothing = Stack({"wrong": Oracle(-1.0)}).fit(X, t, X[:, 0] + t)
    assert nothing.models_ == {}
    np.testing.assert_array_equal(nothing.predict(X, t), np.full(100, nothing.mean_))
    np.testing.assert_array_equal(nothing.curve(X, t[:4]), np.full((100, 4), nothing.mean_))


def test_what_cannot_work_is_refused():
    X, t, y = log(9)
    with pytest.raises(
        DataError, match="`Stack` with 5 folds needs at least 10 rows to learn from; got 9"
    ):
        Stack(ridge_pair()).fit(X, t, y)
    with pytest.raises(InvalidArgument, match="The `folds` of `Stack` must be a whole number ≥ 2"):
        Stack(ridge_pair(), folds=1).fit(X, t, y)
    with pytest.raises(InvalidArgument, match="`models` of `Stack`"):
        Stack({}, folds=2).fit(X, t, y)
    with pytest.raises(InvalidArgument, match="An outcome model must be"):
        Stack({"a": "forest"}, folds=2).fit(X, t, y)
    with pytest.raises(InvalidArgument, match="`seed`"):
        Stack(seed=-2).fit(X, t, y)


def test_the_smooth_library_alone_takes_all_columns_for_contexts():
    # y is the sign of the last context: a model that took it for a forest's column would miss it.
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(400, 2)), rng.normal(size=400)
    y = 3.0 * np.abs(x[:, 1]) + 0.1 * rng.normal(size=400)
    fitted = Stack(smooth_library()).fit(x, t, y)
    assert list(smooth_library()) == ["quadratic", "spline", "smooth"]
    assert np.mean((fitted.predict(x, t) - y) ** 2) < 0.1 * y.var()
