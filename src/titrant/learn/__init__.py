"""The parts of learning a policy: classes, outcome curves, candidates, scores, honest values."""

from titrant.learn.classes import (
    AdditiveClass,
    Automatic,
    ClippedClass,
    ConstantClass,
    CurveClass,
    FittedClass,
    LinearClass,
    LinearTreeClass,
    PersonalClass,
    PolicyClass,
    ProductsClass,
    RBFClass,
    TreeClass,
)
from titrant.learn.setting import Learned, Procedure, TrainingLog

POLICY_CLASSES: tuple[PolicyClass, ...] = (
    LinearClass(),
    LinearClass(standardize=False),
    LinearClass(intercept=False),
    LinearClass(intercept=False, standardize=False),
    ConstantClass(),
    AdditiveClass(),
    ProductsClass(),
    RBFClass(centers=7),
    TreeClass(),
    LinearTreeClass(),
    PersonalClass(),
)
"""Every policy class, in each of its forms; the law tests run over this list."""

__all__ = [
    "POLICY_CLASSES",
    "AdditiveClass",
    "Automatic",
    "ClippedClass",
    "ConstantClass",
    "CurveClass",
    "FittedClass",
    "Learned",
    "LinearClass",
    "LinearTreeClass",
    "PersonalClass",
    "PolicyClass",
    "Procedure",
    "ProductsClass",
    "RBFClass",
    "TrainingLog",
    "TreeClass",
]
