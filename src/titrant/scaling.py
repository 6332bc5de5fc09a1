"""What one absurd value may do to a column: nothing.

A mean and an sd are the work of all values, and one of 1e10 makes all others look alike: the
column is still there, and says nothing. So models see columns *held*: a value far beyond the
others, with a gap between, is most likely a slip and counts as the median, and so does one that
stands for something else, such as −9999 for "missing". Several far values count as the last before
the gap, and a column more says which rows these are. Columns without such values, heavy tails too,
pass as they are, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from titrant._types import Array

ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
"""A column whose spread is below this share of its size holds one value up to rounding."""
GAP, GAP_OF_FEW = 10.0, 100.0
"""Values lie far off beyond a gap: a distance from the median this many times the next smaller
one, the second where a side has fewer than 20 values. Heavy tails hardly have any: of laws whose
tails fall like |x|⁻² and |x|⁻³ the largest value is that far off in 1 and .1 % of all logs."""
APART, APART_USUAL = 10.0, 3.0
"""A code lies this many robust sds from the nearest other value, the second if it is a number that
often stands for "missing"."""
CODE_ROWS, CODE_SHARE = 3, 0.001
"""Fewest rows, and least share of them, that hold a code."""
MOST_ROWS = 50_000
"""Rows that are looked at: enough to see a code in one row of a thousand."""
USUAL_CODES = frozenset(
    [-float(k) for k in range(1, 10)]
    + [
        sign * float(str(k) * length)
        for k in (7, 8, 9)
        for length in range(2, 7)
        for sign in (-1, 1)
    ]
)
"""−1 … −9, and ±77, ±88, ±99, ±777, …: what tables write for "not asked", "refused", "unknown"."""
NEXT_TO_USUAL = frozenset(
    sign * (10.0**length - k) for k in (2, 3) for length in range(2, 7) for sign in (-1, 1)
)
"""±97, ±98, ±997, …: more of these words, but numbers like others unless they stand at an end."""
OFTEN_BESIDE = frozenset(
    sign * number
    for length in range(2, 7)
    for sign in (-1, 1)
    for number in (
        *(10.0**length - k for k in range(1, 11)),
        *(float(str(k) * length) for k in range(1, 10)),
    )
)
"""±90 … ±99, ±990 …, and ±11, ±22, …, ±111, …: codes where several of them stand together."""
USUAL_SHARE = 0.01
"""Least share of rows of a code that is told by its sign."""
BEYOND_SCALE = frozenset([7.0, 8.0, 9.0])
"""What is written so beyond a scale of whole numbers, such as 1 … 5: 7 not without 8 or 9,"""
SCALE_GAP, SCALE_ROWS, SCALE_SHARE = 3.0, 5, 0.02
"""across so many steps, in as many rows and this share of them: a count has no such gap."""
SIGN_GAP = 2.0
"""Negative codes lie so far below a scale of few whole numbers: −1 below 0 … 3 may be of it."""
TIMES_A_STEP = 5.0
"""Of several negative codes each has so many times the rows of a step of the values next to them: a
column that goes on below 0 has as many there as above."""
_MANY_VALUES = 12
_MOST_CODES = 10
_CODES = USUAL_CODES | NEXT_TO_USUAL
_FAMILIES = _CODES | OFTEN_BESIDE
_NEARLY_ALL = (0.05, 0.95)
_NORMAL_IQR = 1.349
_MANY = 20
_FEWEST_OTHERS, _LEAST_OTHERS, _LEAST_BESIDE = 10, 0.05, 0.25
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
    """The least value that is not far off (p,), as which several far below count."""
    high: Array
    least: Array
    """Below it a value is far off (p,): `low`, or what would lie beyond a gap from it."""
    most: Array
    center: Array
    """The medians (p,), as which codes and single far values count."""
    codes: tuple[Code, ...]
    strayed: tuple[int, ...]
    """Columns with several far values that are not codes."""

    @classmethod
    def of(cls, x: Array, *, chosen: bool = False) -> Self:
        """Return how to hold the columns of x (n, p), which may have been ``chosen`` as doses."""
        some = x[:: max(1, -(-len(x) // MOST_ROWS))]
        found, strayed = list[Code](), list[int]()
        marks = np.empty((5, x.shape[1]))
        for j, column in enumerate(some.T):
            values = codes_of(column, chosen=chosen)
            rest = _without(column, values)
            marks[:, j] = _marks(rest)
            found += [Code(j, v, int(np.count_nonzero(x[:, j] == v))) for v in values]
            far = (rest < marks[0, j]) | (rest > marks[-1, j])
            if np.count_nonzero(far) >= fewest(len(some)):
                strayed.append(j)
        least, low, center, high, most = marks
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
        # A single far value is most likely a slip, and counts as the median: held at an end, it
        # would be an extreme case. Several have a column of their own that says so.
        alone = ~np.isin(np.arange(x.shape[1]), self.strayed)
        low, high = (np.where(alone, self.center, end) for end in (self.low, self.high))
        held = np.where(x < self.least, low, np.where(x > self.most, high, x))
        for code, rows in zip(self.codes, self._coded(x), strict=True):
            held[rows, code.column] = self.center[code.column]
        return held

    def strays(self, x: Array) -> NDArray[np.bool_]:
        """Return which values of x (n, p) lie far beyond the others, codes aside."""
        strays = (x < self.least) | (x > self.most)
        for code, rows in zip(self.codes, self._coded(x), strict=True):
            strays[rows, code.column] = False
        return strays

    def passes(self, low: Array, high: Array) -> bool:
        """Whether columns that run from low to high (p,) pass as they are."""
        within = bool(np.all(low >= self.least) and np.all(high <= self.most))
        return within and not (self.codes or self.strayed)

    def _coded(self, x: Array) -> list[NDArray[np.bool_]]:
        return [x[:, code.column] == code.value for code in self.codes]


def spread_of(x: Array) -> Array:
    """Return the sd of each column of x (n, p), 0 where the values differ by rounding only."""
    if not x.size:
        return np.zeros(x.shape[1])
    columns = np.ascontiguousarray(x.T)  # along a column, sums take a third of the time
    low, high = columns.min(axis=1), columns.max(axis=1)
    extent, size = high - low, np.maximum(-low, high)
    # Far from zero the mean is rounded, and squares of tiny numbers are 0: measure from row 0.
    near = (size < _OFFSET * extent) & (extent > _TINY) & (extent < 1.0 / _TINY)
    unit = np.where(near | (extent == 0.0), 1.0, extent)
    origin = np.where(near, 0.0, x[0])
    spread = ((columns - origin[:, None]) / unit[:, None]).std(axis=1) * unit
    return np.where(extent > ROUNDING * size, spread, 0.0)


def codes_of(column: Array, *, chosen: bool = False) -> list[float]:
    """Return the values of a column (n,) that look like codes.

    A code is the least or the greatest value, is repeated, and lies far from all others; one of
    `USUAL_CODES` need not lie as far, and not far at all if it alone is negative. Several that are
    close to each other there, such as −99 and −96, are judged together, or each would hide the
    others. Of values that were ``chosen``, as doses are, 8 or 9 alone beyond a scale is none.
    """
    least = fewest(len(column))
    found: list[float] = []
    rest = column
    while len(found) < _MOST_CODES and len(rest):
        most = _MOST_CODES - len(found)
        ends = sorted(_ends(rest, least, most), key=lambda end: len(end.run))  # the lower first
        end = next((end for end in ends if _are_codes(end, least, chosen=chosen)), None)
        if end is None:
            break
        found += end.run.tolist()
        rest = end.others
    return found


class _End(NamedTuple):
    """The outermost values of a column (n,) at one end, and the rows that hold another."""

    run: Array
    """(k,), increasing."""
    rows: list[int]
    """How many hold each, outermost first."""
    others: Array


def _ends(column: Array, least: float, most: int) -> Iterator[_End]:
    """Yield the least 1, 2, … values of a column (n,), and the greatest, at most so many.

    Each has so many rows; values that codes are written as may have fewer.
    """
    for outermost, inward in ((np.min, 1), (np.max, -1)):
        rest, run, rows = column, list[float](), list[int]()
        while len(rest) and len(run) < most:
            end = float(outermost(rest))
            others = rest[rest != end]
            rows.append(len(rest) - len(others))
            if rows[-1] < least and end not in _FAMILIES:
                break
            run.append(end)
            rest = others
            yield _End(np.array(run[::inward]), rows.copy(), rest)


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


def _are_codes(end: _End, least: float, *, chosen: bool) -> bool:
    """Whether the values at an end of a column look like codes."""
    run, rows, others = end
    n, several, fewest_rows = sum(rows) + len(others), len(run) > 1, min(rows)
    fewest_others = max(_FEWEST_OTHERS, (_LEAST_BESIDE if several else _LEAST_OTHERS) * n)
    if max(rows) < least or len(others) < fewest_others:
        return False
    low, high = float(others.min()), float(others.max())
    gap, step = max(low - run[-1], run[0] - high), float(np.diff(run).max(initial=0.0))
    usual = _are_usual(run, gap)
    scaled = BEYOND_SCALE.issuperset(run.tolist()) and run[-1] > min(BEYOND_SCALE)
    if several and not (usual or scaled):
        return False
    if gap > step:  # else they are the last of values that go on
        # Of two or three values none is far from the others: there is nothing to measure by.
        if gap > (APART_USUAL if usual else APART) * robust_sd(others) > 0.0:
            return True
        told = scaled and (several or not chosen)
        if told and gap >= SCALE_GAP and fewest_rows >= max(SCALE_ROWS, SCALE_SHARE * n):
            return _is_scale(np.unique(others))
    negative = bool(run[-1] < 0.0 <= low) and fewest_rows >= USUAL_SHARE * n
    return negative and _told_by_sign(run, fewest_rows, others, usual=usual)


def _are_usual(run: Array, gap: float) -> bool:
    """Whether values (k,), increasing, with a gap to all others are what codes are written as.

    One that is not need not hide those beside it, if they follow each other or are closer to each
    other than to the others.
    """
    values = run.tolist()
    if len(values) == 1 or _CODES.issuperset(values):
        return _CODES.issuperset(values)
    beside = bool((np.diff(run) == 1.0).all()) or gap > run[-1] - run[0]
    return _FAMILIES.issuperset(values) or (beside and not _CODES.isdisjoint(values))


def _told_by_sign(run: Array, rows: int, others: Array, *, usual: bool) -> bool:
    """Whether negative values (k,), each in so many rows, are codes beside others that are not."""
    values, unit = np.unique(others), robust_sd(others)
    if not usual:
        low, high = np.quantile(others, _NEARLY_ALL)
        return bool(values[0] - run[-1] > max(APART_USUAL * unit, high - low) > 0.0)
    if len(values) <= _MANY_VALUES:  # −2, −1, 1, 2 is a scale without 0
        return len(values) > len(run) and values[0] - run[-1] >= SIGN_GAP and _is_scale(values)
    if len(run) == 1:
        return True
    near = np.count_nonzero(others <= run[-1] + unit)
    return bool(rows * unit > TIMES_A_STEP * near * np.median(np.diff(values)))


def _is_scale(values: Array) -> bool:
    """Whether distinct values (m,) are whole numbers without a gap, such as 1 … 5."""
    return len(values) > 1 and bool((values % 1.0 == 0.0).all() and (np.diff(values) == 1.0).all())


def _marks(column: Array) -> tuple[float, float, float, float, float]:
    """Return where the values of a column (n,) end: far below, below, median, above, far above.

    Far off begins at the last value before a gap. Without a gap it begins where one would be, so
    that a new row is held as if it had been among these.
    """
    if not len(column):
        return -np.inf, -np.inf, 0.0, np.inf, np.inf
    values = np.sort(column)
    middle = float((values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2.0)
    below = values[: np.searchsorted(values, middle)][::-1]
    above = values[np.searchsorted(values, middle, side="right") :]
    low = _last(below, middle - below, middle, above)
    high = _last(above, above - middle, middle, below)
    least = middle - _reach(middle - below, above - middle) if low is None else low
    most = middle + _reach(above - middle, middle - below) if high is None else high
    return (
        least,
        _outermost(below, middle) if low is None else low,
        middle,
        _outermost(above, middle) if high is None else high,
        most,
    )


def _reach(distances: Array, other: Array) -> float:
    """Return the distance from the median beyond which one more value would lie past a gap.

    The distances are those of a side without a gap, outward; without any, the ``other`` side's
    count.
    """
    if len(distances):
        return float(distances[-1]) * (GAP if len(distances) >= _MANY else GAP_OF_FEW)
    return float(other[-1]) * GAP_OF_FEW if len(other) else np.inf


def _outermost(values: Array, middle: float) -> float:
    return float(values[-1]) if len(values) else middle


def _last(values: Array, distances: Array, middle: float, other: Array) -> float | None:
    """Return the last of the values on one side of the median before a gap; None without a gap.

    They are given from the median outward, with their distances from it. A value that is alone on
    its side is compared with the ``other`` side, and counts as the median beyond a gap.
    """
    if len(values) == 1 and len(other) > 1:
        far = distances[0] > GAP_OF_FEW * np.abs(other - middle).max()
        return middle if far else None
    first = (len(values) - 1) // 2  # nearer to the median, ratios of distances are anything
    gap = GAP if len(values) >= _MANY else GAP_OF_FEW
    wide = np.flatnonzero(distances[first + 1 :] > gap * distances[first:-1])
    return float(values[first + wide[0]]) if len(wide) else None


def _without(column: Array, values: list[float]) -> Array:
    return column[~np.isin(column, values)] if values else column


# ── Outcomes, of which a few may be absurd ───────────────────────────────────────────────────────

FEW_SHARE, FEW_ROWS = 0.01, 2
"""At most this share of the rows, or so many, are a few: more are a kind of rows of their own."""
ABSURD_GAP = 25.0
"""The gap of an absurd outcome, wider than that of a context: the tail of costs is an answer."""
MOST_OF_SPREAD = 0.5
"""Share of Σ(x − median)² that they hold: less does not decide a mean."""


def ends_without_few(column: Array) -> tuple[float, float]:
    """Return the least and greatest of the values (n,) without a few absurd ones, or −∞ and ∞.

    A few values are absurd if they lie beyond a gap from all others and are most of the spread. On
    a side of the median where there are no others, the other side has what they are measured by.
    """
    values = np.sort(column)
    middle = float(np.median(values))
    few = max(FEW_ROWS, int(FEW_SHARE * len(values)))
    below = middle - values[: np.searchsorted(values, middle)][::-1]
    above = values[np.searchsorted(values, middle, side="right") :] - middle
    low = middle - _end_before_gap(below, above, few)
    high = middle + _end_before_gap(above, below, few)
    far = (values < low) | (values > high)
    if not far.any():
        return -np.inf, np.inf
    squares = ((values - middle) / np.abs(values - middle).max()) ** 2
    absurd = squares[far].sum() > MOST_OF_SPREAD * squares.sum()
    return (low, high) if absurd else (-np.inf, np.inf)


def _end_before_gap(distances: Array, other: Array, few: int) -> float:
    """Return the last distance from the median, outward, before a gap in the last few; else ∞."""
    first = max(len(distances) - few - 1, (len(distances) - 1) // 2, 0)  # as in `_last`
    outermost = distances[first:]
    if len(distances) <= FEW_ROWS and len(other):
        usual = other[-min(few + 1, len(other))]
        outermost = np.maximum.accumulate(np.append(usual, distances))
    gap = ABSURD_GAP if len(distances) >= _MANY else GAP_OF_FEW
    wide = np.flatnonzero(outermost[1:] > gap * outermost[:-1])
    return float(outermost[wide[0]]) if len(wide) else np.inf


# ── Columns in units of their own spread, so that no answer depends on the user's units ───────────

ONE_VALUE = 1e-10
"""Standardized values closer than this are one value up to rounding."""
GRAIN = 2.0**-24
"""The precision of `grained`: far below any effect, far above rounding."""
MIDDLE = (0.01, 0.99)
NORMAL = 0.215
"""The sd of a normal law as a share of the range from its 1 % to its 99 % quantile."""
WIDEST = 0.54
"""The largest share that is taken for an sd: .295 is a uniform law's, .5 that of two equal lumps,
the most without tails."""


@dataclass(frozen=True, slots=True)
class Standard:
    """z = (x − center)·inverse: mean 0 and variance 1 in each column; 0 in a constant one."""

    center: Array
    """(k,)"""
    inverse: Array
    """1/sd (k,); 0 for a constant column."""
    hold: Held | None = None
    """How far values are held before they are measured."""

    @classmethod
    def of(cls, x: Array) -> Standard:
        """Return the units of the columns of x (n, k)."""
        spread = spread_of(x)
        inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0.0)
        return cls(x.mean(axis=0), inverse)

    @classmethod
    def of_contexts(cls, x: Array) -> Standard:
        """Return the units of contexts x (n, p), held; several far values add a column."""
        hold = Held.of(x)
        return replace(cls.of(hold(x)), hold=hold)

    @classmethod
    def of_doses(cls, t: Array) -> Standard:
        """Return the units of doses t (n, d), which far ones do not stretch.

        Doses themselves stay as they are: a policy may ask about any.
        """
        return cls.of(Held.of(t, chosen=True).columns(t))

    def __call__(self, x: Array) -> Array:
        """Return x (n, k) in these units."""
        held = x if self.hold is None else self.hold(x)
        return (held - self.center) * self.inverse

    def grained(self, x: Array) -> Array:
        """Return x (n, k) in these units, grained."""
        return grained(self(x))

    def back(self, z: Array) -> Array:
        """Return z (n, k) in the original units; the one value of a constant column."""
        spread = np.divide(
            1.0, self.inverse, out=np.zeros_like(self.inverse), where=self.inverse > 0
        )
        return self.center + z * spread


def grained(z: Array) -> Array:
    """Return numbers of order one rounded to a multiple of 2⁻²⁴.

    Trees, and searches with several valleys, may take another turn when the last bit of a number
    changes. Grained, the same data in other units are the same numbers.
    """
    return np.round(z / GRAIN) * GRAIN


def residual_sd(x: Array, t: Array) -> Array:
    """Return the sd of each dose t (n, d) after least squares on x (n, p) and a constant (d,).

    Where it is larger than the middle 98 % of the residuals can explain, a few stray doses made it
    so; the sd of a normal law with the same middle then stands in.
    """
    design = np.column_stack([np.ones(len(x)), Standard.of_contexts(x)(x)])
    residual = t - design @ np.linalg.lstsq(design, t, rcond=None)[0]
    return without_strays(residual.std(axis=0), np.quantile(residual, MIDDLE, axis=0))


def without_strays(sd: Array, middle: Array) -> Array:
    """Return the sd of residuals (d,), or what the middle 98 % of them (2, d) say it should be."""
    low, high = middle
    strayed = (high > low) & (sd > WIDEST * (high - low))
    return np.where(strayed, NORMAL * (high - low), sd)
