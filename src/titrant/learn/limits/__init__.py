"""Limits of the real world: what a rule must keep to, learned and graded as it is deployed."""

from titrant.learn.limits.declared import PARTS, LimitedClass, Limits
from titrant.learn.limits.found import LimitCost, LimitsFound

__all__ = ["PARTS", "LimitCost", "LimitedClass", "Limits", "LimitsFound"]
