"""The objective of a policy search: an estimate and its penalties, with the exact gradient.

    ±v̂(β) + λ·SE(β) + Σⱼ ridgeⱼ·(βⱼ − center_j)² + strength·max(0, floor/ESS(β) − 1)²

Everything is a function of the sums in `SearchStatistics`, for any number of candidates at once.
`titrant.optimize.compiled.search` is its compiled twin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant.estimators.form import (
    has_common_value,
    has_search_loop,
    has_weighted_terms,
    is_ratio,
    values_of,
)
from titrant.optimize.sums import Second

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators import Estimator
    from titrant.optimize.sums import SearchStatistics, SearchSums

    Factors = tuple[float, float, float, float]


class Objective(ABC):
    """A function to minimize over parameters (P,), at many points at once."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, params: Array) -> tuple[Array, Array]:
        """Return the values (m,) and gradients (m, P) at points (m, P)."""

    @property
    def in_memory(self) -> tuple[Any, ...] | None:
        """Rows and penalties as `compiled.search` takes them, where it can do a whole search."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyObjective(Objective):
    """The penalized estimate of a policy as a function of its parameters."""

    statistics: SearchSums
    estimator: Estimator
    maximize: bool = False
    se_weight: float = 0.0
    """λ: how many standard errors to add."""
    ridge: Array | float = 0.0
    """Penalty on each squared parameter: a number, or (P,)."""
    ridge_center: Array | float = 0.0
    ess_floor: float = 0.0
    """Effective sample size below which a policy is penalized."""
    ess_strength: float = 1.0
    scale: float = 1.0
    """The unit of the outcome: value and SE are divided by it."""
    _in_memory: tuple[Any, ...] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("se_weight", "ess_floor", "ess_strength"):
            _check.nonnegative(getattr(self, name), name, "PolicyObjective")
        _check.positive(self.scale, "scale", "PolicyObjective")
        if self.ess_floor and not has_weighted_terms(self.estimator):
            rule = "an estimator with weights beside an `ess_floor`"
            raise _check.invalid("estimator", "PolicyObjective", rule, self.estimator)
        needed = Second.ALL if self.se_weight else Second(int(self.ess_floor > 0))
        if self.statistics.second < needed:
            rule = f"a search with `second=Second.{needed.name}` for these penalties"
            raise _check.invalid("statistics", "PolicyObjective", rule, self.statistics.second)
        for name in ("ridge", "ridge_center"):
            values = _check.finite_array(getattr(self, name), name, "PolicyObjective", ndim=(0, 1))
            object.__setattr__(self, name, np.atleast_1d(values))
        object.__setattr__(self, "_in_memory", self._compiled())

    def __call__(self, params: Array) -> tuple[Array, Array]:
        """Return the values (m,) and gradients (m, P) at points (m, P).

        Where no row is near a policy, an estimate may not exist: its value is then not finite.
        """
        if self._in_memory is not None:
            from titrant.optimize.compiled.search import objective  # noqa: PLC0415  (numba)

            return objective(np.ascontiguousarray(params), *self._in_memory)
        sums = self.statistics(params)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value, by_z, by_zz = penalized(sums, self.estimator, self._factors)
            gradient = sums.pull(by_z, by_zz)
        if np.any(self.ridge):
            away = params - self.ridge_center
            value = value + np.sum(self.ridge * away**2, axis=1)
            gradient = gradient + 2.0 * self.ridge * away
        return value, gradient

    @property
    def in_memory(self) -> tuple[Any, ...] | None:
        """Rows and penalties as `compiled.search` takes them, where it can do a whole search."""
        return self._in_memory

    @property
    def _factors(self) -> Factors:
        """The sign, λ, the floor and its strength."""
        sign = -1.0 if self.maximize else 1.0
        weight = self.se_weight / self.scale
        return sign / self.scale, weight, float(self.ess_floor), float(self.ess_strength)

    def _compiled(self) -> tuple[Any, ...] | None:
        rows, estimator = self.statistics.in_memory, self.estimator
        if rows is None or not (has_common_value(estimator) or has_search_loop(estimator)):
            return None
        packed, (n, size, center) = rows
        ridge = [np.array(np.broadcast_to(a, size)) for a in (self.ridge, self.ridge_center)]
        return packed, ((n, is_ratio(estimator), center), self._factors, *ridge)


def penalized(
    sums: SearchStatistics, estimator: Estimator, factors: Factors
) -> tuple[Array, Array, Array]:
    """Return sign·v + λ·SE + strength·max(0, floor/ESS − 1)² and its slopes in Σz and Σzz'.

    With g and H the gradient and the Hessian of v in the mean terms, o = z/n and C = zz/n − oo':
    SE² = g'Cg/n, whose slopes are 2(HCg − (g'o)g)/n² in z and gg'/n² in zz. ESS = (Σw)²/Σw², w the
    last term. factors are the sign, λ, the floor and its strength; returns (m,), (m, k), (m, k, k).
    """
    sign, weight, floor, strength = factors
    n, mean = sums.n, sums.mean
    g = estimator.gradient(mean)
    value, by_z, by_zz = sign * values_of(estimator, mean), sign * g / n, np.zeros_like(sums.zz)
    if weight:
        o = sums.z / n
        cg = np.sum((sums.zz / n - o[:, :, None] * o[:, None]) * g[:, None], axis=2)
        se = np.sqrt(np.maximum(np.sum(g * cg, axis=1), 0.0) / n)
        scale = (weight / (2.0 * n * n * np.maximum(se, 1e-300)))[:, None]
        hcg = np.sum(estimator.hessian(mean) * cg[:, None], axis=2)
        value = value + weight * se
        by_z = by_z + 2.0 * scale * (hcg - np.sum(g * o, axis=1, keepdims=True) * g)
        by_zz = scale[:, :, None] * g[:, :, None] * g[:, None]
    if floor:
        w, w2 = sums.z[:, -1], sums.zz[:, -1, -1]
        # Without any weight the effective sample size is 0.
        short = np.where(w == 0.0, np.inf, np.maximum(floor * w2 / w**2 - 1.0, 0.0))
        scale = np.where(w == 0.0, 0.0, 2.0 * strength * short * floor / w**2)
        value = value + np.where(w == 0.0, np.inf, strength * short**2)
        by_zz[:, -1, -1] += scale
        by_z[:, -1] -= np.where(w == 0.0, 0.0, 2.0 * scale * w2 / w)
    return value, by_z, by_zz
