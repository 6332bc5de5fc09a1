"""Sufficient statistics: the count, mean and centered co-moments of per-row terms.

All that titrant computes is a smooth function of means of terms; this is the state that is
kept of them. It adds up, so one array, a stream of batches and the partitions of a cluster
give the same numbers. Centered throughout: sums of squares would lose the variance of an
outcome that sits far from zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from titrant._types import Array


@dataclass(frozen=True, slots=True)
class Moments:
    """n rows of k terms: mean (k,) and comoment C = Σᵢ(zᵢ − z̄)(zᵢ − z̄)ᵀ (k, k).

    Of rows with weights ω, n is Σω and the mean and sums are weighted.
    """

    n: float
    mean: Array
    comoment: Array

    @classmethod
    def of(cls, terms: Array, weights: Array | None = None) -> Moments:
        """Return the moments of terms (n, k), of rows that count alike or by weights (n,)."""
        if not len(terms):
            return cls.empty(terms.shape[1])
        # Measured from the first row: summing a million outcomes near 1e8 as they are would
        # round their mean by as much as its standard error.
        centered = terms - terms[0]
        if weights is None:
            shift = centered.mean(axis=0)
            centered -= shift
            return cls(len(terms), terms[0] + shift, centered.T @ centered)
        n = float(weights.sum())
        shift = weights @ centered / n
        centered -= shift
        return cls(n, terms[0] + shift, (centered.T * weights) @ centered)

    @classmethod
    def empty(cls, k: int) -> Moments:
        """Return the moments of no rows: adding it changes nothing."""
        return cls(0, np.zeros(k), np.zeros((k, k)))

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows (Chan, Golub & LeVeque 1983).

        With δ = z̄₂ − z̄₁: mean = z̄₁ + δ n₂/n, C = C₁ + C₂ + δδᵀ n₁n₂/n.
        """
        if not self.n:
            return other
        if not other.n:
            return self
        n = self.n + other.n
        delta = other.mean - self.mean
        mean = self.mean + delta * (other.n / n)
        shift = np.outer(delta, delta) * (self.n * (other.n / n))
        return Moments(n, mean, self.comoment + other.comoment + shift)

    @property
    def rows(self) -> int:
        """The number of rows, of moments without weights."""
        return int(self.n)

    @property
    def covariance(self) -> Array:
        """The covariance of the terms, C/n (k, k)."""
        return self.comoment / self.n
