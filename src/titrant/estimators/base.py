"""What an estimator is: per-row terms, and a smooth function of their means.

Standard error, paired comparison, bootstrap, execution in chunks and the gradient of a policy
search all follow from these two; an estimator never sums inside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale


class Estimator(ABC):
    """Terms (n, k) of rows, and the value as a function of their mean (k,)."""

    size: ClassVar[int]
    """k, the number of terms of a row."""
    uses_propensity: ClassVar[bool] = True
    uses_outcome_model: ClassVar[bool] = False
    uses_bandwidth: ClassVar[bool] = True

    @abstractmethod
    def terms(self, rows: Rows, scale: Scale) -> Array:
        """Return the per-row terms (n, k)."""

    @abstractmethod
    def dterms(self, rows: Rows, scale: Scale) -> Array:
        """Return ∂terms/∂τ (n, k, d)."""

    @abstractmethod
    def weights(self, terms: Array) -> Array:
        """Return how much each row counts (n,), from its terms (n, k)."""

    def value(self, mean: Array) -> float:
        """Return the estimate from the mean of the terms (k,)."""
        return float(self.values(mean))

    @abstractmethod
    def values(self, means: Array) -> Array:
        """Return many estimates (…) from the means of their terms (…, k)."""

    @abstractmethod
    def gradient(self, mean: Array) -> Array:
        """Return ∂value/∂mean (…, k): with it the delta method gives the standard error."""

    @abstractmethod
    def hessian(self, mean: Array) -> Array:
        """Return ∂²value/∂mean² (…, k, k): how the standard error itself moves with the mean."""
