"""Features that bend freely with the dose and are linear beyond the outer knots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.outcome.ridge import Basis, Features
from titrant.outcome.standard import APART, Standard

if TYPE_CHECKING:
    from titrant._types import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Spline(Basis):
    """z, b(s) and all bⱼ(s)zₖ, b the cubic splines of the dose that are linear beyond the knots.

    bⱼ is 1 at the j-th knot and 0 at the others, so the ridge is on the heights of the curve and
    knows no left from right. Knots lie at equally spaced quantiles of the logged doses, from 5 %
    to 95 % (for 5 knots the usual choice, Harrell 2001). Several doses get a spline each, added up.
    """

    knots: int = 5

    def __post_init__(self) -> None:
        _check.count(self.knots, "knots", "Spline", at_least=3)

    def on(self, x: Array, t: Array) -> SplineFeatures:
        """Return the features in units of contexts x (n, p), knots laid out over doses t (n, d)."""
        dose = Standard.of_doses(t)
        knots = tuple(quantile_knots(s, self.knots) for s in dose(t).T)
        return SplineFeatures(Standard.of_contexts(x), dose, knots)


@dataclass(frozen=True, slots=True)
class SplineFeatures(Features):
    """The features in fixed units, with fixed knots."""

    context: Standard
    dose: Standard
    knots: tuple[Array, ...]
    """The knots of each dose."""

    def __call__(self, x: Array, t: Array) -> Array:
        """Return the features (n, F) of x (n, p) and t (n, d)."""
        z, b = self.context(x), self._bends(t)
        return np.hstack([z, b, (b[:, :, None] * z[:, None, :]).reshape(len(z), -1)])

    def curve(self, x: Array, t: Array, coef: Array) -> Array:
        """Return b'f(xᵢ, tⱼ) (n, G) of coefficients b (F,), contexts x (n, p), doses t (G, 1)."""
        z, b = self.context(x), self._bends(t)
        p, m = z.shape[1], b.shape[1]
        own, bend, crossed = np.split(coef, [p, p + m])
        heights = bend + z @ crossed.reshape(m, p).T
        return (z @ own)[:, None] + heights @ b.T

    def _bends(self, t: Array) -> Array:
        return bends(self.dose(t), self.knots)


def bends(s: Array, knots: tuple[Array, ...]) -> Array:
    """Return the splines of all doses s (n, d), side by side; `knots` are those of each dose."""
    return np.hstack([cardinal(s[:, j], of_dose) for j, of_dose in enumerate(knots)])


def cardinal(s: Array, knots: Array) -> Array:
    """Return at s (n,) the restricted cubic splines that are 1 at one knot, 0 at the rest (n, m).

    With fewer than three knots, s itself (n, 1): too few distinct doses to bend.
    """
    if len(knots) < 3:  # noqa: PLR2004
        return s[:, None]
    splines = np.linalg.solve(restricted_cubic(knots, knots).T, restricted_cubic(s, knots).T)
    return np.asarray(splines.T, dtype=np.float64)


def restricted_cubic(s: Array, knots: Array) -> Array:
    """Return the restricted cubic spline basis at s (n,) with knots k₁ < … < k_m (n, m).

    With (·)₊³ the cube of the positive part, l = k_{m−1} and k = k_m: 1, s, and for j = 1 … m − 2

        [(s − kⱼ)₊³ − (s − l)₊³(k − kⱼ)/(k − l) + (s − k)₊³(l − kⱼ)/(k − l)] / (k − k₁)²,

    which is 0 below kⱼ and a straight line above k.
    """
    cubes = np.maximum(s[:, None] - knots, 0.0) ** 3
    first, (near, last) = knots[:-2], knots[-2:]
    tail = cubes[:, [-1]] * (near - first) - cubes[:, [-2]] * (last - first)
    bends = (cubes[:, :-2] + tail / (last - near)) / (last - knots[0]) ** 2
    return np.column_stack([np.ones(len(s)), s, bends])


def quantile_knots(s: Array, number: int) -> Array:
    """Return distinct knots at quantiles of s (n,), or the doses themselves if there are as few."""
    doses = np.unique(s)
    few = len(doses) <= number
    knots = doses if few else np.quantile(s, np.linspace(0.05, 0.95, number))
    apart: Array = knots[1:][np.diff(knots) > APART]
    return np.append(knots[0], apart)
