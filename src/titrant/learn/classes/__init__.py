"""What kinds of policies can be learned."""

from titrant.learn.classes.automatic import Automatic
from titrant.learn.classes.base import (
    ClippedClass,
    CurveClass,
    DoseCurves,
    DoseLimits,
    FittedClass,
    PolicyClass,
)
from titrant.learn.classes.bent import AdditiveClass, ProductsClass
from titrant.learn.classes.linear import ConstantClass, LinearClass
from titrant.learn.classes.linear_tree import LinearTreeClass
from titrant.learn.classes.personal import PersonalClass
from titrant.learn.classes.rbf import RBFClass
from titrant.learn.classes.templates import OwnClass, class_of
from titrant.learn.classes.tree import TreeClass

__all__ = [
    "AdditiveClass",
    "Automatic",
    "ClippedClass",
    "ConstantClass",
    "CurveClass",
    "DoseCurves",
    "DoseLimits",
    "FittedClass",
    "LinearClass",
    "LinearTreeClass",
    "OwnClass",
    "PersonalClass",
    "PolicyClass",
    "ProductsClass",
    "RBFClass",
    "TreeClass",
    "class_of",
]
