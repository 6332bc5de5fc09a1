"""Polynomials c₀ + c₁x + … as arrays (degree + 1,), constant first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled

if TYPE_CHECKING:
    from titrant._types import Array

_HALVINGS = 80
"""Halvings of a bracket: more than the digits of a number."""


@compiled
def at(c: Array, x: float) -> float:
    """Return the value at x, by Horner's rule."""
    total = 0.0
    for k in range(len(c) - 1, -1, -1):
        total = total * x + c[k]
    return total


@compiled
def shift(c: Array, by: float) -> None:
    """Replace c(x) by c(x + by), by repeated synthetic division."""
    for low in range(len(c) - 1):
        for k in range(len(c) - 2, low - 1, -1):
            c[k] += by * c[k + 1]


@compiled
def product(a: Array, b: Array) -> Array:
    """Return a·b."""
    out = np.zeros(len(a) + len(b) - 1)
    for i in range(len(a)):
        for k in range(len(b)):
            out[i + k] += a[i] * b[k]
    return out


@compiled
def derivative(c: Array) -> Array:
    """Return c′; of a constant, the constant 0."""
    out = np.zeros(max(len(c) - 1, 1))
    for k in range(1, len(c)):
        out[k - 1] = k * c[k]
    return out


@compiled
def roots(c: Array, width: float) -> Array:
    """Return the points of (0, width) where c changes sign.

    Between two neighboring roots of a derivative a polynomial is monotone, so the roots of each
    derivative bracket those of the one before; from the linear one up, each is found by halving.
    """
    ends = np.array([0.0, width])
    for order in range(len(c) - 2, -1, -1):
        d = c
        for _ in range(order):
            d = derivative(d)
        found = [0.0]
        for k in range(len(ends) - 1):
            left, right = at(d, ends[k]), at(d, ends[k + 1])
            if left * right < 0.0:
                found.append(_between(d, ends[k], ends[k + 1], left))
        found.append(width)
        ends = np.array(found)
    return ends[1:-1]


@compiled
def _between(c: Array, low: float, high: float, at_low: float) -> float:
    """Return the one root between low and high, where c has other signs."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if at(c, middle) * at_low > 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
