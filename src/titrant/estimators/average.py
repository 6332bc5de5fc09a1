"""Estimators whose value is the mean of one term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from titrant.estimators.base import Estimator

if TYPE_CHECKING:
    from titrant._types import Array


@dataclass(frozen=True)
class Average(Estimator):
    """v̂ = mean of the one term, without weights and without a bandwidth."""

    __slots__ = ()

    size: ClassVar[int] = 1
    uses_propensity: ClassVar[bool] = False
    uses_bandwidth: ClassVar[bool] = False

    def weights(self, terms: Array) -> Array:
        """Return 1 (n,): every row counts alike."""
        return np.ones(len(terms))

    def values(self, means: Array) -> Array:
        """Return m₀ (…)."""
        return np.asarray(means[..., 0])

    def gradient(self, mean: Array) -> Array:
        """Return 1 (…, 1): the value is the mean itself."""
        return np.ones_like(mean)

    def hessian(self, mean: Array) -> Array:
        """Return 0 (…, 1, 1): the value is linear."""
        return np.zeros((*mean.shape, mean.shape[-1]))
