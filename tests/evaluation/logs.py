"""Logs, policies and models that the tests of evaluation and inference share."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

from titrant import Known, Linear, LoggedData
from titrant.data.simulate import Quadratic
from titrant.estimators import ESTIMATORS, Discretized, Estimator

# m = 1 + x0 + (t − b(x))², b = x0 − x1/2, T ~ N(b + 0.2, 0.6²): V of τ = b + c is 1.5 + c².
DESIGN = Quadratic()
NEAR = Linear(coef=[1.0, -0.5], intercept=0.1)
FAR = Linear(coef=[1.0, -0.5], intercept=0.7)


def smooth_log(n: int = 240, seed: int = 0, *, noise: float = 0.5) -> LoggedData:
    return replace(DESIGN, noise=noise).draw(n, seed)


def center(X):
    return X[:, 0] - 0.5 * X[:, 1] + 0.2


KNOWN = Known(
    lambda X, t: norm.pdf(t, center(X), 0.6),
    lambda X, t: norm.cdf(t, center(X), 0.6),
)


class TrueMean(BaseEstimator):
    """A regressor of (x0, x1, t) that has nothing to learn: m(t, x) of the design."""

    def fit(self, X, y):  # noqa: ARG002
        return self

    def predict(self, X):
        return DESIGN.mean_outcome(X[:, :2], X[:, 2])


class WrongMean(BaseEstimator):
    """A regressor of (x, t) that has learned something else."""

    def fit(self, X, y):  # noqa: ARG002
        return self

    def predict(self, X):
        return 0.3 + np.cos(X).sum(axis=1)


def with_model(estimator: Estimator, model: object = None) -> Estimator:
    """The estimator with an outcome model that is quick to fit, if it takes one."""
    if "outcome" not in {f.name for f in fields(estimator)}:
        return estimator
    return replace(estimator, outcome=model or LinearRegression())


KINDS = [with_model(e) for e in ESTIMATORS]
"""Every estimator; with linear regression where an outcome model is needed."""


def kind_name(estimator: Estimator) -> str:
    switches = ("self_normalized", "centered")
    told = [s for s in switches if getattr(estimator, s, False)]
    return "-".join([type(estimator).__name__, *told])


def propensity_for(estimator: Estimator) -> Known | None:
    """Bins need a cdf; the others take the log's column."""
    return KNOWN if isinstance(estimator, Discretized) else None


def changed(log: LoggedData, *, outcome=None, dose_factor=1.0) -> LoggedData:
    """The log with other outcomes, or doses in another unit."""
    d = log.dimension
    q = None if log.propensity is None else log.propensity / dose_factor**d
    return LoggedData(
        log.context,
        log.treatment * dose_factor,
        log.outcome if outcome is None else outcome,
        q,
        bounds=(log.lower * dose_factor, log.upper * dose_factor) if log.bounded else None,
        names=log.names,
    )


def width(estimate, level: float = 0.95) -> float:
    low, high = estimate.interval(level)
    return high - low
