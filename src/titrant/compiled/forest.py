"""What a forest says of each row at every dose of a grid, in one walk down each tree.

Where a tree asks for the dose, the sorted grid parts into a lower and an upper piece and both are
followed; where it asks for a context, the whole piece goes one way. So a tree costs the leaves that
the grid reaches, not a walk for each dose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

    Index = NDArray[np.int64]
    Single = NDArray[np.float32]


_ROWS = 128
"""Rows that go down a tree together: its nodes and their sums stay in the second cache."""


@compiled
def forest_curves(
    x: Single,
    doses: Single,
    roots: Index,
    children: Index,
    feature: Index,
    threshold: Array,
    value: Array,
) -> Array:
    """Return the mean prediction of all trees (n, G) at contexts x (n, p), ascending doses (G,).

    The nodes of all trees stand one after the other, those of a tree from its root (T,) on:
    children (N, 2), negative at a leaf; feature (N,), p for the dose; threshold and value (N,). A
    number goes left where it is at most the threshold. Trees are added in their order, as
    scikit-learn does: the same bits.
    """
    out = np.zeros((len(x), len(doses)))
    waiting = np.empty((len(doses) + 1, 3), dtype=np.int64)
    place = places(doses, x.shape[1], feature, threshold)
    for start in range(0, len(x), _ROWS):
        for root in roots:
            for i in range(start, min(start + _ROWS, len(x))):
                walk(x[i], root, children, feature, threshold, place, value, waiting, out[i])
    return out / len(roots)


@compiled
def places(doses: Single, dose: int, feature: Index, threshold: Array) -> Index:
    """Return for each node (N,) that asks for the dose where the ascending doses (G,) part."""
    found = np.zeros(len(feature), dtype=np.int64)
    for node in range(len(feature)):
        if feature[node] == dose:
            found[node] = parted(doses, threshold[node])
    return found


@compiled
def walk(
    x: Single,
    root: int,
    children: Index,
    feature: Index,
    threshold: Array,
    place: Index,
    value: Array,
    waiting: Index,
    out: Array,
) -> None:
    """Add what one tree says of contexts x (p,) to out (G,); waiting has room for G + 1 pieces."""
    count = 1
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = root, 0, len(out)
    while count > 0:
        count -= 1
        node, low, high = waiting[count, 0], waiting[count, 1], waiting[count, 2]
        left = children[node, 0]
        while left >= 0:
            column, middle = feature[node], place[node]
            if column < len(x):
                node = left if x[column] <= threshold[node] else children[node, 1]
            elif middle >= high:
                node = left
            elif middle <= low:
                node = children[node, 1]
            else:
                waiting[count, 0], waiting[count, 1] = children[node, 1], middle
                waiting[count, 2] = high
                count += 1
                node, high = left, middle
            left = children[node, 0]
        said = value[node]
        for g in range(low, high):
            out[g] += said


@compiled
def parted(doses: Single, threshold: float) -> int:
    """Return the first place whose dose is above the threshold."""
    low, high = 0, len(doses)
    while low < high:
        middle = (low + high) // 2
        if doses[middle] <= threshold:
            low = middle + 1
        else:
            high = middle
    return low
