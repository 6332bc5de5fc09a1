"""Features that are quadratic in the dose, with interactions with the context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.outcome.ridge import Basis, Features
from titrant.outcome.standard import Standard

if TYPE_CHECKING:
    from titrant._types import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Quadratic(Basis):
    """s, all sⱼsₖ, z, all sⱼzₖ, and all zⱼzₖ if there are at most `products_up_to` contexts.

    z and s are context and dose in their own standard deviations. A loss (t − g(x))² with linear
    g lies in their span.
    """

    products_up_to: int = 15

    def __post_init__(self) -> None:
        _check.count(self.products_up_to, "products_up_to", "Quadratic", at_least=0)

    def on(self, x: Array, t: Array) -> QuadraticFeatures:
        """Return the features in units of contexts x (n, p) and doses t (n, d)."""
        products = x.shape[1] <= self.products_up_to
        return QuadraticFeatures(Standard.of_contexts(x), Standard.of_doses(t), products)


@dataclass(frozen=True, slots=True)
class QuadraticFeatures(Features):
    """The features in fixed units."""

    context: Standard
    dose: Standard
    products: bool

    def __call__(self, x: Array, t: Array) -> Array:
        """Return the features (n, F) of x (n, p) and t (n, d)."""
        z, s = self.context(x), self.dose(t)
        crossed = (s[:, :, None] * z[:, None, :]).reshape(len(z), -1)
        squares = [_products(z)] if self.products else []
        return np.hstack([s, _products(s), z, crossed, *squares])

    def curve(self, x: Array, t: Array, coef: Array) -> Array:
        """Return b'f(xᵢ, tⱼ) (n, G) of coefficients b (F,), contexts x (n, p), doses t (G, 1)."""
        z, s = self.context(x), self.dose(t)[:, 0]
        p = z.shape[1]
        (slope, bend), own, crossed, rest = np.split(coef, [2, 2 + p, 2 + 2 * p])
        level = z @ own + (_products(z) @ rest if self.products else 0.0)
        return np.asarray(level[:, None] + np.outer(slope + z @ crossed, s) + bend * s**2)


def _products(a: Array) -> Array:
    """Return all aⱼaₖ, j ≤ k (n, k(k+1)/2)."""
    j, k = np.triu_indices(a.shape[1])
    return a[:, j] * a[:, k]
