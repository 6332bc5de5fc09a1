"""The Poisson bootstrap: percentile intervals from resampled logs."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.compiled import Loop, pays
from titrant.data.keys import GOLDEN, splitmix64
from titrant.estimators.form import is_ratio_around_a_constant
from titrant.estimators.joint import Ask
from titrant.inference.base import Inference, Interval, IntervalMethod, difference
from titrant.inference.rbc import corrected_answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.estimators import Joint, Question, Rows
    from titrant.estimators.joint import Search

    Bits = NDArray[np.uint64]

# Poisson(1) counts as a pure function of the seed, the row's number and the draw.
#
# Sixteen random bits are one of 2¹⁶ cells. Of these, ⌊2¹⁶·P(N = k)⌋ belong to the count k; the rest
# of all P(N = k) together is five cells, and there 64 more bits tell the count. So four counts take
# one number of 64 bits, one count in 13,000 takes another, and their law is Poisson's to the
# precision of a double.


SHARE = 4
"""Draws that share a number of 64 bits."""
_BITS = 16
# What is left out, P(N ≥ 20), is 2·10⁻¹⁹.
_LAW = np.array([math.exp(-1.0) / math.factorial(k) for k in range(20)]) * 2.0**_BITS
_WHOLE = np.floor(_LAW)
_PARTS = np.cumsum(_LAW - _WHOLE)

EDGES = np.cumsum(_WHOLE[_WHOLE > 0]).astype(np.uint16)
"""Cells below edge k belong to counts up to k; those from the last edge on are not told yet."""
UNTOLD = len(EDGES)
"""What the edges say of such cells."""
REST = np.floor(_PARTS[:-1] / _PARTS[-1] * 2.0**64).astype(np.uint64)
"""The count is the number of these that are not above 64 more bits."""


def poisson_counts(row: NDArray[np.int64], draws: int, seed: int) -> Array:
    """Return Poisson(1) counts (n, draws) that depend on the seed, row number and draw only."""
    key = row_keys(row, seed)
    # Draws 4j to 4j + 3 share 64 bits, so that asking for more draws keeps the first ones.
    states = np.arange(-(-draws // SHARE), dtype=np.uint64) * np.uint64(GOLDEN)
    shifts = np.arange(0, SHARE * _BITS, _BITS, dtype=np.uint64)
    parts = splitmix64(key[:, None] + states)[:, :, None] >> shifts
    cells = parts.astype(np.uint16).reshape(len(row), -1)[:, :draws]
    counts = np.searchsorted(EDGES, cells, side="right")
    untold = np.nonzero(counts == UNTOLD)
    counts[untold] = _counts_from_more(key[untold[0]], untold[1])
    return counts.astype(np.float64)


def row_keys(row: NDArray[np.int64], seed: int) -> Bits:
    """Return the states (n,) from which the counts of each row are drawn."""
    start = splitmix64(np.array([seed % 2**64], dtype=np.uint64))
    return splitmix64(start + row.astype(np.uint64) * np.uint64(GOLDEN))


def _counts_from_more(key: Bits, draw: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts of some rows and draws whose sixteen bits did not tell."""
    bits = splitmix64(splitmix64(key) + draw.astype(np.uint64) * np.uint64(GOLDEN))
    return np.searchsorted(REST, bits, side="right")


# The Poisson bootstrap: each row is counted Poisson(1) times, over and over.
#
# The counts of a row are a hash of the seed, the row's number and the draw (`poisson_counts`). So
# they do not depend on how the log is cut into blocks, and all policies of a comparison see the
# same resampled logs. Numerator and denominator of a self-normalized estimate are resampled
# together.

