"""The common form of every weighted estimator: a baseline plus weighted residuals.

    terms  b, w·e, w        value  m₀ + m₁  or, self-normalized,  m₀ + m₁/m₂

| estimator                | baseline b   | residual e    | self-normalized |
|--------------------------|--------------|---------------|-----------------|
| IPW                      | 0            | y             | no              |
| IPW, centered            | c            | y − c         | no              |
| self-normalized          | c            | y − c         | yes             |
| doubly robust            | r̂(τ, x)     | y − r̂(t, x)  | yes or no       |

with c the mean outcome of the log. For the self-normalized estimator c changes nothing but the
rounding: c + Σw(y − c)/Σw = Σwy/Σw; it keeps an outcome far from zero from swamping its variance.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from titrant.estimators.base import Estimator

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale


class WeightedEstimator(Estimator):
    """An estimator made of a baseline, residuals and weights."""

    size: ClassVar[int] = 3

    @property
    @abstractmethod
    def normalized(self) -> bool:
        """Whether the weighted residuals are divided by the mean weight."""

    @abstractmethod
    def references(self, rows: Rows) -> tuple[Array | float, Array | float]:
        """Return b and r, with e = y − r: each (n,), or a number that all rows share."""

    @abstractmethod
    def baseline_slope(self, rows: Rows) -> Array:
        """Return ∂b/∂τ (n, d); e does not depend on τ."""

    @abstractmethod
    def weight(self, rows: Rows, scale: Scale) -> Array:
        """Return w (n,)."""

    @abstractmethod
    def weight_slope(self, rows: Rows, scale: Scale) -> Array:
        """Return ∂w/∂τ (n, d)."""

    def baseline(self, rows: Rows) -> tuple[Array, Array]:
        """Return b and e, each (n,)."""
        b, r = self.references(rows)
        return np.broadcast_to(b, rows.y.shape), rows.y - r

    def terms(self, rows: Rows, scale: Scale) -> Array:
        """Return b, w·e, w (n, 3)."""
        b, e = self.baseline(rows)
        w = self.weight(rows, scale)
        return np.stack([b, w * e, w], axis=1)

    def dterms(self, rows: Rows, scale: Scale) -> Array:
        """Return ∂b/∂τ, ∂w/∂τ·e, ∂w/∂τ (n, 3, d)."""
        _, e = self.baseline(rows)
        slope = self.weight_slope(rows, scale)
        return np.stack([self.baseline_slope(rows), slope * e[:, None], slope], axis=1)

    def weights(self, terms: Array) -> Array:
        """Return w (n,), the last term."""
        return terms[:, 2]

    def values(self, means: Array) -> Array:
        """Return m₀ + m₁/m₂ when self-normalized, else m₀ + m₁ (…)."""
        weighted = means[..., 1] / means[..., 2] if self.normalized else means[..., 1]
        return np.asarray(means[..., 0] + weighted)

    def gradient(self, mean: Array) -> Array:
        """Return (1, 1/m₂, −m₁/m₂²) when self-normalized, else (1, 1, 0); (…, 3)."""
        first = np.ones_like(mean)
        if not self.normalized:
            first[..., 2] = 0.0
            return first
        first[..., 1] = 1.0 / mean[..., 2]
        first[..., 2] = -mean[..., 1] / mean[..., 2] ** 2
        return first

    def hessian(self, mean: Array) -> Array:
        """Return the second derivatives of m₁/m₂ when self-normalized, else 0 (…, 3, 3)."""
        second = np.zeros((*mean.shape, 3))
        if self.normalized:
            second[..., 1, 2] = second[..., 2, 1] = -1.0 / mean[..., 2] ** 2
            second[..., 2, 2] = 2.0 * mean[..., 1] / mean[..., 2] ** 3
        return second
