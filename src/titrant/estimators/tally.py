"""A tally of weights: how many rows carry an estimate, and how unevenly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from titrant._types import Array

KEPT = 256
"""Largest weights kept of each question, enough for the shape of the tail."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums of the weights of m questions, each (m,), and the largest ones (m, ≤ 256)."""

    n: int
    total: Array
    """Σw."""
    absolute: Array
    """Σ|w|."""
    squares: Array
    """Σw²."""
    fourths: Array
    """Σw⁴."""
    count: Array
    """Rows with w ≠ 0."""
    largest: Array
    """The largest |w|, in decreasing order."""

    @classmethod
    def of(cls, w: Array) -> Tally:
        """Return the tally of weights (n, m)."""
        size, square = np.abs(w), w * w
        return cls(
            n=len(w),
            total=w.sum(axis=0),
            absolute=size.sum(axis=0),
            squares=square.sum(axis=0),
            fourths=(square * square).sum(axis=0),
            count=np.count_nonzero(w, axis=0).astype(np.float64),
            largest=_largest(size.T),
        )

    def __add__(self, other: Tally) -> Tally:
        """Return the tally of both sets of rows."""
        return Tally(
            n=self.n + other.n,
            total=self.total + other.total,
            absolute=self.absolute + other.absolute,
            squares=self.squares + other.squares,
            fourths=self.fourths + other.fourths,
            count=self.count + other.count,
            largest=_largest(np.concatenate([self.largest, other.largest], axis=1)),
        )

    @property
    def ess(self) -> Array:
        """The effective sample size (Σw)²/Σw² (m,); 0 without overlap."""
        return _ratio(self.total**2, self.squares)

    @property
    def degrees_of_freedom(self) -> Array:
        """ν = (Σw²)²/Σw⁴ − 1 (m,), at least 1: what a t quantile needs."""
        return np.maximum(_ratio(self.squares**2, self.fourths) - 1.0, 1.0)

    @property
    def largest_share(self) -> Array:
        """The largest |w| as a share of Σ|w| (m,)."""
        return _ratio(self.largest[:, 0], self.absolute)

    @property
    def purity(self) -> Array:
        """|Σw|/Σ|w| (m,): 1 when no weight is negative."""
        return _ratio(np.abs(self.total), self.absolute)

    @property
    def mean(self) -> Array:
        """The mean weight (m,), which is 1 up to noise when the propensities are right."""
        return self.total / self.n

    @property
    def mean_se(self) -> Array:
        """The standard error of the mean weight (m,)."""
        return np.sqrt(np.maximum(self.squares / self.n - self.mean**2, 0.0) / self.n)


def _largest(size: Array) -> Array:
    """Return the up to 256 largest numbers ≥ 0 of each row, in decreasing order."""
    top = np.zeros((len(size), min(KEPT, size.shape[1])))
    for row, out in zip(size, top, strict=True):
        # Most weights are 0, and partitioning so many equal numbers takes 25 times as long.
        positive = row[row > 0.0]
        if k := min(len(out), len(positive)):
            out[:k] = np.sort(np.partition(positive, -k)[-k:])[::-1]
    return top


def _ratio(a: Array, b: Array) -> Array:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