_BLOCK = 2_000_000
"""Counts drawn at a time (rows × draws), so that memory stays flat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonBootstrap(IntervalMethod):
    """Percentile interval of ``draws`` Poisson resamples of the log, which holds the estimate.

    With ``bias_corrected`` the estimate that is resampled is the one of order four, as in
    `RobustBiasCorrected`; otherwise the plain estimate, smoothing bias included.
    """

    draws: int = 1000
    seed: int = 0
    bias_corrected: bool = True

    def __post_init__(self) -> None:
        _check.count(self.draws, "draws", "PoissonBootstrap", at_least=100)
        _check.count(self.seed, "seed", "PoissonBootstrap", at_least=0)

    def search(self, point: Joint) -> Search[DrawnInference]:
        """Return the resampled estimates, in one pass over the rows."""
        questions, notes = yield from self._resampled(point)
        sums = yield Ask(partial(resampled_sums, questions, self.draws, self.seed))
        ends = np.cumsum([q.size for q in questions]).tolist()
        draws = np.empty((self.draws, len(questions)))
        with np.errstate(invalid="ignore"):  # 0/0: a draw that left out every row in reach
            means = sums[:, 1:] / sums[:, :1]
            for i, (question, end) in enumerate(zip(questions, ends, strict=True)):
                draws[:, i] = question.values(means[:, end - question.size : end])
        return DrawnInference("Poisson bootstrap", point.values, point.covariance, draws, notes)

    def _resampled(self, point: Joint) -> Search[tuple[Sequence[Question], tuple[str | None, ...]]]:
        """Return the questions that are resampled, and what each of them stands in for."""
        if not self.bias_corrected:
            return point.questions, (None,) * len(point.questions)
        answers = yield from corrected_answers(point)
        return [a.question for a in answers], tuple(a.note for a in answers)


@dataclass(frozen=True, slots=True)
class DrawnInference(Inference):
    """Estimates (m,) and resampled ones (draws, m); nan where a draw left out all rows in reach."""

    method: str
    centers: Array
    covariance: Array
    """Of the estimates (m, m)."""
    draws: Array
    notes: tuple[str | None, ...]

    def interval(self, i: int) -> PercentileInterval:
        """Return the percentile interval of estimate i."""
        center = float(self.centers[i])
        return PercentileInterval.of(center, self.draws[:, i], self.method, self.notes[i])

    def contrast(self, a: int, b: int) -> PercentileInterval:
        """Return the percentile interval of a − b over the same resampled logs."""
        center = difference(self.centers, self.covariance, a, b)
        note = self.notes[a] or self.notes[b]
        return PercentileInterval.of(center, self.draws[:, a] - self.draws[:, b], self.method, note)


@dataclass(frozen=True, slots=True)
class PercentileInterval(Interval):
    """The middle part of resampled estimates, and what lies between it and the estimate.

    What is resampled may be a bias-corrected fit. Where all of its middle lies on one side of the
    estimate, the interval reaches over the difference, so that the estimate is always inside.
    """

    center: float
    se: float
    draws: Array
    """In increasing order."""
    method: str
    note: str | None = None

    @classmethod
    def of(
        cls, center: float, draws: Array, method: str, note: str | None = None
    ) -> PercentileInterval:
        """Return the interval of some draws (B,); those that are nan are left out, and counted."""
        told = np.sort(draws[~np.isnan(draws)])
        if len(told) < len(draws):
            empty = f"{len(draws) - len(told):,} of {len(draws):,} draws had no row in reach"
            note = f"{note}; {empty}" if note else empty
        return cls(center, float(told.std()), told, method, note)

    def at(self, level: float) -> tuple[float, float]:
        """Return the bounds at a level such as 0.95."""
        tail = (1.0 - _check.probability(level, "level", "interval")) / 2
        low, high = np.quantile(self.draws, [tail, 1.0 - tail])
        return min(float(low), self.center), max(float(high), self.center)


def resampled_sums(
    questions: Sequence[Question], draws: int, seed: int, rows: Sequence[Rows]
) -> Array:
    """Return ΣN and ΣN·terms of each draw (draws, 1 + Σk) over some rows, N ~ Poisson(1)."""
    one = rows[questions[0].policy]
    many = pays(Loop.DRAWS, len(one.y) * draws) and sys.byteorder == "little"
    terms = np.concatenate([q.terms(rows[q.policy]).T for q in questions])
    # The rows of a group are drawn together, as often.
    number = one.first_row + np.arange(terms.shape[1]) if one.group is None else one.group
    if one.omega is not None:
        return weighted_sums(terms, one.omega, number, draws, seed)
    if all(q.part is None and is_ratio_around_a_constant(q.estimator) for q in questions):
        active = np.flatnonzero(np.any(terms[2::3] != 0.0, axis=0))
        terms, number = np.take(terms, active, axis=1), number[active]
    sums = fused_sums if many else plain_sums
    return sums(terms, number, draws, seed)


def weighted_sums(
    terms: Array, omega: Array, number: NDArray[np.int64], draws: int, seed: int
) -> Array:
    """Return ΣNω and ΣNω·terms (draws, 1 + k): terms (k, n) of rows that count by ω (n,)."""
    sums = plain_sums(np.concatenate([omega[None], omega * terms]), number, draws, seed)
    return sums[:, 1:]


def plain_sums(terms: Array, number: NDArray[np.int64], draws: int, seed: int) -> Array:
    """Return ΣN and ΣN·terms (draws, 1 + k) of rows with these numbers (n,) and terms (k, n)."""
    columns = np.concatenate([np.ones((1, terms.shape[1])), terms])
    sums = np.zeros((len(columns), draws))
    step = max(1, _BLOCK // draws)
    for start in range(0, len(number), step):
        part = slice(start, start + step)
        sums += columns[:, part] @ poisson_counts(number[part], draws, seed)
    return sums.T


def fused_sums(terms: Array, number: NDArray[np.int64], draws: int, seed: int) -> Array:
    """Return the same by a compiled loop, which never stores the counts.

    A constant term, such as the baseline of a ratio, is the count of rows times its number.
    """
    from titrant.compiled.poisson import poisson_sums  # noqa: PLC0415  (numba)

    sums = np.zeros((1 + len(terms), draws))
    if not len(number):
        return sums.T
    varies = np.flatnonzero(np.any(terms != terms[:, :1], axis=1))
    columns = np.zeros((len(varies) + len(varies) % 2, len(number)))
    columns[: len(varies)] = terms[varies]
    drawn = poisson_sums(row_keys(number, seed), columns, EDGES, REST, -(-draws // SHARE))
    sums[0] = drawn[0, :draws]
    sums[1:] = terms[:, :1] * sums[0]
    sums[1 + varies] = drawn[1 : 1 + len(varies), :draws]
    return sums.T
