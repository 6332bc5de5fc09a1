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
    ranks = _ranks(np.arange(start, stop).reshape(-1, folds), seed).ravel()
    return ranks[first_row - start : first_row - start + n]


def fold_at(rows: NDArray[np.int64], folds: int, seed: int) -> Folds:
    """Return the folds of rows with these numbers in the whole log (n,)."""
    place = rows % folds
    ranks = _ranks((rows - place)[:, None] + np.arange(folds), seed)
    return ranks[np.arange(len(rows)), place]


def _ranks(rows: NDArray[np.int64], seed: int) -> Folds:
    """Return the order of the keys within each line of row numbers (m, folds)."""
    state = splitmix64(np.array([seed % 2**64], dtype=np.uint64))
    order = splitmix64(state + rows.astype(np.uint64) * np.uint64(GOLDEN)).argsort(
        axis=1, kind="stable"
    )
    return order.argsort(axis=1, kind="stable")


def need_rows(n: int, folds: int, owner: str) -> None:
    """Raise unless every fold has at least two rows."""
    if n < 2 * folds:
        raise DataError(
            f"`{owner}` with {folds} folds needs at least {2 * folds} rows; got {n}. "
            "Use fewer folds or more rows."
        )
