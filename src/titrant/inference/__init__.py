"""Room 8, inference: how sure one may be of an estimate, and when not to trust it."""

from titrant.inference.base import Inference, Interval, IntervalMethod, Normal, StudentInference
from titrant.inference.bernstein import EmpiricalBernstein
from titrant.inference.bootstrap import PoissonBootstrap
from titrant.inference.bounds import Expansion, Generalization, LinearBall, PolicyBall, RBFBall
from titrant.inference.diagnostics import Check, Diagnostics, Verdict
from titrant.inference.rbc import Narrow, RobustBiasCorrected

INTERVALS: tuple[IntervalMethod, ...] = (
    RobustBiasCorrected(),
    RobustBiasCorrected(recentered=True),
    Narrow(),
    Normal(),
    PoissonBootstrap(),
    EmpiricalBernstein(),
)
"""Every interval method; the law tests run over this list."""

__all__ = [
    "INTERVALS",
    "Check",
    "Diagnostics",
    "EmpiricalBernstein",
    "Expansion",
    "Generalization",
    "Inference",
    "Interval",
    "IntervalMethod",
    "LinearBall",
    "Narrow",
    "Normal",
    "PoissonBootstrap",
    "PolicyBall",
    "RBFBall",
    "RobustBiasCorrected",
    "StudentInference",
    "Verdict",
]
