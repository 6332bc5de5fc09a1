"""Which fold a row belongs to: a pure function of its number, however the log is cut up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from titrant._hash import GOLDEN, splitmix64
from titrant.errors import DataError

Folds = NDArray[np.int64]
"""The fold 0, 1, … of each row (n,)."""


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


def need_rows(n: int, folds: int, owner: str) -> None:
    """Raise unless every fold has at least two rows."""
    if n < 2 * folds:
        raise DataError(
            f"`{owner}` with {folds} folds needs at least {2 * folds} rows; got {n}. "
            "Use fewer folds or more rows."
        )
