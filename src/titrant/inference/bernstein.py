"""Empirical Bernstein intervals: true at any sample size, and wide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.estimators.joint import Ask
from titrant.inference.base import Inference, Interval, IntervalMethod, paired
from titrant.inference.rbc import influence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.estimators import Joint, Question, Rows
    from titrant.estimators.joint import Search

_NOTE = "covers the smoothed value; the smoothing bias comes on top"


@dataclass(frozen=True, slots=True)
class EmpiricalBernstein(IntervalMethod):
    """mean ± √(2V·ln(3/δ)/n) + 3R·ln(3/δ)/n (Audibert, Munos & Szepesvári 2009).

    V is the variance of the rows' influence φ and R its range over the log. Exact for the
    un-normalized estimators when R is the true range; for the self-normalized ones it bounds the
    linear part. It says nothing about the smoothing bias.
    """

    def search(self, point: Joint) -> Search[BernsteinInference]:
        """Return the influence functions' spread and range, in one pass over the rows."""
        m, n = len(point.questions), point.moments.rows
        means = [point.mean(i) for i in range(m)]
        pairs = yield Ask(partial(influence_ranges, point.questions, means, n))
        return BernsteinInference(n, point.values, point.covariance, pairs.high - pairs.low)


@dataclass(frozen=True, slots=True)
class Ranges:
    """The smallest and largest influence for every pair of questions (m, m); pair (a, a) is a."""

    low: Array
    high: Array

    def __add__(self, other: Ranges) -> Ranges:
        """Return the ranges over both sets of rows."""
        return Ranges(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


@dataclass(frozen=True, slots=True)
class BernsteinInference(Inference):
    """m centers with their covariance (m, m) and the ranges (m, m) of influence, by pair."""

    n: int
    centers: Array
    covariance: Array
    ranges: Array

    def interval(self, i: int) -> BernsteinInterval:
        """Return the interval of estimate i."""
        se = float(np.sqrt(max(self.covariance[i, i], 0.0)))
        return BernsteinInterval(float(self.centers[i]), se, float(self.ranges[i, i]) / self.n)

    def contrast(self, a: int, b: int) -> BernsteinInterval:
        """Return the interval of a − b."""
        between, se = paired(self.centers, self.covariance, a, b)
        spread = 0.0 if a == b else float(self.ranges[a, b])  # the diagonal is a's own
        return BernsteinInterval(between, se, spread / self.n)


@dataclass(frozen=True, slots=True)
class BernsteinInterval(Interval):
    """center ± se·√(2·ln(3/δ)) + 3·(R/n)·ln(3/δ)."""

    center: float
    se: float
    range_per_row: float
    """R/n."""
    method: str = "empirical Bernstein"
    note: str | None = _NOTE

    def at(self, level: float) -> tuple[float, float]:
        """Return the bounds at a level such as 0.95."""
        log = math.log(3.0 / (1.0 - _check.probability(level, "level", "interval")))
        half = self.se * math.sqrt(2.0 * log) + 3.0 * self.range_per_row * log
        return self.center - half, self.center + half


def influence_ranges(
    questions: Sequence[Question], means: Sequence[Array], n: int, rows: Sequence[Rows]
) -> Ranges:
    """Return the range of φ_a (on the diagonal) and of φ_a − φ_b over some rows."""
    if not rows[questions[0].policy].alike:
        raise InvalidArgument(
            "`EmpiricalBernstein` bounds what single rows do: it knows no groups and no weights. "
            "Leave `interval` out for the default, which does."
        )
    phi = np.stack(
        [influence(q, mean, n, rows[q.policy]) for q, mean in zip(questions, means, strict=True)]
    )
    low, high = np.diag(phi.min(axis=1)), np.diag(phi.max(axis=1))
    for a, b in combinations(range(len(phi)), 2):  # pair by pair: all at once need m² arrays
        difference = phi[a] - phi[b]
        low[a, b], high[a, b] = difference.min(), difference.max()
        low[b, a], high[b, a] = -high[a, b], -low[a, b]
    return Ranges(low, high)
