"""The value of the status quo: the outcomes that were observed, averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from titrant.estimators.base import Estimator

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale


@dataclass(frozen=True)
class Observed(Estimator):
    """v̂ = mean(y): what the logged doses were worth, whatever policy is asked about."""

    size: ClassVar[int] = 1
    uses_propensity: ClassVar[bool] = False
    uses_bandwidth: ClassVar[bool] = False

    def terms(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002  (no bandwidth here)
        """Return y (n, 1)."""
        return rows.y[:, None]

    def dterms(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002
        """Return 0 (n, 1, d): no policy changes what was observed."""
        return np.zeros((len(rows.y), 1, rows.tau.shape[1]))

    def weights(self, terms: Array) -> Array:
        """Return 1 (n,): every row counts alike."""
        return np.ones(len(terms))

    def values(self, means: Array) -> Array:
        """Return m₀ (…)."""
        return np.asarray(means[..., 0])

    def gradient(self, mean: Array) -> Array:
        """Return 1: the value is the mean itself."""
        return np.ones_like(mean)

    def hessian(self, mean: Array) -> Array:
        """Return 0 (1, 1): the value is linear."""
        return np.zeros((*mean.shape, mean.shape[-1]))
