"""Room 8, inference: how sure one may be of an estimate, and when not to trust it."""

from titrant.inference.base import Inference, Interval, IntervalMethod
from titrant.inference.diagnostics import Check, Diagnostics, Verdict
from titrant.inference.normal import Normal
from titrant.inference.rbc import RobustBiasCorrected

INTERVALS: tuple[IntervalMethod, ...] = (RobustBiasCorrected(), Normal())
"""Every interval method; the law tests run over this list."""

__all__ = [
    "INTERVALS",
    "Check",
    "Diagnostics",
    "Inference",
    "Interval",
    "IntervalMethod",
    "Normal",
    "RobustBiasCorrected",
    "Verdict",
]
