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

POLICY_CLASSES: tuple[PolicyClass, ...] = (
    LinearClass(),
    LinearClass(standardize=False),
    LinearClass(intercept=False),
    LinearClass(intercept=False, standardize=False),
    ConstantClass(),
    RBFClass(centers=7),
)
"""Every policy class, in each of its forms; the law tests run over this list."""

__all__ = [
    "POLICY_CLASSES",
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
