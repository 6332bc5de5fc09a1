"""Several estimates on one log, with their joint covariance.

A question is an estimator, a policy and a bandwidth. The terms of many questions stand side by
side as one long row, so their joint covariance, and with it every paired contrast, bandwidth
path and curve, comes from the same moments as one estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from titrant.estimators.fused import fused_statistics, fusible
from titrant.estimators.tally import Tally
from titrant.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from titrant._types import Array
    from titrant.estimators.base import Estimator
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale

S = TypeVar("S")
"""A statistic that adds up over rows."""


class JointPass(Protocol):
    """One pass over a log under several policies."""

    def __call__(self, statistic: Callable[[Sequence[Rows]], S]) -> S:
        """Return the sum of ``statistic`` over all blocks of rows, one Rows for each policy."""


@dataclass(frozen=True, slots=True)
class Question:
    """How good the policy number ``policy`` is, by ``estimator`` at the bandwidth ``scale``."""

    estimator: Estimator
    policy: int
    scale: Scale
    kink: float = 0.0
    """Evidence, 0 to 1, that the outcome has a kink at the policy's dose; 0 if nobody looked."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is kept of the rows for m questions: joint moments of terms, and a tally of weights."""

    moments: Moments
    tally: Tally

    def __add__(self, other: Statistics) -> Statistics:
        """Return the statistics of both sets of rows."""
        return Statistics(self.moments + other.moments, self.tally + other.tally)


@dataclass(frozen=True, slots=True)
class Joint:
    """m estimates: values (m,), their covariance (m, m), and the weights behind them."""

    questions: tuple[Question, ...]
    values: Array
    covariance: Array
    moments: Moments
    tally: Tally

    @property
    def se(self) -> Array:
        """The standard errors (m,)."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    def mean(self, i: int) -> Array:
        """Return the mean terms (k,) of question i."""
        return self.moments.mean[_columns(self.questions)[i]]


def ask(questions: Sequence[Question], over_rows: JointPass) -> Joint:
    """Return the answers to all questions, in one pass over the rows."""
    statistics = over_rows(partial(statistics_of, questions))
    return joint_estimates(questions, statistics)


def statistics_of(questions: Sequence[Question], rows: Sequence[Rows]) -> Statistics:
    """Return the statistics of some rows; rows[j] are those of policy number j."""
    if fusible(questions, rows):
        return Statistics(*fused_statistics(questions, rows))
    terms = [q.estimator.terms(rows[q.policy], q.scale) for q in questions]
    weights = [q.estimator.weights(z) for q, z in zip(questions, terms, strict=True)]
    return Statistics(
        Moments.of(np.concatenate(terms, axis=1)), Tally.of(np.stack(weights, axis=1))
    )


def joint_estimates(questions: Sequence[Question], statistics: Statistics) -> Joint:
    """Return the values and, by the delta method, G Cov(terms) Gᵀ/n, G the stacked gradients.

    Without overlap (no weight at all) a value is nan; the evaluation refuses it.
    """
    moments, tally = statistics.moments, statistics.tally
    values = np.full(len(questions), np.nan)
    g = np.zeros((len(questions), len(moments.mean)))
    for i, (question, columns) in enumerate(zip(questions, _columns(questions), strict=True)):
        if tally.total[i] != 0.0:
            values[i] = question.estimator.value(moments.mean[columns])
            g[i, columns] = question.estimator.gradient(moments.mean[columns])
    covariance = g @ moments.covariance @ g.T / moments.n
    return Joint(tuple(questions), values, covariance, moments, tally)


def _columns(questions: Sequence[Question]) -> list[slice]:
    """Return where the terms of each question stand in the joint row."""
    ends = np.cumsum([q.estimator.size for q in questions]).tolist()
    return [slice(end - q.estimator.size, end) for q, end in zip(questions, ends, strict=True)]
