"""Several estimates on one log, with their joint covariance.

A question is an estimator, a policy and a bandwidth. The terms of many questions stand side by
side as one long row, so their joint covariance, and with it every paired contrast, bandwidth
path and curve, comes from the same moments as one estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.estimators.base import Estimator
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale
    from titrant.moments import Moments
    from titrant.policies import Policy


@dataclass(frozen=True, slots=True)
class Question:
    """How good ``policy`` is, by ``estimator`` at the bandwidth ``scale``."""

    estimator: Estimator
    policy: Policy
    scale: Scale


@dataclass(frozen=True, slots=True)
class Joint:
    """m estimates: values (m,) and their covariance (m, m), from n rows."""

    n: int
    values: Array
    covariance: Array

    @property
    def se(self) -> Array:
        """The standard errors (m,)."""
        se: Array = np.sqrt(np.diagonal(self.covariance))
        return se

    def contrast(self, a: int, b: int) -> tuple[float, float]:
        """Return v_a − v_b and its standard error, which knows that both used the same rows."""
        variance = self.covariance[a, a] + self.covariance[b, b] - 2 * self.covariance[a, b]
        return float(self.values[a] - self.values[b]), float(np.sqrt(max(variance, 0.0)))


def joint_terms(questions: Sequence[Question], rows: Sequence[Rows]) -> Array:
    """Return the terms of all questions side by side (n, Σk); rows[i] belong to questions[i]."""
    return np.concatenate(
        [q.estimator.terms(r, q.scale) for q, r in zip(questions, rows, strict=True)], axis=1
    )


def joint_estimates(questions: Sequence[Question], moments: Moments) -> Joint:
    """Return the values and, by the delta method, G Cov(terms) Gᵀ/n, G the stacked gradients."""
    ends = np.cumsum([q.estimator.size for q in questions])
    values, g = np.empty(len(questions)), np.zeros((len(questions), int(ends[-1])))
    for i, (question, end) in enumerate(zip(questions, ends, strict=True)):
        estimator = question.estimator
        part = slice(end - estimator.size, end)
        values[i] = estimator.value(moments.mean[part])
        g[i, part] = estimator.gradient(moments.mean[part])
    return Joint(moments.n, values, g @ moments.covariance @ g.T / moments.n)
