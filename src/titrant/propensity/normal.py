"""Mixtures of normals: the one family in which this room's scalar models speak.

Linear-Gaussian, heteroscedastic, mixture, residual-KDE and kernel models differ only in how
the weights, means and standard deviations depend on the context, so density, distribution
function, probability of an interval and sampling are written once, here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr, ndtr

if TYPE_CHECKING:
    from titrant._types import Array

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_FEW = 6


@dataclass(frozen=True, slots=True)
class NormalMixture:
    """The law of T for n rows: f(t) = Σ_k w_k φ((t − m_k)/s_k)/s_k.

    `log_weights`, `means` and `sds` broadcast to (n, K); the weights of a row sum to 1.
    """

    log_weights: Array
    means: Array
    sds: Array

    def log_density(self, t: Array) -> Array:
        """Return log f(t), (n,): exact far into the tails, −inf at ±inf."""
        return log_sum_exp(self.log_joint(t))

    def log_joint(self, t: Array) -> Array:
        """Return log(w_k φ((t − m_k)/s_k)/s_k), (n, K): each component's part of the density."""
        z = self._standardize(t)
        return np.asarray(self.log_weights - 0.5 * z * z - np.log(self.sds) - _LOG_SQRT_2PI)

    def cdf(self, t: Array) -> Array:
        """Return F(t) = Σ_k w_k Φ((t − m_k)/s_k), (n,)."""
        total = np.sum(np.exp(self.log_weights) * ndtr(self._standardize(t)), axis=1)
        return np.asarray(np.minimum(total, 1.0), dtype=np.float64)

    def log_probability(self, lower: Array, upper: Array) -> Array:
        """Return log P(lower < T ≤ upper), (n,), without cancellation in either tail."""
        a, b = self._standardize(lower), self._standardize(upper)
        return log_sum_exp(self.log_weights + log_normal_interval(a, b))

    def sample(self, uniform: Array, normal: Array) -> Array:
        """Return one draw a row, (n,), from `uniform` (which component) and `normal` (where)."""
        n, width = len(uniform), np.shape(self.means)[1]
        reached = np.cumsum(np.broadcast_to(np.exp(self.log_weights), (n, width)), axis=1)
        # Weights sum to 1 up to rounding: the last component takes what rounding leaves over.
        pick = np.sum(reached[:, :-1] < uniform[:, None], axis=1)
        row = np.arange(n)
        means, sds = np.broadcast_to(self.means, (n, width)), np.broadcast_to(self.sds, (n, width))
        return np.asarray(means[row, pick] + sds[row, pick] * normal, dtype=np.float64)

    def _standardize(self, t: Array) -> Array:
        return np.asarray((t[:, None] - self.means) / self.sds, dtype=np.float64)


def log_normal_interval(a: Array, b: Array) -> Array:
    """Return log(Φ(b) − Φ(a)) for a ≤ b, elementwise, accurate in both tails.

    An interval on the right is mirrored to the left, where Φ keeps relative precision; one that
    straddles 0 is 1 minus its two outer tails.
    """
    right = a > 0.0
    a, b = np.where(right, -b, a), np.where(right, -a, b)
    straddles = (a < 0.0) & (b > 0.0)
    # `errstate`: an empty interval is log 0, and an infinite tail a harmless 0 · inf.
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = log_ndtr(b) + np.log1p(-np.exp(np.minimum(log_ndtr(a) - log_ndtr(b), 0.0)))
        middle = np.log1p(-np.minimum(ndtr(a) + ndtr(-b), 1.0))
    return np.where(a == b, -np.inf, np.where(straddles, middle, tail))


def log_sum_exp(values: Array) -> Array:
    """Return log Σ_k exp(values_k) of each row of an (n, K) array; −inf where all are −inf."""
    top = _along_rows(np.maximum, values)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(_along_rows(np.add, np.exp(values - shift[:, None])))
    return np.asarray(shift + total, dtype=np.float64)


def _along_rows(combine: np.ufunc, values: Array) -> Array:
    """Return each row of an (n, K) array combined into one number (n,)."""
    if values.shape[1] > _FEW:
        return np.asarray(combine.reduce(values, axis=1), dtype=np.float64)
    # Column by column: numpy's own way along short rows takes ten times as long. Few numbers are
    # added in the same order, so to the same bits.
    total = values[:, 0]
    for k in range(1, values.shape[1]):
        total = combine(total, values[:, k])
    return np.asarray(total, dtype=np.float64)
