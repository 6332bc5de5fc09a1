"""The policy classes of the room that any procedure can learn."""

from titrant.learn import POLICY_CLASSES, CurveClass

AFFINE = tuple(kind for kind in POLICY_CLASSES if not isinstance(kind, CurveClass))
"""The others are learned from outcome curves alone."""
