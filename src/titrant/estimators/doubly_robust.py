"""The paper's v DR: an outcome model, corrected by the weighted residuals it leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from titrant import _check
from titrant.estimators.base import Estimator
from titrant.estimators.weight import check_smoothing, weight, weight_slope
from titrant.kernels import Boundary, Epanechnikov, Kernel

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class DoublyRobust(Estimator):
    """v̂ = mean r̂(τ, x) + mean(w·e), or + Σw·e/Σw when self-normalized; e = y − r̂(t, x).

    ``outcome`` is a model r̂(t, x), never an array: two predictions are needed, at the policy's
    and at the logged dose. Any scikit-learn regressor of the columns (x, t) will do; None is the
    stacked library. It is cross-fitted over ``folds``, drawn by ``seed``.
    """

    outcome: object = None
    folds: int = 5
    self_normalized: bool = True
    kernel: Kernel = field(default_factory=Epanechnikov)
    clip: float | None = None
    boundary: Boundary = Boundary.LINEAR
    seed: int = 0

    uses_outcome_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_smoothing(self.kernel, self.clip, self.boundary, "DoublyRobust")
        _check.count(self.folds, "folds", "DoublyRobust")

    @property
    def size(self) -> int:
        """Three terms when self-normalized, else one."""
        return 3 if self.self_normalized else 1

    @property
    def centers(self) -> bool:
        """Never: residuals have no distant zero."""
        return False

    def terms(self, rows: Rows, scale: Scale) -> Array:
        """Return r̂(τ,x), w·e, w (n, 3), or their un-normalized sum r̂(τ,x) + w·e (n, 1)."""
        w = weight(rows, self.kernel, self.boundary, scale)
        r_tau, e = rows.need("r_tau", "DoublyRobust"), residual(rows)
        if self.self_normalized:
            return np.stack([r_tau, w * e, w], axis=1)
        return (r_tau + w * e)[:, None]

    def dterms(self, rows: Rows, scale: Scale) -> Array:
        """Return the slopes of the terms in τ (n, k, d)."""
        _, slope = weight_slope(rows, self.kernel, self.boundary, scale)
        r_slope, e = rows.need("r_slope", "DoublyRobust"), residual(rows)[:, None]
        if self.self_normalized:
            return np.stack([r_slope, slope * e, slope], axis=1)
        return (r_slope + slope * e)[:, None, :]

    def value(self, mean: Array) -> float:
        """Return m₀ + m₁/m₂, or m₀."""
        return float(mean[0] + mean[1] / mean[2] if self.self_normalized else mean[0])

    def gradient(self, mean: Array) -> Array:
        """Return (1, 1/m₂, −m₁/m₂²), or 1."""
        if not self.self_normalized:
            return np.ones_like(mean)
        return np.array([1.0, 1.0 / mean[2], -mean[1] / mean[2] ** 2])


def residual(rows: Rows) -> Array:
    """Return e = y − r̂(t, x) (n,)."""
    return rows.y - rows.need("r_logged", "DoublyRobust")
