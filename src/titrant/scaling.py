"""What one absurd value may do to a column: nothing.

A mean and an sd are the work of all values, and one of 1e10 makes all others look alike: the
column is still there, and says nothing. So models see columns *held*: a value far beyond the
others counts as the end of the usual ones, and one that stands for something else, such as −9999
for "missing", as the median; if there are several, a column more says which rows these are.
Columns without such values pass as they are, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
"""A column whose spread is below this share of its size holds one value up to rounding."""
REACH = 4.0
"""How far a value may lie from the median, in units of what 98 % of its side keep to: for a normal
law 9 sd. Of a log-normal law with σ = 1 one value in 7,000 lies farther."""
FARTHEST = 45.0
"""The same in units of the median distance of its side, where more than 2 % of the values stray:
for a normal law 30 sd."""
APART = 10.0
"""A code lies this many robust sds from the nearest other value."""
CODE_ROWS, CODE_SHARE = 3, 0.001
"""Fewest rows, and least share of them, that hold a code."""
MOST_ROWS = 50_000
"""Rows that are looked at: enough to see a code in one row of a thousand."""
_MOST_CODES = 4
_NORMAL_IQR = 1.349
_SIDE = 0.98
_MANY = 20
_OFFSET, _TINY = 1e6, 1e-100


class Code(NamedTuple):
    """A value that looks like a code: its column, the value, and how many rows hold it."""

    column: int
    value: float
    rows: int


@dataclass(frozen=True, slots=True)
class Held:
    """The columns of a table (n, p) with far values and codes held."""

    low: Array
    """The least value that counts as itself (p,)."""
    high: Array
    least: Array
    """What values below `low` count as (p,): the end of the usual ones."""
    most: Array
    center: Array
    """The medians (p,), as which codes count."""
    codes: tuple[Code, ...]
    strayed: tuple[int, ...]
    """Columns with several far values that are not codes."""

    @classmethod
    def of(cls, x: Array) -> Self:
        """Return how to hold the columns of x (n, p)."""
        some = x[:: max(1, -(-len(x) // MOST_ROWS))]
        found, strayed = list[Code](), list[int]()
        marks = np.empty((5, x.shape[1]))
        for j, column in enumerate(some.T):
            values = codes_of(column)
            rest = _without(column, values)
            marks[:, j] = _marks(rest)
            found += [Code(j, v, int(np.count_nonzero(x[:, j] == v))) for v in values]
            far = (rest < marks[0, j]) | (rest > marks[-1, j])
            if np.count_nonzero(far) >= fewest(len(some)):
                strayed.append(j)
        low, least, center, most, high = marks
        return cls(low, high, least, most, center, tuple(found), tuple(strayed))

    def __call__(self, x: Array) -> Array:
        """Return the columns of x (n, p) held, then 0/1 columns for what was several times held.

        One for each code, and one for each column with several other far values: such rows have
        a level of their own.
        """
        held = self.columns(x)
        if not (self.codes or self.strayed):
            return held
        strays = self.strays(x)
        marks = [*self._coded(x), *(strays[:, j] for j in self.strayed)]
        return np.column_stack([held, *marks])

    def columns(self, x: Array) -> Array:
        """Return the columns of x (n, p) held (n, p); x itself where nothing is to be done."""
        if not self.codes and not self.strays(x).any():
            return x
        held = np.where(x < self.low, self.least, np.where(x > self.high, self.most, x))
        for code, rows in zip(self.codes, self._coded(x), strict=True):
            held[rows, code.column] = self.center[code.column]
        return held

    def strays(self, x: Array) -> NDArray[np.bool_]:
        """Return which values of x (n, p) lie far beyond the others, codes aside."""
        strays = (x < self.low) | (x > self.high)
        for code, rows in zip(self.codes, self._coded(x), strict=True):
            strays[rows, code.column] = False
        return strays

    def passes(self, low: Array, high: Array) -> bool:
        """Whether columns that run from low to high (p,) pass as they are."""
        within = bool(np.all(low >= self.low) and np.all(high <= self.high))
        return within and not (self.codes or self.strayed)

    def _coded(self, x: Array) -> list[NDArray[np.bool_]]:
        return [x[:, code.column] == code.value for code in self.codes]


def spread_of(x: Array) -> Array:
    """Return the sd of each column of x (n, p), 0 where the values differ by rounding only."""
    if not x.size:
        return np.zeros(x.shape[1])
    extent, size = np.ptp(x, axis=0), np.abs(x).max(axis=0)
    # Far from zero the mean is rounded, and squares of tiny numbers are 0: measure from row 0.
    near = (size < _OFFSET * extent) & (extent > _TINY) & (extent < 1.0 / _TINY)
    unit = np.where(near | (extent == 0.0), 1.0, extent)
    spread = ((x - np.where(near, 0.0, x[0])) / unit).std(axis=0) * unit
    return np.where(extent > ROUNDING * size, spread, 0.0)


def codes_of(column: Array) -> list[float]:
    """Return the values of a column (n,) that look like codes.

    A code is the least or the greatest value, is repeated, and lies far from all others.
    """
    least = fewest(len(column))
    found: list[float] = []
    rest = column
    while len(found) < _MOST_CODES and len(rest):
        ends = ((float(end), rest[rest != end]) for end in (rest.min(), rest.max()))
        code = next((end for end, others in ends if _is_code(end, rest, others, least)), None)
        if code is None:
            break
        found.append(code)
        rest = rest[rest != code]
    return found


def fewest(n: int) -> float:
    """Return how many of n rows make a value, or values alike, more than an accident."""
    return max(CODE_ROWS, CODE_SHARE * n)


def robust_sd(column: Array) -> float:
    """Return the interquartile range as the sd of a normal law that has it.

    Where it is 0, the median distance from the median of the values that are not the median: 1 for
    a rare 0/1 column.
    """
    low, middle, high = np.quantile(column, [0.25, 0.5, 0.75])
    if high > low:
        return float((high - low) / _NORMAL_IQR)
    others = column[column != middle]
    return float(np.median(np.abs(others - middle))) if len(others) else 0.0


def _is_code(end: float, column: Array, others: Array, least: float) -> bool:
    rows = len(column) - len(others)
    if rows < least or len(others) < rows or not len(others):
        return False
    gap = float(np.abs(others - end).min())
    # Of two or three values none is far from the others: there is nothing to measure by.
    return bool(gap > APART * robust_sd(others) > 0.0)


def _marks(column: Array) -> tuple[float, float, float, float, float]:
    """Return of a column (n,) the least plausible and the least usual value, the median, and up."""
    if not len(column):
        return -np.inf, 0.0, 0.0, 0.0, np.inf
    middle = float(np.median(column))
    below, above = middle - column[column < middle], column[column > middle] - middle
    reach_below, usual_below = _reach(below, above)
    reach_above, usual_above = _reach(above, below)
    return (
        middle - reach_below,
        middle - usual_below,
        middle,
        middle + usual_above,
        middle + reach_above,
    )


def _reach(distances: Array, other: Array) -> tuple[float, float]:
    """Return how far values on one side of the median may lie, and how far they usually do.

    Given are the distances from the median on this side and on the other one, with which a value
    that is alone on its side is compared.
    """
    if len(distances) <= 1:
        half = float(np.median(other)) if len(other) > 1 else np.inf
        return FARTHEST * half, 0.0
    # "lower": never the farthest of all, however few there are.
    half, most = np.quantile(distances, [0.5, _SIDE], method="lower")
    if len(distances) < _MANY:  # too few to tell a tail from a stray value that is not absurd
        return float(FARTHEST * half), float(most)
    reach = float(min(REACH * most, FARTHEST * half))
    return reach, float(min(most, reach / REACH))


def _without(column: Array, values: list[float]) -> Array:
    return column[~np.isin(column, values)] if values else column
