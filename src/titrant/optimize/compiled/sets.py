"""The sets that parameters stay in, as numbers: bounds, and a ball over the counted parameters.

limits (3, P) holds the lower and the upper bounds, and 1 where a parameter counts for the norm;
without a ball the radius is infinite. Bounds and a ball do not come together.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from titrant.compiled.decorators import compiled

if TYPE_CHECKING:
    from titrant._types import Array

_ON_SPHERE = 1.0 - 1e-12
"""Share of the radius from which a point is on the sphere: projection rounds."""


@compiled
def project(x: Array, limits: Array, radius: float) -> None:
    """Move x (P,) to the nearest point of the set."""
    norm = 0.0
    for k in range(len(x)):
        x[k] = min(max(x[k], limits[0, k]), limits[1, k])
        norm += limits[2, k] * x[k] ** 2
    norm = math.sqrt(norm)
    if norm > radius:
        for k in range(len(x)):
            if limits[2, k] > 0.0:
                x[k] *= radius / norm


@compiled
def multiplier(x: Array, g: Array, limits: Array, radius: float) -> float:
    """Return μ ≥ 0 for which g + μx (over the counted) is tangent to the ball; 0 inside it."""
    if radius == math.inf:
        return 0.0
    square = inner = 0.0
    for k in range(len(x)):
        square += limits[2, k] * x[k] ** 2
        inner += limits[2, k] * g[k] * x[k]
    if inner >= 0.0 or square < (_ON_SPHERE * radius) ** 2:
        return 0.0
    return -inner / square


@compiled
def reduce_gradient(
    x: Array, g: Array, limits: Array, radius: float, r: Array, free: Array
) -> None:
    """Set r (P,) to the gradient without what the set holds back, free (P,) to 0 at held bounds."""
    mu = multiplier(x, g, limits, radius)
    for k in range(len(x)):
        held = (x[k] <= limits[0, k] and g[k] > 0.0) or (x[k] >= limits[1, k] and g[k] < 0.0)
        free[k] = 0.0 if held else 1.0
        r[k] = free[k] * (g[k] + mu * limits[2, k] * x[k])


@compiled
def stay_tangent(x: Array, g: Array, limits: Array, radius: float, d: Array) -> None:
    """Take off d (P,) what leads out of the sphere that holds x back."""
    if multiplier(x, g, limits, radius) == 0.0:
        return
    square = inner = 0.0
    for k in range(len(x)):
        square += limits[2, k] * x[k] ** 2
        inner += limits[2, k] * d[k] * x[k]
    for k in range(len(x)):
        d[k] -= limits[2, k] * x[k] * inner / square


@compiled
def largest_move(x: Array, r: Array, limits: Array) -> float:
    """Return max |P(x − r) − x|, P the projection onto the bounds: 0 at a solution."""
    largest = 0.0
    for k in range(len(x)):
        move = min(max(x[k] - r[k], limits[0, k]), limits[1, k]) - x[k]
        largest = max(largest, abs(move))
    return largest
