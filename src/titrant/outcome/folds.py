"""Which fold a row belongs to: a pure function of its number, however the log is cut up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from titrant.errors import DataError

Folds = NDArray[np.int64]
"""The fold 0, 1, … of each row (n,)."""

GOLDEN = 0x9E3779B97F4A7C15
"""The odd number nearest 2⁶⁴/φ, the increment of splitmix64."""


def fold_of(first_row: int, n: int, folds: int, seed: int) -> Folds:
    """Return the folds 0 … folds−1 of rows first_row … first_row + n − 1 (n,).

    Each block of `folds` consecutive rows of the whole log holds every fold once, in an order
    drawn by a hash of (seed, row number). So folds are balanced to within one row, and the
    batches of a stream get the folds that the whole log would get.
    """
    start = first_row - first_row % folds
    stop = -(-(first_row + n) // folds) * folds
    rows = np.arange(start, stop, dtype=np.uint64)
    key = splitmix64(
        splitmix64(np.array([seed % 2**64], dtype=np.uint64)) + rows * np.uint64(GOLDEN)
    )
    order = key.reshape(-1, folds).argsort(axis=1, kind="stable")
    rank = order.argsort(axis=1, kind="stable").ravel()
    return rank[first_row - start : first_row - start + n]


def splitmix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the first output of the splitmix64 generator at state x (Steele, Lea & Flood 2014)."""
    z = x + np.uint64(GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def need_rows(n: int, folds: int, owner: str) -> None:
    """Raise unless every fold has at least two rows."""
    if n < 2 * folds:
        raise DataError(
            f"`{owner}` with {folds} folds needs at least {2 * folds} rows; got {n}. "
            "Use fewer folds or more rows."
        )
