"""From sums over rows to the penalized estimate of a policy search, and how it depends on them.

For m candidates with k terms: values v (m,), their gradients g (m, k) and Hessians H (m, k, k) in
the mean terms; sums z (m, k) and zz (m, k, k) over n rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled

if TYPE_CHECKING:
    from titrant._types import Array


@compiled
def estimates(mean: Array, normalized: bool, curved: bool) -> tuple[Array, Array, Array]:
    """Return m₀, or with weights m₀ + m₁ or m₀ + m₁/m₂, their gradients and Hessians.

    mean (m, k), k = 1 or 3; returns (m,), (m, k) and (m, k, k), the last empty unless `curved`.
    The same as `titrant.estimators.weighted`, for many candidates.
    """
    m, k = mean.shape
    v, g = mean[:, 0].copy(), np.ones((m, k))
    hessian = np.zeros((m, k, k)) if curved else np.zeros((0, 0, 0))
    for j in range(m if k > 1 else 0):
        one, two = mean[j, 1], mean[j, 2]
        if not normalized:
            v[j] += one
            g[j, 2] = 0.0
            continue
        v[j] += one / two
        g[j, 1], g[j, 2] = 1.0 / two, -one / (two * two)
        if curved:
            hessian[j, 1, 2] = hessian[j, 2, 1] = -1.0 / (two * two)
            hessian[j, 2, 2] = 2.0 * one / (two * two * two)
    return v, g, hessian


@compiled
def penalized(
    n: int,
    v: Array,
    g: Array,
    hessian: Array,
    z: Array,
    zz: Array,
    factors: tuple[float, float, float, float],
) -> tuple[Array, Array, Array]:
    """Return sign·v + λ·SE + strength·max(0, floor/ESS − 1)² and its slopes in z and zz.

    factors are the sign, λ, the floor and its strength. Returns (m,), (m, k) and (m, k, k).
    """
    sign, weight, floor, strength = factors
    value, by_z, by_zz = np.zeros(len(v)), np.zeros(g.shape), np.zeros(zz.shape)
    for j in range(len(v)):
        value[j] = sign * v[j]
        for a in range(g.shape[1]):
            by_z[j, a] = sign * g[j, a] / n
        if weight != 0.0:
            value[j] += standard_error(weight, n, g, hessian, z, zz, j, by_z, by_zz)
        if floor != 0.0:
            value[j] += shortage(strength, floor, z, zz, j, by_z, by_zz)
    return value, by_z, by_zz


@compiled
def standard_error(
    weight: float,
    n: int,
    g: Array,
    hessian: Array,
    z: Array,
    zz: Array,
    j: int,
    by_z: Array,
    by_zz: Array,
) -> float:
    """Return λ·SE of candidate j, SE² = g'Cg/n with C = zz/n − oo', o = z/n; add its slopes.

    They are λ/(2n²·SE) times 2(HCg − (g'o)g) in z and gg' in zz.
    """
    k = g.shape[1]
    level = variance = 0.0
    cg = np.zeros(k)
    for a in range(k):
        level += g[j, a] * z[j, a] / n
        for b in range(k):
            cg[a] += (zz[j, a, b] / n - z[j, a] / n * z[j, b] / n) * g[j, b]
        variance += g[j, a] * cg[a]
    se = math.sqrt(max(variance, 0.0) / n)
    scale = weight / (2.0 * n * n * max(se, 1e-300))
    for a in range(k):
        through_g = 0.0
        for b in range(k):
            through_g += hessian[j, a, b] * cg[b]
            by_zz[j, a, b] += scale * g[j, a] * g[j, b]
        by_z[j, a] += 2.0 * scale * (through_g - level * g[j, a])
    return weight * se


@compiled
def shortage(
    strength: float, floor: float, z: Array, zz: Array, j: int, by_z: Array, by_zz: Array
) -> float:
    """Return strength·max(0, floor·Σw²/(Σw)² − 1)², w the last term; add its slopes.

    Without any weight the effective sample size is 0 and the result infinite.
    """
    w, w2 = z[j, -1], zz[j, -1, -1]
    if w == 0.0:
        return math.inf
    short: float = floor * w2 / (w * w) - 1.0
    if not short > 0.0:
        return 0.0
    scale = 2.0 * strength * short * floor / (w * w)
    by_zz[j, -1, -1] += scale
    by_z[j, -1] -= 2.0 * scale * w2 / w
    return strength * short * short
