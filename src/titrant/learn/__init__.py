"""The parts of learning a policy: classes, outcome curves, candidates, scores, honest values."""

from titrant.learn.classes import (
    ConstantClass,
    FittedClass,
    LinearClass,
    PolicyClass,
    RBFClass,
)

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
    "ConstantClass",
    "FittedClass",
    "LinearClass",
    "PolicyClass",
    "RBFClass",
]
