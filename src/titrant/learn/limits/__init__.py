"""Limits of the real world: what a rule must keep to, learned and graded as it is deployed."""

from titrant.learn.limits.declared import PARTS, LimitedClass, Limits
from titrant.learn.limits.found import LimitCost, LimitsFound
from titrant.learn.limits.prices import Cap, TradeOff

__all__ = ["PARTS", "Cap", "LimitCost", "LimitedClass", "Limits", "LimitsFound", "TradeOff"]
