"""Where along a line of policies the least value can be: bounds over buckets, without a sort.

Edges (K + 1,) cut the line into buckets. One pass over the rows enters each piece (see `pieces`)
into the bucket where it begins and the one where it ends. What is active at an edge follows from
its neighbor, counted from the edge itself and from both ends inward, so that hardly anything
cancels; where few of many rows are left, their sums are taken afresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, inlined
from titrant.optimize.compiled.pieces import (
    add_inlined,
    ends,
    least_excess,
    shift_sums,
    span,
    sum_active,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

    Index = NDArray[np.int64]

_BLOCK = 1024
"""Rows that are looked up together."""
FEW = 1000
"""Sums are taken afresh when fewer than 1/1000 of the rows that went into them are left."""
SMALL = 500
"""With so few rows they always are: neighbors may be far apart, and shifts amplify rounding."""


@compiled
def reach(rows: Array, kinds: Array) -> tuple[float, float]:
    """Return the first and the last β at which any row gains or loses weight."""
    low, high = np.inf, -np.inf
    for i in range(rows.shape[1]):
        for p in range(len(kinds)):
            start, end = span(rows[0, i], rows[1, i], kinds, p)
            if -np.inf < start < end < np.inf:
                low, high = min(low, start), max(high, end)
    return low, high


@compiled
def locate(rows: Array, kinds: Array, edges: Array) -> Index:
    """Return the buckets in which pieces begin and end (2, pieces, n).

    A piece begins in −1 when it is active at the first edge and ends in K when it is at the last
    one; both are −1 when it is active nowhere between them.
    """
    count, n = len(edges) - 1, rows.shape[1]
    where = np.empty((2, len(kinds), n), dtype=np.int64)
    starts, stops = np.empty(n), np.empty(n)
    for p in range(len(kinds)):
        for i in range(n):
            starts[i], stops[i] = span(rows[0, i], rows[1, i], kinds, p)
        search(edges, starts, where[0, p])
        search(edges, stops, where[1, p])
        for i in range(n):
            if not starts[i] < stops[i] or where[0, p, i] == count or where[1, p, i] == -1:
                where[0, p, i] = where[1, p, i] = -1
    return where


@compiled
def search(edges: Array, beta: Array, out: Index) -> None:
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
    rows: Array, kinds: Array, edges: Array, where: Index, degree: int, size: int
) -> tuple[Array, Array, Array]:
    """Return what enters each bucket, what leaves it, and the rest.

    Entering (K + 1, S) is counted from a bucket's right edge, leaving (K + 1, S) from its left.
    Entering's last row holds what is active at the last edge, leaving's what is at the first. The
    rest (K, 2) bounds the pieces that begin or end in a bucket: Σ max w·max(−e, 0) and Σ max w.
    """
    count = len(edges) - 1
    entering, leaving = np.zeros((count + 1, size)), np.zeros((count + 1, size))
    rest = np.zeros((count, 2))
    for p in range(len(kinds)):
        for i in range(rows.shape[1]):
            first, last = where[0, p, i], where[1, p, i]
            if last == -1:
                continue
            v, kappa, g, e = rows[0, i], rows[1, i], rows[2, i], rows[3, i]
            begin, end = ends(kappa, kinds, p)
            top = g * kinds[p, 2]  # K falls away from u = 0
            if first == -1:
                u = v + kappa * edges[0]
                add_inlined(leaving, count, 1.0, degree, kinds, p, u, kappa, g, e)
            elif last > first:
                u = v + kappa * edges[first + 1]
                w = add_inlined(entering, first, 1.0, degree, kinds, p, u, kappa, g, e)
                _bound(rest, first, w if begin * u > 0.0 else top, e)
            else:
                _bound(rest, first, top, e)
            if last == count:
                u = v + kappa * edges[count]
                add_inlined(entering, count, 1.0, degree, kinds, p, u, kappa, g, e)
            elif last > first:
                u = v + kappa * edges[last]
                w = add_inlined(leaving, last, 1.0, degree, kinds, p, u, kappa, g, e)
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
    rows: Array,
    kinds: Array,
    edges: Array,
    counts: Index,
    entering: Array,
    leaving: Array,
    degree: int,
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
        peak = freshen(active, k + 1, degree, rows, kinds, edges[k + 1], counts[k + 1], peak, True)
    peak = counts[last]
    for k in range(last - 1, last // 2, -1):
        active[k] = active[k + 1] - entering[k]
        shift_sums(active, k, degree, edges[k] - edges[k + 1])
        active[k] += leaving[k]
        peak = freshen(active, k, degree, rows, kinds, edges[k], counts[k], peak, True)
    return active


@compiled
def freshen(
    sums: Array,
    at: int,
    degree: int,
    rows: Array,
    kinds: Array,
    beta: float,
    count: int,
    peak: int,
    left: bool,
) -> int:
    """Take sums[at] afresh where few of many rows are left; return the most rows in them since.

    `left` is for the sums just left of β: at an edge what begins there comes later.
    """
    if count == 0:
        sums[at] = 0.0
        return 0
    if count * FEW < peak or rows.shape[1] <= SMALL:
        sum_active(sums, at, degree, rows, kinds, beta, left)
        return count
    return max(count, peak)


@compiled
def promising(
    active: Array, leaving: Array, rest: Array, edges: Array, degree: int, best: float, n: float
) -> NDArray[np.bool_]:
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
def events(rows: Array, kinds: Array, where: Index, kept: NDArray[np.bool_]) -> tuple[Array, Index]:
    """Return where pieces begin or end in the kept buckets (E,), and which (E, 3).

    The latter are row, piece and bucket, the bucket as −1 − k where a piece ends.
    """
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
