"""The step of a line search: where a cubic through two ends with their slopes is least."""

from __future__ import annotations

import math

from titrant.compiled.decorators import compiled

_NEAR, _FAR = 0.1, 0.9
"""A new step keeps this share of the bracket away from both of its ends."""
_LEAST, _MOST = 2.0, 5.0
"""Factors by which a step grows that was too short."""


@compiled
def between(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """Return a step between a, which descends (da < 0), and b > a, which is too far.

    The minimizer of the cubic through values f and slopes d; of the quadratic through fa, da, fb
    when that is nearer to a; the middle when f or d is not finite at b.
    """
    width = b - a
    step = a + 0.5 * width
    if abs(fb) < float("inf"):
        curvature = (fb - fa) / width - da
        if curvature > 0.0:
            step = a - 0.5 * da * width / curvature
        cubic = _cubic(a, fa, da, b, fb, db)
        if a < cubic < b:
            step = cubic if (curvature <= 0.0 or cubic < step) else 0.5 * (cubic + step)
    return min(max(step, a + _NEAR * width), a + _FAR * width)


@compiled
def beyond(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """Return a step beyond b > a, where the function still descends steeply."""
    step = _cubic(a, fa, da, b, fb, db)
    if not step > b:
        step = a + _MOST * (b - a)
    return min(max(step, a + _LEAST * (b - a)), a + _MOST * (b - a))


@compiled
def _cubic(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """Return where the cubic interpolant is least (Nocedal & Wright, 3.59), or nan."""
    d1 = da + db - 3.0 * (fa - fb) / (a - b)
    square: float = d1 * d1 - da * db
    if not square >= 0.0:
        return float("nan")
    d2 = math.sqrt(square)
    below = db - da + 2.0 * d2
    if below == 0.0:
        return float("nan")
    return b - (b - a) * (db + d2 - d1) / below
