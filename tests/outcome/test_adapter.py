"""Any regressor as an outcome model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from titrant.errors import DataError, InvalidArgument
from titrant.outcome import OfRegressor, as_outcome_model

# Least squares on 30 rows of order one.
ROUNDING = 1e-10

RNG = np.random.default_rng(0)
X, T = RNG.normal(size=(30, 2)), RNG.normal(size=30)


def test_the_dose_is_the_last_column():
    y = 1 + 2 * X[:, 0] - X[:, 1] + 5 * T
    model = as_outcome_model(LinearRegression()).fit(X, T, y)
    np.testing.assert_allclose(model.regressor_.coef_, [2, -1, 5], rtol=ROUNDING)
    np.testing.assert_allclose(model.predict(X, T + 1), y + 5, rtol=ROUNDING)


def test_a_pipeline_and_two_doses():
    both = np.column_stack([T, T[::-1]])
    y = both[:, 0] * both[:, 1] + X[:, 0]
    model = as_outcome_model(make_pipeline(PolynomialFeatures(2), LinearRegression()))
    np.testing.assert_allclose(model.fit(X, both, y).predict(X, both), y, atol=ROUNDING)


def test_the_given_regressor_stays_unfitted():
    regressor = LinearRegression()
    model = OfRegressor(regressor).fit(X, T, T)
    assert not hasattr(regressor, "coef_")
    assert as_outcome_model(model) is model


@pytest.mark.parametrize(
    "wrong", [LinearRegression, "forest", None, 3.0, lambda x: x, LogisticRegression()]
)
def test_what_is_no_regressor_is_refused(wrong):
    with pytest.raises(InvalidArgument, match="an instance, not a class; no classifier"):
        as_outcome_model(wrong)


def test_bad_tables_are_refused_with_counts():
    model = OfRegressor(LinearRegression())
    with pytest.raises(DataError, match=r"contexts \(n, p\) and doses.*\(30, 2\) and \(29,\)"):
        model.fit(X, T[1:], T)
    with pytest.raises(DataError, match=r"shapes \(30,\) and \(30,\)"):
        model.fit(T, T, T)
    with pytest.raises(DataError, match=r"one outcome per row, shape \(30,\); got shape \(29,\)"):
        model.fit(X, T, T[1:])
    hole = T.copy()
    hole[[3, 4]] = np.nan, np.inf
    for arguments in ((X, hole, T), (X, T, hole), (np.column_stack([X, hole]), T, T)):
        with pytest.raises(DataError, match="cannot learn from 2 of 30 rows"):
            model.fit(*arguments)


class Strange(RegressorMixin, BaseEstimator):
    """Predicts what `answer` says."""

    def __init__(self, answer=None):
        self.answer = answer

    def fit(self, X, y):  # noqa: ARG002
        return self

    def predict(self, X):
        return self.answer(len(X))


def test_a_column_of_predictions_is_flattened():
    model = OfRegressor(Strange(lambda n: np.ones((n, 1)))).fit(X, T, T)
    np.testing.assert_array_equal(model.predict(X, T), np.ones(30))


@pytest.mark.parametrize("answer", [lambda n: np.ones(n - 1), lambda n: np.full(n, np.nan)])
def test_useless_predictions_are_refused(answer):
    with pytest.raises(DataError, match="`Strange` must predict one finite number per row"):
        OfRegressor(Strange(answer)).fit(X, T, T).predict(X, T)
