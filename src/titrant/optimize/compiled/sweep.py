"""The exact least value along a line of policies, cell by cell between breakpoints.

Between two breakpoints A = Σw·e, B = Σw and C = Σw² are polynomials (see `pieces`), so the value
A/B, or A/n, is least at an end of the cell, where its slope is 0, or where the effective sample
size B²/C or the total weight B falls to its floor: `floors` are those two, (0, 0) for none. What
is left of B by rounding, where no row has weight, lies under the latter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled
from titrant.optimize.compiled.buckets import freshen
from titrant.optimize.compiled.pieces import add_piece, ends, least_excess, shift_sums
from titrant.optimize.compiled.polynomial import at, derivative, product, roots

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

    Index = NDArray[np.int64]

_ROUNDING = 1e-9
"""Share of the floor by which a point found as a root may miss it."""


@compiled
def best_edge(
    active: Array, edges: Array, degree: int, n: float, floors: tuple[float, float]
) -> tuple[float, float]:
    """Return the least feasible value at an edge and the edge; infinite if none is feasible."""
    best, where = np.inf, np.nan
    for k in range(len(edges)):
        value = value_at(active[k], degree, 0.0, n, floors)
        if value < best:
            best, where = value, edges[k]
    return best, where


@compiled
def sweep(
    rows: Array,
    kinds: Array,
    edges: Array,
    kept: NDArray[np.bool_],
    active: Array,
    counts: Index,
    place: Array,
    which: Index,
    degree: int,
    n: float,
    floors: tuple[float, float],
    best: float,
    where: float,
) -> tuple[float, float, int]:
    """Return the least value, its β and the number of cells; events sorted by place (E,).

    rows (4, n) of v, κ, g, e; n > 0 for a mean over n rows, 0 for self-normalization; `best` and
    `where` are the least value known so far and its β.
    """
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
                peak = freshen(state, 0, degree, rows, kinds, origin, count, peak, False)
                if best == np.inf or least_excess(state, 0, degree, end - origin, best, n) < 0.0:
                    value, x = least_in_cell(state[0], degree, end - origin, n, floors)
                    if value < best:
                        best, where = value, origin + x
                shift_sums(state, 0, degree, end - origin)
                origin = end
            if not mine:
                break
            _turn(state, degree, rows, kinds, which, j)
            count += 1 if which[j, 2] >= 0 else -1
            j += 1
    return best, where, cells


@compiled
def _turn(state: Array, degree: int, rows: Array, kinds: Array, which: Index, j: int) -> None:
    """Add the piece that begins at event j, or take off the one that ends."""
    i, p = which[j, 0], which[j, 1]
    kappa, g, e = rows[1, i], rows[2, i], rows[3, i]
    first, last = ends(kappa, kinds, p)
    if which[j, 2] >= 0:
        add_piece(state, 0, 1.0, degree, kinds, p, first, kappa, g, e)
    else:
        add_piece(state, 0, -1.0, degree, kinds, p, last, kappa, g, e)


@compiled
def least_in_cell(
    sums: Array, degree: int, width: float, n: float, floors: tuple[float, float]
) -> tuple[float, float]:
    """Return the least feasible value in a cell and its place; infinite if nothing is feasible."""
    value, place = np.inf, 0.0
    for x in candidates(sums, degree, width, n, floors):
        here = value_at(sums, degree, x, n, floors)
        if here < value:
            value, place = here, x
    return value, place


@compiled
def candidates(
    sums: Array, degree: int, width: float, n: float, floors: tuple[float, float]
) -> Array:
    """Return the points of a cell where the least value may be."""
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
def value_at(sums: Array, degree: int, x: float, n: float, floors: tuple[float, float]) -> float:
    """Return A/B, or A/n, at x; infinite where a floor is not reached."""
    a, b = at(sums[: degree + 1], x), at(sums[degree + 1 : 2 * degree + 2], x)
    if floors[0] > 0.0:
        c = at(sums[2 * degree + 2 :], x)
        if not (b >= floors[1] * (1.0 - _ROUNDING) and b * b >= floors[0] * c * (1.0 - _ROUNDING)):
            return np.inf
    if n > 0.0:
        return a / n
    return a / b if b > 0.0 else np.inf
