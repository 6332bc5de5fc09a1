"""Features that bend with the context as well as with the dose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.outcome.context import ContextMap, extra_columns
from titrant.outcome.ridge import Basis, Features, bends, heights, quantile_knots
from titrant.outcome.standard import Standard

if TYPE_CHECKING:
    from titrant._types import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothContext(Basis):
    """φ(x), b(s) and all bⱼ(s)zₖ: φ of `ContextMap`, b the splines of `Spline`.

    The last `extra` columns of x, predictions that `FoldForests` appends, enter as they are, alone
    and in the place of a z.
    """

    knots: int = 5
    extra: int = 0

    def __post_init__(self) -> None:
        _check.count(self.knots, "knots", "SmoothContext", at_least=3)
        _check.count(self.extra, "extra", "SmoothContext", at_least=0)

    def on(self, x: Array, t: Array) -> SmoothFeatures:
        """Return the features in units of contexts x (n, p), knots laid out over doses t (n, d)."""
        dose = Standard.of_doses(t)
        knots = tuple(quantile_knots(s, self.knots) for s in dose(t).T)
        extra = extra_columns(self.extra, x, "SmoothContext")
        return SmoothFeatures(ContextMap.of(x, extra), dose, knots)


@dataclass(frozen=True, slots=True)
class SmoothFeatures(Features):
    """The features in fixed units, with fixed knots and levels."""

    context: ContextMap
    dose: Standard
    knots: tuple[Array, ...]
    """The knots of each dose."""

    def __call__(self, x: Array, t: Array) -> Array:
        """Return the features (n, F) of x (n, p) and t (n, d)."""
        phi, b = self.context(x), self.of_dose(t)
        crossed = (b[:, :, None] * self.context.lines(phi)[:, None, :]).reshape(len(phi), -1)
        return np.hstack([phi, b, crossed])

    def of_dose(self, t: Array) -> Array:
        """Return the splines b (n, m) at doses t (n, d)."""
        return bends(self.dose(t), self.knots)

    def of_context(self, x: Array, coef: Array) -> tuple[Array, Array]:
        """Return level (n,) and heights (n, m) at x (n, p), coefficients (F,)."""
        own, of_dose = np.split(coef, [self.context.width])
        level, z = self.context.summed(x, own)
        return level, heights(z, of_dose)
