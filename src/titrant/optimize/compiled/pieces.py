"""A piecewise polynomial objective along a line of policies, piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, inlined

if TYPE_CHECKING:
    from titrant._types import Array

    Row = tuple[float, float, float]
    """κ, g and e of a row, see below."""
    Line = tuple[Array, Array]
    """Rows and kinds."""

# Polynomials c₀ + c₁x + … as arrays (degree + 1,), constant first.


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


# The weight of a row along a line of policies τ = offset + slope·β, as pieces of polynomials.
#
# With u = v + κβ, v = (offset − t)/h and κ = slope/h, a row weighs g·K(u) while |u| ≤ 1. A kernel
# that is even in u is one polynomial there; one with a corner at 0 is two, one on each side. A
# piece is a polynomial in u on [u₀, u₁]: kinds (pieces, 2 + 5) holds u₀, u₁ and the coefficients;
# rows (4, n) holds v, κ, g and e.
#
# The sums over rows along the line are polynomials too: A = Σw·e, B = Σw and C = Σw², of degrees
# D, D and 2D, side by side in one row of an array (…, 4D + 3), or (…, 2D + 2) without C.
#
# Functions called for each row take arrays and indices, not slices: a slice is counted in and out.


@inlined
def span(v: float, kappa: float, kinds: Array, p: int) -> tuple[float, float]:
    """Return the β between which a piece carries weight; an empty span when it never does."""
    low, high = kinds[p, 0], kinds[p, 1]
    if kappa == 0.0:
        # A row at the corner belongs to the piece on its left.
        inside = low <= v <= high and not (v == 0.0 and low == 0.0)
        return (-np.inf, np.inf) if inside else (np.inf, -np.inf)
    first, last = (low - v) / kappa, (high - v) / kappa
    return (first, last) if kappa > 0.0 else (last, first)


@inlined
def ends(kappa: float, kinds: Array, p: int) -> tuple[float, float]:
    """Return u where a piece begins and where it ends, as β grows."""
    return (kinds[p, 0], kinds[p, 1]) if kappa > 0.0 else (kinds[p, 1], kinds[p, 0])


@inlined
def add_inlined(
    sums: Array, to: int, sign: float, degree: int, kinds: Array, p: int, u: float, row: Row
) -> float:
    """Add sign × the polynomials of one row in x to sums[to], x counted from where its u is.

    Returns the weight g·K(u).
    """
    if degree == 2:  # noqa: PLR2004  (the default kernel, written out for speed)
        return _add_quadratic(sums, to, sign, kinds, p, u, row)
    kappa, g, e = row
    k = kinds[p, 2 : degree + 3].copy()
    shift(k, u)
    power = g
    for j in range(degree + 1):
        k[j] *= power
        power *= kappa
        sums[to, j] += sign * e * k[j]
        sums[to, degree + 1 + j] += sign * k[j]
    if sums.shape[1] > 2 * degree + 2:
        for i in range(degree + 1):
            for j in range(degree + 1):
                sums[to, 2 * degree + 2 + i + j] += sign * k[i] * k[j]
    weight: float = k[0]
    return weight


@compiled
def add_piece(
    sums: Array, to: int, sign: float, degree: int, kinds: Array, p: int, u: float, row: Row
) -> float:
    """Do the same as `add_inlined`, where it is not the whole work."""
    return add_inlined(sums, to, sign, degree, kinds, p, u, row)


@inlined
def _add_quadratic(
    sums: Array, to: int, sign: float, kinds: Array, p: int, u: float, row: Row
) -> float:
    """Add the polynomials of a row whose kernel is quadratic."""
    kappa, g, e = row
    k0: float = g * (kinds[p, 2] + u * (kinds[p, 3] + u * kinds[p, 4]))
    k1 = g * kappa * (kinds[p, 3] + 2.0 * u * kinds[p, 4])
    k2 = g * kappa * kappa * kinds[p, 4]
    e *= sign
    sums[to, 0] += e * k0
    sums[to, 1] += e * k1
    sums[to, 2] += e * k2
    sums[to, 3] += sign * k0
    sums[to, 4] += sign * k1
    sums[to, 5] += sign * k2
    if sums.shape[1] > 6:  # noqa: PLR2004
        sums[to, 6] += sign * k0 * k0
        sums[to, 7] += sign * 2.0 * k0 * k1
        sums[to, 8] += sign * (2.0 * k0 * k2 + k1 * k1)
        sums[to, 9] += sign * 2.0 * k1 * k2
        sums[to, 10] += sign * k2 * k2
    return k0


@compiled
def sum_active(sums: Array, to: int, degree: int, line: Line, beta: float, left: bool) -> None:
    """Set sums[to] to that of all pieces that carry weight just left or right of β."""
    rows, kinds = line
    sums[to] = 0.0
    for i in range(rows.shape[1]):
        v, kappa, g, e = rows[0, i], rows[1, i], rows[2, i], rows[3, i]
        for p in range(len(kinds)):
            start, end = span(v, kappa, kinds, p)
            if start < beta < end or (beta == end if left else beta == start):
                add_piece(sums, to, 1.0, degree, kinds, p, v + kappa * beta, (kappa, g, e))


@compiled
def shift_sums(sums: Array, to: int, degree: int, by: float) -> None:
    """Count all polynomials of sums[to] from x + by instead of x."""
    size = sums.shape[1]
    _shift_part(sums, to, 0, degree + 1, by)
    _shift_part(sums, to, degree + 1, 2 * degree + 2, by)
    _shift_part(sums, to, 2 * degree + 2, size, by)


@compiled
def _shift_part(sums: Array, to: int, start: int, stop: int, by: float) -> None:
    for low in range(start, stop - 1):
        for k in range(stop - 2, low - 1, -1):
            sums[to, k] += by * sums[to, k + 1]


@compiled
def least_excess(sums: Array, to: int, degree: int, width: float, best: float, n: float) -> float:
    """Return a lower bound of A − best·B, or A − best·n when n > 0, over [0, width].

    From the middle of the interval, each power at its worst.
    """
    half = 0.5 * width
    bound, power = 0.0, 1.0
    for k in range(degree + 1):
        # The k-th coefficient about the middle: Σⱼ binom(j, k) dⱼ halfʲ⁻ᵏ.
        total, factor = 0.0, 1.0
        for j in range(k, degree + 1):
            d = sums[to, j] - (0.0 if n > 0.0 else best * sums[to, degree + 1 + j])
            total += factor * d
            factor *= half * (j + 1) / (j + 1 - k)
        if k == 0:
            bound = total - (best * n if n > 0.0 else 0.0)
        else:
            bound -= power * (abs(total) if k % 2 == 1 else max(-total, 0.0))
        power *= half
    return bound
