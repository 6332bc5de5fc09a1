"""Effects of the values that a context repeats: a clinic, a store, a day.

A number that stands for one of forty clinics is no amount. Splines pass over it, and a tree
reaches one clinic only by many splits. So what a forest leaves of its targets is averaged over
the rows of each value, shrunk as the mean of a random effect is, by how much the values differ
beyond chance:

    n_l·τ²/(n_l·τ² + σ²) · mean_l,   σ² within the values, τ² between them.

Where they do not differ beyond chance, as those of an age do once a forest has followed it, the
effects are 0. Whole numbers may also count days, hours or months, with a day of the week, an hour
of the day or a month of the year that comes again: the remainder is tried as a value of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant.outcome.base import mean_of, some, worth
from titrant.outcome.crossfit import inner_folds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from titrant._types import Array

    Codes = NDArray[np.intp]

FEWEST_VALUES = 3
"""Two values are a line."""
ROWS_A_VALUE = 2
"""Fewest rows that a value has on average."""
PERIODS = (7, 24, 12)
"""Of days, hours and months."""
CLEAR = 3.0
"""Standard errors by which the variance between values must exceed what chance gives."""
_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Repeated:
    """One context that repeats its values (L,), and the effect of each on m targets (L, m)."""

    column: int
    period: int | None
    """The values are remainders of a division by it; None if they are those of the context."""
    values: Array
    effects: Array

    def __call__(self, x: Array) -> Array:
        """Return the effects in rows of contexts x (n, p); 0 for a value that is new (n, m)."""
        own = remainder(x[:, self.column], self.period)
        place = np.minimum(np.searchsorted(self.values, own), len(self.values) - 1)
        known = self.values[place] == own
        return np.where(known[:, None], self.effects[place], 0.0)


@dataclass(frozen=True, slots=True)
class RepeatedValues:
    """The contexts that repeat their values, one after the other, each on what the last left."""

    parts: tuple[Repeated, ...]

    @classmethod
    def fit_out_of_fold(
        cls,
        x: Array,
        left: Array,
        seed: int,
        units: NDArray[np.int64] | None = None,
        weights: Array | None = None,
    ) -> tuple[Self, Array]:
        """Learn from contexts x (n, p) and what is left of targets (n, m), rows by weights (n,).

        Returns the effects too, in each row without the rows of its fold (n, m).
        """
        fold = inner_folds(len(x), min(_FOLDS, len(x)), seed, units)
        total, parts = np.zeros_like(left), list[Repeated]()
        for j, period in candidates(x):
            values, codes = np.unique(remainder(x[:, j], period), return_inverse=True)
            if not FEWEST_VALUES <= len(values) <= len(x) / ROWS_A_VALUE:
                continue
            rest = left - total
            shrinkage = Shrinkage.of(codes, rest, weights)
            if not shrinkage.between.any():
                continue
            effects = shrinkage.effects(codes, rest, weights)
            parts.append(Repeated(j, period, values, effects))
            for k in np.unique(fold):
                own = fold == k
                outside = shrinkage.effects(codes[~own], rest[~own], some(weights, ~own))
                total[own] += outside[codes[own]]
        return cls(tuple(parts)), total

    def __call__(self, x: Array, targets: int) -> Array:
        """Return the summed effects in rows of contexts x (n, p), on so many targets (n, m)."""
        total = np.zeros((len(x), targets))
        for part in self.parts:
            total += part(x)
        return total


def candidates(x: Array) -> Iterator[tuple[int, int | None]]:
    """Yield the columns of contexts x (n, p) whose values, or remainders, may be repeated.

    Remainders come first: few values are known better than many.
    """
    for j, column in enumerate(x.T):
        if np.all(column == np.round(column)):
            extent = float(np.ptp(column))
            yield from ((j, period) for period in PERIODS if extent >= 2 * period)
        yield j, None


def remainder(column: Array, period: int | None) -> Array:
    """Return the column (n,), or its remainders of a division by the period."""
    return column if period is None else np.mod(column, period)


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """How much of a mean over the rows of one of L values is that value's own."""

    size: int
    """L."""
    within: Array
    """σ² (m,)."""
    between: Array
    """τ² (m,); 0 where the values do not differ clearly."""

    @classmethod
    def of(cls, codes: Codes, left: Array, weights: Array | None = None) -> Self:
        """Return σ² and τ² from values numbered in codes (n,), by the analysis of variance."""
        n, size = worth(weights, len(codes)), int(codes.max()) + 1
        rows = _counts(codes, size, weights)
        sums = sums_by(codes, _by(left, weights), size)
        centered = sums / rows[:, None] - mean_of(left, weights)
        between = (rows[:, None] * centered**2).sum(axis=0) / (size - 1)
        means = (sums / rows[:, None])[codes]
        squares = _by((left - means) ** 2, weights).sum(axis=0)
        within = np.maximum(squares / max(n - size, 1), 1e-12)
        usual = (n - (rows**2).sum() / n) / (size - 1)
        chance = np.sqrt(2.0 / (size - 1) + 2.0 / max(n - size, 1))
        clear = between / within - 1.0 > CLEAR * chance
        variance = np.maximum(between - within, 0.0) / usual
        return cls(size, within, np.where(clear, variance, 0.0))

    def effects(self, codes: Codes, left: Array, weights: Array | None = None) -> Array:
        """Return the shrunk means of what is left (n, m) over the rows of each value (L, m)."""
        rows = _counts(codes, self.size, weights)[:, None]
        sums = sums_by(codes, _by(left, weights), self.size)
        return sums * self.between / (rows * self.between + self.within)


def _counts(codes: Codes, size: int, weights: Array | None) -> Array:
    """Return how many rows have each code (size,), or their weights added up."""
    return np.bincount(codes, weights=weights, minlength=size).astype(np.float64)


def _by(columns: Array, weights: Array | None) -> Array:
    """Return columns (n, m) times the weights of the rows, if they have any."""
    return columns if weights is None else columns * weights[:, None]


def sums_by(codes: Codes, columns: Array, size: int) -> Array:
    """Return the sums of columns (n, m) over the rows of each code (size, m)."""
    each = [np.bincount(codes, weights=column, minlength=size) for column in columns.T]
    return np.stack(each, axis=1)
