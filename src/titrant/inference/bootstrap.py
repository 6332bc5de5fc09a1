"""The Poisson bootstrap: each row is counted Poisson(1) times, over and over.

The counts of a row are a hash of the seed, the row's number and the draw. So they do not depend
on how the log is cut into blocks, and all policies of a comparison see the same resampled logs.
Numerator and denominator of a self-normalized estimate are resampled together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant._hash import GOLDEN, splitmix64
from titrant.estimators import WeightedEstimator
from titrant.inference.base import Inference, Interval, IntervalMethod
from titrant.inference.rbc import SHRINK, corrected_answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.estimators import Joint, JointPass, Question, Rows

_BLOCK = 2_000_000
"""Counts drawn at a time (rows × draws), so that memory stays flat."""
_MANY = 1_000_000
"""Counts from which on a compiled loop is used."""

# P(N ≤ k) for N ~ Poisson(1), in units of 2⁻³²: 32 random bits become a count by look-up.
_CUMULATIVE = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(13)])
_THRESHOLDS = np.floor(_CUMULATIVE * 2.0**32).astype(np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonBootstrap(IntervalMethod):
    """Percentile interval of ``draws`` Poisson resamples of the log.

    With ``bias_corrected`` the estimate that is resampled is the one of order four at .84h,
    as in `RobustBiasCorrected`; otherwise the plain estimate, smoothing bias included.
    """

    draws: int = 1000
    seed: int = 0
    bias_corrected: bool = True

    def __post_init__(self) -> None:
        _check.count(self.draws, "draws", "PoissonBootstrap", at_least=100)
        _check.count(self.seed, "seed", "PoissonBootstrap", at_least=0)

    def infer(self, point: Joint, over_rows: JointPass) -> DrawnInference:
        """Return the resampled estimates, in one pass over the rows."""
        questions, notes = self._resampled(point, over_rows)
        sums = over_rows(partial(resampled_sums, questions, self.draws, self.seed))
        ends = np.cumsum([q.estimator.size for q in questions]).tolist()
        draws = np.empty((self.draws, len(questions)))
        with np.errstate(invalid="ignore"):  # 0/0: a draw that left out every row in reach
            means = sums[:, 1:] / sums[:, :1]
            for i, (question, end) in enumerate(zip(questions, ends, strict=True)):
                columns = means[:, end - question.estimator.size : end]
                draws[:, i] = question.estimator.values(columns)
        return DrawnInference("Poisson bootstrap", draws, notes)

    def _resampled(
        self, point: Joint, over_rows: JointPass
    ) -> tuple[Sequence[Question], tuple[str | None, ...]]:
        """Return the questions that are resampled, and what each of them stands in for."""
        if not self.bias_corrected:
            return point.questions, (None,) * len(point.questions)
        answers = corrected_answers(point, SHRINK, over_rows)
        return [a.question for a in answers], tuple(a.note for a in answers)


@dataclass(frozen=True, slots=True)
class DrawnInference(Inference):
    """Resampled estimates (draws, m); nan where a draw left out every row in reach."""

    method: str
    draws: Array
    notes: tuple[str | None, ...]

    def interval(self, i: int) -> PercentileInterval:
        """Return the percentile interval of estimate i."""
        return PercentileInterval.of(self.draws[:, i], self.method, self.notes[i])

    def contrast(self, a: int, b: int) -> PercentileInterval:
        """Return the percentile interval of a − b over the same resampled logs."""
        difference = self.draws[:, a] - self.draws[:, b]
        return PercentileInterval.of(difference, self.method, self.notes[a] or self.notes[b])


@dataclass(frozen=True, slots=True)
class PercentileInterval(Interval):
    """The middle part of resampled estimates."""

    center: float
    se: float
    draws: Array
    method: str
    note: str | None = None

    @classmethod
    def of(cls, draws: Array, method: str, note: str | None = None) -> PercentileInterval:
        """Return the interval of some draws (B,); those that are nan are left out, and counted."""
        told = np.sort(draws[~np.isnan(draws)])
        if len(told) < len(draws):
            empty = f"{len(draws) - len(told):,} of {len(draws):,} draws had no row in reach"
            note = f"{note}; {empty}" if note else empty
        return cls(float(np.median(told)), float(told.std()), told, method, note)

    def at(self, level: float) -> tuple[float, float]:
        """Return the bounds at a level such as 0.95."""
        tail = (1.0 - _check.probability(level, "level", "interval")) / 2
        low, high = np.quantile(self.draws, [tail, 1.0 - tail])
        return float(low), float(high)


def resampled_sums(
    questions: Sequence[Question], draws: int, seed: int, rows: Sequence[Rows]
) -> Array:
    """Return ΣN and ΣN·terms of each draw (draws, 1 + Σk) over some rows, N ~ Poisson(1)."""
    terms = np.concatenate([q.estimator.terms(rows[q.policy], q.scale) for q in questions], axis=1)
    number = rows[0].first_row + np.arange(len(terms))
    if all(_only_ratios(q) for q in questions):
        active = np.any(terms[:, 2::3] != 0.0, axis=1)
        terms, number = terms[active], number[active]
    if len(terms) * draws >= _MANY:
        return fused_sums(terms, number, draws, seed)
    return plain_sums(terms, number, draws, seed)


def plain_sums(terms: Array, number: NDArray[np.int64], draws: int, seed: int) -> Array:
    """Return ΣN and ΣN·terms (draws, 1 + k) of rows with these numbers (n,) and terms (n, k)."""
    columns = np.concatenate([np.ones((len(terms), 1)), terms], axis=1)
    sums = np.zeros((draws, columns.shape[1]))
    step = max(1, _BLOCK // draws)
    for start in range(0, len(columns), step):
        part = slice(start, start + step)
        sums += poisson_counts(number[part], draws, seed).T @ columns[part]
    return sums


def fused_sums(terms: Array, number: NDArray[np.int64], draws: int, seed: int) -> Array:
    """Return the same by a compiled loop, which never stores the counts.

    A constant column, such as the baseline of a ratio, is the count of rows times its number.
    """
    from titrant.compiled.poisson import poisson_sums  # noqa: PLC0415  (numba)

    sums = np.zeros((draws, 1 + terms.shape[1]))
    if not len(terms):
        return sums
    varies = np.ptp(terms, axis=0) > 0.0
    columns = np.ascontiguousarray(terms[:, varies])
    thresholds = _THRESHOLDS.astype(np.uint32)
    by_half = poisson_sums(_keys(number, seed), columns, thresholds, (draws + 1) // 2)
    # Draws 2j and 2j + 1 are the high and the low half of one number.
    low_first = np.array([1], dtype=np.uint64).view(np.uint32)[0] == 1
    drawn = by_half.reshape(len(by_half), -1, 2)[:, :, :: -1 if low_first else 1]
    drawn = drawn.reshape(len(by_half), -1)[:, :draws].T
    sums[:, 0] = drawn[:, 0]
    sums[:, 1:][:, varies] = drawn[:, 1:]
    sums[:, 1:][:, ~varies] = np.outer(drawn[:, 0], terms[0, ~varies])
    return sums


def _only_ratios(question: Question) -> bool:
    """Whether rows without weight cannot move the value: a ratio around a constant baseline."""
    estimator = question.estimator
    return (
        isinstance(estimator, WeightedEstimator)
        and estimator.normalized
        and not estimator.uses_outcome_model
    )


def poisson_counts(row: NDArray[np.int64], draws: int, seed: int) -> Array:
    """Return Poisson(1) counts (n, draws) that depend on the seed, row number and draw only."""
    key = _keys(row, seed)
    pairs = np.arange((draws + 1) // 2, dtype=np.uint64) * np.uint64(GOLDEN)
    bits = splitmix64(key[:, None] + pairs)
    # Draws 2j and 2j + 1 share 64 bits, so that asking for more draws keeps the first ones.
    halves = np.stack([bits >> np.uint64(32), bits & np.uint64(0xFFFFFFFF)], axis=2)
    some = halves.reshape(len(row), -1)[:, :draws]
    return np.searchsorted(_THRESHOLDS, some, side="right").astype(np.float64)


def _keys(row: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Return the states (n,) from which the counts of each row are drawn."""
    start = splitmix64(np.array([seed % 2**64], dtype=np.uint64))
    return splitmix64(start + row.astype(np.uint64) * np.uint64(GOLDEN))
