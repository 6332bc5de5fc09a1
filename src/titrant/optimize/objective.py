"""The objective of a policy search: an estimate and its penalties, with the exact gradient.

    ±v̂(β) + λ·SE(β) + Σⱼ ridgeⱼ·(βⱼ − center_j)² + strength·max(0, floor/ESS(β) − 1)²

Everything is a function of the sums in `SearchStatistics`, for any number of candidates at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache
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
from titrant.optimize.sums import AffineSearch, Second

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant._types import Array
    from titrant.estimators import Estimator
    from titrant.optimize.sums import SearchStatistics

_NONE = np.zeros((0, 0, 0))


@cache
def compiled_chain() -> Callable[..., tuple[Array, Array, Array]]:
    """Return the compiled chain rule, which loads numba; looked up once."""
    from titrant.optimize.compiled.search import penalized  # noqa: PLC0415

    return penalized


@cache
def compiled_evaluate() -> Callable[..., tuple[Array, Array]]:
    """Return the compiled objective of rows in memory, which loads numba; looked up once."""
    from titrant.optimize.compiled.search import evaluate  # noqa: PLC0415

    return evaluate


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

    statistics: Callable[[Array], SearchStatistics]
    """The sums at parameters (m, P), in one pass over the rows."""
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
        if isinstance(self.statistics, AffineSearch) and self.statistics.second < needed:
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
            return compiled_evaluate()(np.ascontiguousarray(params), *self._in_memory)
        sums = self.statistics(params)
        mean = sums.mean
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            values, slopes = values_of(self.estimator, mean), self.estimator.gradient(mean)
            hessian = self.estimator.hessian(mean) if self.se_weight else _NONE
            value, by_z, by_zz = compiled_chain()(
                sums.n, values, slopes, hessian, sums.z, sums.zz, self._factors
            )
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
    def _factors(self) -> tuple[float, float, float, float]:
        """The sign, λ, the floor and its strength."""
        sign = -1.0 if self.maximize else 1.0
        weight = self.se_weight / self.scale
        return sign / self.scale, weight, float(self.ess_floor), float(self.ess_strength)

    def _compiled(self) -> tuple[Any, ...] | None:
        search, estimator = self.statistics, self.estimator
        known = has_common_value(estimator) or has_search_loop(estimator)
        if not (known and isinstance(search, AffineSearch) and search.fits_in_memory):
            return None
        n, size = search.phi.shape
        normalized = is_ratio(estimator)
        terms = (n, normalized, estimator.size, float(search.center))
        ridge = [np.array(np.broadcast_to(a, size)) for a in (self.ridge, self.ridge_center)]
        return search.packed, (terms, self._factors, *ridge)
