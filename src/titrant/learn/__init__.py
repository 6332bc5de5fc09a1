"""The parts of learning a policy: classes, outcome curves, candidates, scores, honest values."""

from titrant.learn.classes import (
    ClippedClass,
    ConstantClass,
    FittedClass,
    LinearClass,
    PolicyClass,
    RBFClass,
)
from titrant.learn.setting import Learned, Procedure, TrainingLog

__all__ = [
    "ClippedClass",
    "ConstantClass",
    "FittedClass",
    "Learned",
    "LinearClass",
    "PolicyClass",
    "Procedure",
    "RBFClass",
    "TrainingLog",
]
