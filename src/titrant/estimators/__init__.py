"""Room 6, estimators: the terms of each row and the value as a function of their means."""

from titrant.estimators.base import Estimator
from titrant.estimators.direct import DirectMethod
from titrant.estimators.discretized import Discretized
from titrant.estimators.doubly_robust import DoublyRobust
from titrant.estimators.ipw import IPW
from titrant.estimators.joint import Joint, JointPass, Question, ask
from titrant.estimators.observed import Observed
from titrant.estimators.problem import Problem
from titrant.estimators.rows import Rows
from titrant.estimators.self_normalized import SelfNormalized
from titrant.estimators.smoothed import SmoothedEstimator
from titrant.estimators.tally import Tally
from titrant.estimators.weighted import WeightedEstimator

ESTIMATORS: tuple[Estimator, ...] = (
    IPW(),
    IPW(centered=True),
    SelfNormalized(),
    DoublyRobust(self_normalized=False),
    DoublyRobust(),
    DirectMethod(),
    Observed(),
    Discretized(self_normalized=False),
    Discretized(),
)
"""Every estimator, in each of its forms; the law tests run over this list."""

__all__ = [
    "ESTIMATORS",
    "IPW",
    "DirectMethod",
    "Discretized",
    "DoublyRobust",
    "Estimator",
    "Joint",
    "JointPass",
    "Observed",
    "Problem",
    "Question",
    "Rows",
    "SelfNormalized",
    "SmoothedEstimator",
    "Tally",
    "WeightedEstimator",
    "ask",
]
