"""Features that bend with the context as well as with the dose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.outcome.context import ContextMap, extra_columns
from titrant.outcome.ridge import Basis, Features, bends, quantile_knots
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
        z, b = self.context.lines(x), bends(self.dose(t), self.knots)
        crossed = (b[:, :, None] * z[:, None, :]).reshape(len(z), -1)
        return np.hstack([self.context(x), b, crossed])

    def curve(self, x: Array, t: Array, coef: Array) -> Array:
        """Return b'f(xᵢ, tⱼ) (n, G) of coefficients b (F,), contexts x (n, p), doses t (G, 1)."""
        phi, z = self.context(x), self.context.lines(x)
        b = bends(self.dose(t), self.knots)
        (f, p), m = (phi.shape[1], z.shape[1]), b.shape[1]
        own, bend, crossed = np.split(coef, [f, f + m])
        heights = bend + z @ crossed.reshape(m, p).T
        return np.asarray((phi @ own)[:, None] + heights @ b.T)
