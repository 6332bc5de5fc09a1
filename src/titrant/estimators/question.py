"""A question: how good a policy is, by which estimator at which bandwidth, and for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from titrant.estimators.base import SmoothedEstimator
from titrant.estimators.form import has_weighted_terms, values_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.estimators.base import Estimator
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale


class Part(Protocol):
    """Some of the rows of a log."""

    def inside(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which of some rows belong to it (n,)."""


# A part of the log is a row weight 1{i ∈ part}, so its value has the form of every other: terms
# (1·z, 1), and the estimator's value of m/s, s the share of rows inside. No row is taken out, and
# the covariance of parts, of the same groups and by the same models, comes with them.


@dataclass(frozen=True, slots=True)
class Question:
    """How good the policy number ``policy`` is, by ``estimator`` at the bandwidth ``scale``."""

    estimator: Estimator
    policy: int
    scale: Scale
    kink: float = 0.0
    """Evidence, 0 to 1, that the outcome has a kink at the policy's dose; 0 if nobody looked."""
    exact: bool = False
    """Whether all doses of the policy are point masses, so that no bandwidth has a say."""
    part: Part | None = None
    """For which rows; None for all of them."""

    @property
    def smoothed(self) -> bool:
        """Whether a bandwidth has a say in the answer."""
        return isinstance(self.estimator, SmoothedEstimator) and not self.exact

    @property
    def weighted(self) -> bool:
        """Whether the terms of a row are b, w·e, w, so that one without weight has b alone."""
        return self.part is None and has_weighted_terms(self.estimator)

    @property
    def size(self) -> int:
        """k, the number of terms of a row."""
        return self.estimator.size + (self.part is not None)

    def terms(self, rows: Rows) -> Array:
        """Return the per-row terms z (n, k), or those of a part: (1·z, 1)."""
        z = self.estimator.terms(rows, self.scale)
        if self.part is None:
            return z
        inside = self.part.inside(rows)[:, None]
        return np.hstack([np.where(inside, z, 0.0), inside])

    def weights(self, terms: Array) -> Array:
        """Return how much each row counts (n,), from its terms (n, k)."""
        w = self.estimator.weights(self._own(terms))
        return w if self.part is None else w * terms[:, -1]

    def value(self, mean: Array) -> float:
        """Return the estimate from the mean of the terms (k,)."""
        return self.estimator.value(self._own(mean) / self.share(mean))

    def values(self, means: Array) -> Array:
        """Return many estimates (…) from the means of their terms (…, k)."""
        own = means if self.part is None else means[..., :-1] / means[..., -1:]
        return values_of(self.estimator, own)

    def gradient(self, mean: Array) -> Array:
        """Return ∂value/∂mean (k,): of a part (g/s, −g·m/s²), g the estimator's at m/s."""
        if self.part is None:
            return self.estimator.gradient(mean)
        s = self.share(mean)
        g = self.estimator.gradient(mean[:-1] / s)
        return np.append(g, -g @ mean[:-1] / s) / s

    def share(self, mean: Array) -> float:
        """Return the share of rows inside, 1 of all."""
        return 1.0 if self.part is None else float(mean[-1])

    def _own(self, terms: Array) -> Array:
        return terms if self.part is None else terms[..., :-1]
