"""Features whose effect of the dose bends with the context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.outcome.context import ContextMap
from titrant.outcome.ridge import Basis, Features, heights, pair_products
from titrant.scaling import Standard

if TYPE_CHECKING:
    from titrant._types import Array


@dataclass(frozen=True, slots=True)
class Varying(Basis):
    """φ(x), s, all sⱼsₖ, all sⱼφ(x) and all sⱼsₖzₗ: φ of `ContextMap`, doses s and z in their sds.

    The other bases let a context tilt the curve of the dose along a line only. A loss (t − g(x))²
    with g in the span of φ, such as a bend or a product of contexts, needs sⱼφ(x).
    """

    def on(self, x: Array, t: Array) -> VaryingFeatures:
        """Return the features in units of contexts x (n, p) and doses t (n, d)."""
        return VaryingFeatures(ContextMap.of(x), Standard.of_doses(t))


@dataclass(frozen=True, slots=True)
class VaryingFeatures(Features):
    """The features in fixed units, with fixed knots and levels."""

    context: ContextMap
    dose: Standard

    def __call__(self, x: Array, t: Array) -> Array:
        """Return the features (n, F) of x (n, p) and t (n, d)."""
        phi, s = self.context(x), self.dose(t)
        squares = pair_products(s)
        z = self.context.lines(phi)
        return np.hstack([phi, _each(s, phi), s, squares, _each(squares, z)])

    def of_dose(self, t: Array) -> Array:
        """Return s and all sⱼsₖ (n, m) at doses t (n, d)."""
        s = self.dose(t)
        return np.hstack([s, pair_products(s)])

    def of_context(self, x: Array, coef: Array) -> tuple[Array, Array]:
        """Return level (n,) and heights (n, m) at x (n, p), coefficients (F,)."""
        d, width = len(self.dose.center), self.context.width
        bends, rest = np.split(coef, [(1 + d) * width])
        own, *crossed = bends.reshape(1 + d, width)
        level, z = self.context.summed(x, own)
        tilts = [self.context.summed(x, bend)[0] for bend in crossed]
        return level, np.column_stack([rest[:d] + np.stack(tilts, axis=1), heights(z, rest[d:])])


def _each(b: Array, a: Array) -> Array:
    """Return all bⱼaₖ (n, m·k), those of b₁ first."""
    return np.asarray((b[:, :, None] * a[:, None, :]).reshape(len(a), -1))
