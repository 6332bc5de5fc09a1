"""The objective of a policy search: an estimate and its penalties, with the exact gradient.

    ±v̂(β) + λ·SE(β) + Σⱼ ridgeⱼ·(βⱼ − center_j)² + strength·max(0, floor/ESS(β) − 1)²

Everything is a function of the sums in `SearchStatistics`, for any number of candidates at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant._types import Array
    from titrant.estimators import Estimator
    from titrant.optimize.statistics import SearchStatistics


class Objective(ABC):
    """A function to minimize over parameters (P,), at many points at once."""

    @abstractmethod
    def __call__(self, params: Array) -> tuple[Array, Array]:
        """Return the values (m,) and gradients (m, P) at points (m, P)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyObjective(Objective):
    """The penalized estimate of a policy as a function of its parameters."""

    statistics: Callable[[Array], SearchStatistics]
    """The sums at parameters (m, P), in one pass over the rows."""
    estimator: Estimator
    maximize: bool = False
    se_weight: float = 0.0
    """λ: how many standard errors to add."""
    ridge: Array | float = 0.0
    """Penalty on each squared parameter (P,)."""
    ridge_center: Array | float = 0.0
    ess_floor: float = 0.0
    """Effective sample size below which a policy is penalized."""
    ess_strength: float = 1.0
    scale: float = 1.0
    """The unit of the outcome: value and SE are divided by it."""

    def __call__(self, params: Array) -> tuple[Array, Array]:
        """Return the values (m,) and gradients (m, P) at points (m, P)."""
        sums = self.statistics(params)
        value, gradient = self._estimate(sums)
        for penalty, slope in (self._se(sums), self._ess(sums), self._ridge(params)):
            value, gradient = value + penalty, gradient + slope
        return value, gradient

    def _estimate(self, sums: SearchStatistics) -> tuple[Array, Array]:
        """Return ±v̂ and its gradient g'·∂mean/∂β."""
        sign = (-1.0 if self.maximize else 1.0) / self.scale
        mean = sums.z / sums.n
        value = np.array([self.estimator.value(m) for m in mean])
        g = np.stack([self.estimator.gradient(m) for m in mean])
        return sign * value, sign * np.einsum("mk,mkp->mp", g, sums.dz) / sums.n

    def _se(self, sums: SearchStatistics) -> tuple[Array | float, Array | float]:
        """Return λ·SE, SE² = g'Cg/n, and its gradient λ(2(H∂mean)'Cg + g'∂C g)/(2n·SE)."""
        if not self.se_weight:
            return 0.0, 0.0
        n, mean, dmean = sums.n, sums.z / sums.n, sums.dz / sums.n
        g = np.stack([self.estimator.gradient(m) for m in mean])
        hessian = np.stack([self.estimator.hessian(m) for m in mean])
        c = sums.zz / n - mean[:, :, None] * mean[:, None, :]
        dc = sums.zdz / n - mean[:, :, None, None] * dmean[:, None, :, :]
        dc = dc + np.swapaxes(dc, 1, 2)
        cg = np.einsum("mab,mb->ma", c, g)
        se = np.sqrt(np.maximum(np.einsum("ma,ma->m", g, cg), 0.0) / n)
        inner = 2 * np.einsum("mab,mbp,ma->mp", hessian, dmean, cg)
        inner += np.einsum("ma,mabp,mb->mp", g, dc, g)
        safe = np.maximum(se, np.finfo(float).tiny)[:, None]
        weight = self.se_weight / self.scale
        return weight * se, weight * inner / (2 * n * safe)

    def _ess(self, sums: SearchStatistics) -> tuple[Array | float, Array | float]:
        """Return strength·max(0, floor·Σw²/(Σw)² − 1)² and its gradient; w is the last term."""
        if not self.ess_floor:
            return 0.0, 0.0
        w, w2 = sums.z[:, -1], sums.zz[:, -1, -1]
        dw, dw2 = sums.dz[:, -1], 2 * sums.zdz[:, -1, -1]
        total = np.maximum(w**2, np.finfo(float).tiny)
        ratio = self.ess_floor * w2 / total
        dratio = self.ess_floor * (dw2 / total[:, None] - 2 * (w2 * w / total**2)[:, None] * dw)
        short = np.maximum(ratio - 1.0, 0.0)
        return self.ess_strength * short**2, 2 * self.ess_strength * short[:, None] * dratio

    def _ridge(self, params: Array) -> tuple[Array | float, Array | float]:
        """Return Σ ridge·(β − center)² and its gradient."""
        away = params - self.ridge_center
        return np.sum(self.ridge * away**2, axis=1), 2 * self.ridge * away


@dataclass(frozen=True, slots=True)
class NumericalObjective(Objective):
    """Any function of the parameters, with central differences for its gradient."""

    function: Callable[[Array], float]
    step: float = 1e-5
    """Step relative to max(1, |β|)."""

    def __call__(self, params: Array) -> tuple[Array, Array]:
        """Return the values (m,) and numerical gradients (m, P) at points (m, P)."""
        return (
            np.array([self.function(p) for p in params]),
            np.stack([self._gradient(p) for p in params]),
        )

    def _gradient(self, params: Array) -> Array:
        steps = self.step * np.maximum(1.0, np.abs(params))
        moves = np.diag(steps)
        return np.array(
            [
                (self.function(params + move) - self.function(params - move)) / (2 * step)
                for move, step in zip(moves, steps, strict=True)
            ]
        )
