"""Room 6, estimators: the terms of each row and the value as a function of their means."""

from titrant.estimators.base import (
    Estimator,
    Observed,
    PartlyObserved,
    SmoothedEstimator,
    WeightedEstimator,
)
from titrant.estimators.discretized import Discretized
from titrant.estimators.doubly_robust import DirectMethod, DoublyRobust
from titrant.estimators.ipw import IPW, SelfNormalized
from titrant.estimators.joint import Ask, Joint, JointPass, Problem, Tally, ask
from titrant.estimators.question import Part, Question
from titrant.estimators.rows import Rows

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
"""Every estimator, in each of its forms; the law tests run over this list.

`PartlyObserved` is none of them: it is `Observed` where outcomes are missing, and never chosen.
"""

__all__ = [
    "ESTIMATORS",
    "IPW",
    "Ask",
    "DirectMethod",
    "Discretized",
    "DoublyRobust",
    "Estimator",
    "Joint",
    "JointPass",
    "Observed",
    "Part",
    "PartlyObserved",
    "Problem",
    "Question",
    "Rows",
    "SelfNormalized",
    "SmoothedEstimator",
    "Tally",
    "WeightedEstimator",
    "ask",
]
