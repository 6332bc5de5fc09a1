"""Logs and settings that learn in a blink."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

import titrant as tt
from evaluation.logs import with_model
from laws.designs import name
from titrant.data.simulate import DESIGNS
from titrant.estimators import ESTIMATORS, DirectMethod, SmoothedEstimator
from titrant.outcome import OutcomeModel, RidgeModel, SecondOrder

QUADRATIC = DESIGNS["quadratic"]
"""m = 1 + x0 + (t − b(x))², b = x0 − x1/2: its best policy is linear and worth 1.5."""
FAST = tt.StackedDR(models={"quadratic": RidgeModel(SecondOrder())}, folds=3)
GRADE = tt.DoublyRobust(outcome=RidgeModel(SecondOrder()), folds=3)
SEARCHED = {
    name(estimator): with_model(estimator, RidgeModel(SecondOrder()))
    for estimator in ESTIMATORS
    if isinstance(estimator, (SmoothedEstimator, DirectMethod))
}
"""Every estimator by which a policy can be searched for; the others have no slope."""


def quadratic_log(n: int = 200, seed: int = 1) -> tt.LoggedData:
    return QUADRATIC.draw(n, seed)


def changed(log: tt.LoggedData, *, dose: float = 1.0, outcome: float = 1.0, shift: float = 0.0):
    """The same log in other units: doses and outcomes times a number, outcomes plus a shift."""
    q = None if log.propensity is None else log.propensity / dose**log.dimension
    bounds = (log.lower * dose, log.upper * dose) if log.bounded else None
    y = log.outcome * outcome + shift
    return tt.LoggedData(log.context, log.treatment * dose, y, q, bounds=bounds, names=log.names)


def unclipped(policy):
    """The learned policy without the limits around it."""
    return policy.policy if isinstance(policy, tt.Clipped) else policy


def linear_part(policy):
    """Intercept and coefficients of a learned linear policy."""
    return unclipped(policy).params


SEEN: dict[str, list[set[float]]] = {}
"""By diary: the rows of every fit, known by their last context."""


class Memorizing(OutcomeModel, BaseEstimator):
    """Predicts a row it has seen by its outcome, and any other by 1,000: a leak would show.

    The last context is the number of the row. What each fit has seen is written into a diary.
    """

    def __init__(self, diary: str, *, strict: bool = True) -> None:
        self.diary = diary
        self.strict = strict

    def fit(self, X, t, y):  # noqa: ARG002
        self.known_ = set(X[:, -1].tolist())
        self.mean_ = float(np.mean(y))
        SEEN.setdefault(self.diary, []).append(self.known_)
        return self

    def predict(self, X, t):
        rows = set(X[:, -1].tolist())
        if self.strict and rows & self.known_:
            raise AssertionError(f"{len(rows & self.known_)} rows are predicted by what saw them")
        return np.full(len(X), self.mean_) + 0.1 * np.asarray(t).reshape(len(X), -1)[:, 0]


def numbered(n: int = 120, seed: int = 0) -> tt.LoggedData:
    """A log whose last context is the number of the row."""
    log = quadratic_log(n, seed)
    X = np.column_stack([log.context, np.arange(n)])
    return tt.LoggedData(X, log.treatment, log.outcome, log.propensity)
