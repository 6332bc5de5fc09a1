"""Where along a line of policies the least value can be: bounds over buckets, without a sort.

Edges (K + 1,) cut the line into buckets. One pass over the rows enters each piece (see below)
into the bucket where it begins and the one where it ends. What is active at an edge follows from
its neighbor, counted from the edge itself and from both ends inward, so that hardly anything
cancels; where few of many rows are left, their sums are taken afresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, inlined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

    Index = NDArray[np.int64]
    Kept = NDArray[np.bool_]
    Goal = tuple[int, float, tuple[float, float]]
    """The degree, n > 0 for a mean over n rows (0 for self-normalization), and the floors."""
    Row = tuple[float, float, float]
    """κ, g and e of a row, see below."""
    Line = tuple[Array, Array]
    """Rows and kinds."""

_BLOCK = 1024
"""Rows that are looked up together."""
FEW = 1000
"""Sums are taken afresh when fewer than 1/1000 of the rows that went into them are left."""
SMALL = 500
"""With so few rows they always are: neighbors may be far apart, and shifts amplify rounding."""


@compiled
def locate(line: Line, edges: Array) -> Index:
    """Return the buckets in which pieces begin and end (2, pieces, n).

    A piece begins in −1 when it is active at the first edge and ends in K when it is at the last
    one; both are −1 when it is active nowhere between them.
    """
    rows, kinds = line
    count, n = len(edges) - 1, rows.shape[1]
    where = np.empty((2, len(kinds), n), dtype=np.int64)
    starts, stops = np.empty(n), np.empty(n)
    for p in range(len(kinds)):
        for i in range(n):
            starts[i], stops[i] = span(rows[0, i], rows[1, i], kinds, p)
        set_last_edges(edges, starts, where[0, p])
        set_last_edges(edges, stops, where[1, p])
        for i in range(n):
            if not starts[i] < stops[i] or where[0, p, i] == count or where[1, p, i] == -1:
                where[0, p, i] = where[1, p, i] = -1
    return where


@compiled
def set_last_edges(edges: Array, beta: Array, out: Index) -> None:
    """Set out (n,) to the last edge not above each β (n,), −1 if all are.

    Many halvings side by side, so that they vectorize: one by one, each would be mispredicted.
    """
    for low in range(0, len(beta), _BLOCK):
        some = beta[low : low + _BLOCK]
        at = np.zeros(len(some), dtype=np.uint64)
        length = len(edges)
        while length > 1:
            half = np.uint64(length >> 1)
            for i in range(len(some)):
                at[i] = at[i] + half if edges[at[i] + half] <= some[i] else at[i]
            length -= length >> 1
        for i in range(len(some)):
            out[low + i] = np.int64(at[i]) if some[i] >= edges[0] else -1


@compiled
def accumulate(
    line: Line, edges: Array, where: Index, degree: int, size: int
) -> tuple[Array, Array, Array]:
    """Return what enters each bucket, what leaves it, and the rest.

    Entering (K + 1, S) is counted from a bucket's right edge, leaving (K + 1, S) from its left.
    Entering's last row holds what is active at the last edge, leaving's what is at the first. The
    rest (K, 2) bounds the pieces that begin or end in a bucket: Σ max w·max(−e, 0) and Σ max w.
    """
    (rows, kinds), count = line, len(edges) - 1
    entering, leaving = np.zeros((count + 1, size)), np.zeros((count + 1, size))
    rest = np.zeros((count, 2))
    for p in range(len(kinds)):
        for i in range(rows.shape[1]):
            first, last = where[0, p, i], where[1, p, i]
            if last == -1:
                continue
            v, kappa, g, e = rows[0, i], rows[1, i], rows[2, i], rows[3, i]
            row = (kappa, g, e)
            begin, end = ends(kappa, kinds, p)
            top = g * kinds[p, 2]  # K falls away from u = 0
            if first == -1:
                u = v + kappa * edges[0]
                add_inlined(leaving, count, 1.0, degree, kinds, p, u, row)
            elif last > first:
                u = v + kappa * edges[first + 1]
                w = add_inlined(entering, first, 1.0, degree, kinds, p, u, row)
                _bound(rest, first, w if begin * u > 0.0 else top, e)
            else:
                _bound(rest, first, top, e)
            if last == count:
                u = v + kappa * edges[count]
                add_inlined(entering, count, 1.0, degree, kinds, p, u, row)
            elif last > first:
                u = v + kappa * edges[last]
                w = add_inlined(leaving, last, 1.0, degree, kinds, p, u, row)
                _bound(rest, last, w if u * end > 0.0 else top, e)
    return entering, leaving, rest


@inlined
def _bound(rest: Array, k: int, heavy: float, e: float) -> None:
    rest[k, 0] += heavy * max(-e, 0.0)
    rest[k, 1] += heavy


@compiled
def active_counts(where: Index, count: int) -> Index:
    """Return how many pieces are active at each edge (K + 1,)."""
    change = np.zeros(count + 2, dtype=np.int64)
    for p in range(where.shape[1]):
        for i in range(where.shape[2]):
            if where[1, p, i] > where[0, p, i]:
                change[where[0, p, i] + 1] += 1
                change[where[1, p, i] + 1] -= 1
    return np.cumsum(change)[: count + 1]


@compiled
def chain(
    line: Line, edges: Array, counts: Index, entering: Array, leaving: Array, degree: int
) -> Array:
    """Return the sums active at each edge (K + 1, S), counted from it."""
    last = len(edges) - 1
    active = np.empty_like(entering)
    active[0], active[last] = leaving[last], entering[last]
    peak = counts[0]
    for k in range(last // 2):
        active[k + 1] = active[k] - leaving[k]
        shift_sums(active, k + 1, degree, edges[k + 1] - edges[k])
        active[k + 1] += entering[k]
        peak = freshen(active, k + 1, degree, line, edges[k + 1], counts[k + 1], peak, True)
    peak = counts[last]
    for k in range(last - 1, last // 2, -1):
        active[k] = active[k + 1] - entering[k]
        shift_sums(active, k, degree, edges[k] - edges[k + 1])
        active[k] += leaving[k]
        peak = freshen(active, k, degree, line, edges[k], counts[k], peak, True)
    return active


@compiled
def freshen(
    sums: Array, at: int, degree: int, line: Line, beta: float, count: int, peak: int, left: bool
) -> int:
    """Take sums[at] afresh where few of many rows are left; return the most rows in them since.

    `left` is for the sums just left of β: at an edge what begins there comes later.
    """
    if count == 0:
        sums[at] = 0.0
        return 0
    if count * FEW < peak or line[0].shape[1] <= SMALL:
        sum_active(sums, at, degree, line, beta, left)
        return count
    return max(count, peak)


@compiled
def promising(
    active: Array, leaving: Array, rest: Array, edges: Array, degree: int, best: float, n: float
) -> Kept:
    """Return the buckets (K,) that may hold a value below `best`.

    v < best means Σw(e − best) < 0, or Σw·e < n·best without self-normalization (n > 0). The sum
    over rows active throughout a bucket is a polynomial; any other row adds at least its worst.
    """
    kept = np.empty(len(rest), dtype=np.bool_)
    slack = 1e-12 * np.abs(active[:, : 2 * degree + 2]).max() * max(1.0, abs(best))
    through = active[:-1] - leaving[:-1]
    for k in range(len(rest)):
        bound = least_excess(through, k, degree, edges[k + 1] - edges[k], best, n) - rest[k, 0]
        if n == 0.0:
            bound -= max(best, 0.0) * rest[k, 1]
        kept[k] = bound <= slack
    return kept


@compiled
def events(line: Line, where: Index, kept: Kept) -> tuple[Array, Index]:
    """Return where pieces begin or end in the kept buckets (E,), and which (E, 3).

    The latter are row, piece and bucket, the bucket as −1 − k where a piece ends.
    """
    rows, kinds = line
    looked_up = np.zeros(len(kept) + 2, dtype=np.bool_)
    looked_up[1:-1] = kept
    total = 0
    for k in where.ravel():
        total += looked_up[k + 1]
    place, which = np.empty(total), np.empty((total, 3), dtype=np.int64)
    j = 0
    for side in range(2):
        for p in range(len(kinds)):
            for i in range(rows.shape[1]):
                k = where[side, p, i]
                if looked_up[k + 1]:
                    place[j] = span(rows[0, i], rows[1, i], kinds, p)[side]
                    which[j, 0], which[j, 1], which[j, 2] = i, p, k if side == 0 else -1 - k
                    j += 1
    return place, which


# The exact least value along a line of policies, cell by cell between breakpoints.
#
# Between two breakpoints A = Σw·e, B = Σw and C = Σw² are polynomials (see below), so the value
# A/B, or A/n, is least at an end of the cell, where its slope is 0, or where the effective sample
# size B²/C or the total weight B falls to its floor: `floors` are those two, (0, 0) for none. What
# is left of B by rounding, where no row has weight, lies under the latter.

_ROUNDING = 1e-9
"""Share of the floor by which a point found as a root may miss it."""


@compiled
def best_edge(active: Array, edges: Array, goal: Goal) -> tuple[float, float]:
    """Return the least feasible value at an edge and the edge; infinite if none is feasible."""
    best, where = np.inf, np.nan
    for k in range(len(edges)):
        value = value_at(active[k], 0.0, goal)
        if value < best:
            best, where = value, edges[k]
    return best, where


@compiled
def sweep(
    line: Line,
    buckets: tuple[Array, Kept, Array, Index],
    events: tuple[Array, Index],
    goal: Goal,
    known: tuple[float, float],
) -> tuple[float, float, int]:
    """Return the least value, its β and the number of cells.

    ``buckets`` are edges, which are kept, and what and how many is active at each edge; ``events``
    are sorted by place; ``known`` are the least value so far and its β.
    """
    (edges, kept, active, counts), (place, which) = buckets, events
    (degree, n, _), (best, where) = goal, known
    state = np.empty((1, active.shape[1]))
    cells = j = 0
    for k in range(len(kept)):
        if not kept[k]:
            continue
        state[0] = active[k]
        origin, count, peak = edges[k], counts[k], counts[k]
        while True:
            mine = j < len(place) and (which[j, 2] == k or which[j, 2] == -1 - k)
            end = place[j] if mine else edges[k + 1]
            if end > origin:
                cells += 1
                peak = freshen(state, 0, degree, line, origin, count, peak, False)
                if best == np.inf or least_excess(state, 0, degree, end - origin, best, n) < 0.0:
                    value, x = least_in_cell(state[0], end - origin, goal)
                    if value < best:
                        best, where = value, origin + x
                shift_sums(state, 0, degree, end - origin)
                origin = end
            if not mine:
                break
            _turn(state, degree, line, which, j)
            count += 1 if which[j, 2] >= 0 else -1
            j += 1
    return best, where, cells


@compiled
def _turn(state: Array, degree: int, line: Line, which: Index, j: int) -> None:
    """Add the piece that begins at event j, or take off the one that ends."""
    (rows, kinds), i, p = line, which[j, 0], which[j, 1]
    row = (rows[1, i], rows[2, i], rows[3, i])
    first, last = ends(row[0], kinds, p)
    if which[j, 2] >= 0:
        add_piece(state, 0, 1.0, degree, kinds, p, first, row)
    else:
        add_piece(state, 0, -1.0, degree, kinds, p, last, row)


@compiled
def least_in_cell(sums: Array, width: float, goal: Goal) -> tuple[float, float]:
    """Return the least feasible value in a cell and its place; infinite if nothing is feasible."""
    value, place = np.inf, 0.0
    for x in places_of_least(sums, width, goal):
        here = value_at(sums, x, goal)
        if here < value:
            value, place = here, x
    return value, place


@compiled
def places_of_least(sums: Array, width: float, goal: Goal) -> Array:
    """Return the points of a cell where the least value may be."""
    degree, n, floors = goal
    # A kernel that jumps is constant in a cell and not itself at its ends.
    if degree == 0:
        return np.array([0.5 * width])
    a, b = sums[: degree + 1], sums[degree + 1 : 2 * degree + 2]
    if n > 0.0:
        flat = roots(derivative(a), width)
    else:
        # The leading terms of A′B − AB′ cancel: degree 2D − 2.
        slope = product(derivative(a), b) - product(a, derivative(b))
        flat = roots(slope[: 2 * degree - 1].copy(), width)
    few = light = np.zeros(0)
    if floors[0] > 0.0:
        few = roots(product(b, b) - floors[0] * sums[2 * degree + 2 :], width)
        rest = b.copy()
        rest[0] -= floors[1]
        light = roots(rest, width)
    return np.concatenate((np.array([0.0, width]), flat, few, light))


@compiled
def value_at(sums: Array, x: float, goal: Goal) -> float:
    """Return A/B, or A/n, at x; infinite where a floor is not reached."""
    degree, n, floors = goal
    a, b = at(sums[: degree + 1], x), at(sums[degree + 1 : 2 * degree + 2], x)
    if floors[0] > 0.0:
        c = at(sums[2 * degree + 2 :], x)
        if not (b >= floors[1] * (1.0 - _ROUNDING) and b * b >= floors[0] * c * (1.0 - _ROUNDING)):
            return np.inf
    if n > 0.0:
        return a / n
    return a / b if b > 0.0 else np.inf


# ── A piecewise polynomial objective along a line of policies, piece by piece ─────────────────────

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
