"""The tail index of weights: how fast the largest ones grow with the number of rows.

Beyond a high threshold the excesses of almost any law look generalized Pareto with shape k. Their
mean exists for k < 1 and their variance for k < ½; in practice weighted means are reliable up to
about k = .7 (Vehtari, Simpson, Gelman, Yao & Gabry 2024, Pareto smoothed importance sampling).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from titrant._types import Array

_FEWEST = 5
"""Weights without which a tail cannot be fitted."""
_PRIOR_ROWS, _PRIOR_SHAPE = 10, 0.5
"""A weak prior, worth ten weights at k = ½, steadies the index of a short tail."""
_NEARLY_EXPONENTIAL = 1e-100
"""Stands in for θ = 0, the exponential tail, where θ/k(θ) is 0/0."""
_ROUNDING = 1e-12
"""Excesses below this share of the largest weight are rounding: the weights are equal."""


def tail_index(largest: Array, count: int) -> float | None:
    """Return k̂ of the tail of ``count`` weights, from the ``largest`` of them in decreasing order.

    The tail is the M = min(count/5, 3√count) largest, as far as they were kept; the next one is
    the threshold. None when fewer than 5 remain or when they are all equal.
    """
    size = min(int(min(0.2 * count, 3.0 * np.sqrt(count))), len(largest) - 1)
    if size < _FEWEST:
        return None
    excess = (largest[:size] - largest[size])[::-1]
    if excess[_quartile(size)] <= _ROUNDING * largest[0]:
        return None
    k = pareto_shape(excess / excess[-1])
    return float((size * k + _PRIOR_ROWS * _PRIOR_SHAPE) / (size + _PRIOR_ROWS))


def pareto_shape(x: Array) -> float:
    """Return the shape k of excesses x (n,), increasing and > 0, by Zhang & Stephens (2009).

    With θ = −k/σ the profile likelihood of n excesses is ℓ(θ) = n(log(−θ/k(θ)) − k(θ) − 1),
    k(θ) = mean log(1 − θx). The estimate is k at the posterior mean of θ over a grid of
    30 + √n quantiles of a prior set by the maximum and the first quartile of x.
    """
    n = len(x)
    m = 30 + int(np.sqrt(n))
    spread = 1.0 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))
    theta = 1.0 / x[-1] + spread / (3.0 * x[_quartile(n)])
    theta = np.where(theta == 0.0, _NEARLY_EXPONENTIAL, theta)
    k = np.log1p(-theta[:, None] * x).mean(axis=1)
    likelihood = n * (np.log(-theta / k) - k - 1.0)
    weight = np.exp(likelihood - likelihood.max())
    return float(np.log1p(-(weight @ theta / weight.sum()) * x).mean())


def _quartile(n: int) -> int:
    """Return the place of the first quartile among n increasing numbers."""
    return int(n / 4 + 0.5) - 1
