"""Features that let the outcome jump at point masses of the dose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.data.masses import reach_of
from titrant.outcome.ridge import Basis, Features, heights
from titrant.outcome.standard import Standard

if TYPE_CHECKING:
    from titrant._types import Array


@dataclass(frozen=True, slots=True)
class Jumps(Basis):
    """The features of `basis`, and 1{t = aₖ} and its products with z for each point mass aₖ.

    Knots and units of the dose are those of the other doses: rows at a point mass count as if
    they were spread evenly over these.
    """

    basis: Basis
    at: tuple[float, ...]

    def on(self, x: Array, t: Array) -> JumpFeatures:
        """Return the features in units of contexts x (n, p), laid out over doses t (n, 1)."""
        massed = at_any(t[:, 0], self.at).any(axis=1)
        spread = t.copy()
        if not massed.all():
            ranks = (np.arange(int(massed.sum())) + 0.5) / max(int(massed.sum()), 1)
            spread[massed, 0] = np.quantile(t[~massed, 0], ranks)
        return JumpFeatures(self.basis.on(x, spread), self.at, Standard.of_contexts(x))


@dataclass(frozen=True, slots=True)
class JumpFeatures(Features):
    """The features in fixed units."""

    smooth: Features
    at: tuple[float, ...]
    context: Standard

    def __call__(self, x: Array, t: Array) -> Array:
        """Return the features (n, F) of x (n, p) and t (n, 1)."""
        jumps, z = at_any(t[:, 0], self.at), self.context(x)
        crossed = (jumps[:, :, None] * z[:, None, :]).reshape(len(z), -1)
        return np.hstack([self.smooth(x, t), jumps, crossed])

    def of_dose(self, t: Array) -> Array:
        """Return what depends on doses t (n, 1) alone (n, m)."""
        return np.hstack([self.smooth.of_dose(t), at_any(t[:, 0], self.at)])

    def of_context(self, x: Array, coef: Array) -> tuple[Array, Array]:
        """Return level (n,) and heights (n, m) at x (n, p), coefficients (F,)."""
        z = self.context(x)
        own = len(self.at) * (1 + z.shape[1])
        level, smooth = self.smooth.of_context(x, coef[:-own])
        return level, np.hstack([smooth, heights(z, coef[-own:])])


def at_any(t: Array, at: tuple[float, ...]) -> Array:
    """Return 1 where a dose (n,) is a point mass, for each of them (n, K)."""
    values = np.asarray(at)
    return np.asarray(np.abs(t[:, None] - values) <= reach_of(values), dtype=np.float64)
