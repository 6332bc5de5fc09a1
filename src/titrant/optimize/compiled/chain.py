"""The chain rule from sums over rows to the penalized estimate of a policy search.

For m candidates with k terms and P parameters: values v (m,), their gradients g (m, k) and
Hessians H (m, k, k) in the mean terms; sums z (m, k) and zz (m, k, k) over n rows, with their
slopes dz (m, k, P) and dzz (m, k, k, P).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from titrant.optimize.compiled.decorators import compiled

if TYPE_CHECKING:
    from titrant._types import Array


@compiled
def penalized(
    params: Array,
    n: int,
    v: Array,
    g: Array,
    hessian: Array,
    z: Array,
    dz: Array,
    zz: Array,
    dzz: Array,
    factors: tuple[float, float, float, float],
    ridge: Array,
    center: Array,
) -> tuple[Array, Array]:
    """Return sign·v + λ·SE + strength·max(0, floor/ESS − 1)² + Σ ridge·(β − center)², and ∂/∂β.

    factors are the sign, λ, the floor and its strength; ridge and center are (P,) or (1,).
    Returns (m,) and (m, P).
    """
    sign, weight, floor, strength = factors
    m, p = params.shape
    value, slope = np.zeros(m), np.zeros((m, p))
    for j in range(m):
        value[j] = sign * v[j]
        for a in range(g.shape[1]):
            add(slope[j], sign * g[j, a] / n, dz[j, a])
        if weight != 0.0:
            value[j] += standard_error(
                slope[j], weight, n, g[j], hessian[j], z[j], dz[j], zz[j], dzz[j]
            )
        if floor != 0.0:
            value[j] += shortage(slope[j], strength, floor, z[j], dz[j], zz[j], dzz[j])
        for i in range(p):
            strength_i, away = ridge[i % len(ridge)], params[j, i] - center[i % len(center)]
            value[j] += strength_i * away * away
            slope[j, i] += 2.0 * strength_i * away
    return value, slope


@compiled
def add(out: Array, factor: float, vector: Array) -> None:
    """Add factor·vector to out."""
    for i in range(len(out)):
        out[i] += factor * vector[i]


@compiled
def standard_error(
    slope: Array,
    weight: float,
    n: int,
    g: Array,
    hessian: Array,
    z: Array,
    dz: Array,
    zz: Array,
    dzz: Array,
) -> float:
    """Return λ·SE, SE² = g'Cg/n, and add its gradient λ(2(H∂mean)'Cg + g'∂Cg)/(2n·SE).

    C = zz/n − oo', o = z/n, so that g'∂Cg = g'(∂zz/n)g − 2(g'o)(g'∂o).
    """
    k = len(g)
    level = variance = 0.0
    cg = np.zeros(k)
    for a in range(k):
        level += g[a] * z[a] / n
        for b in range(k):
            cg[a] += (zz[a, b] / n - z[a] / n * z[b] / n) * g[b]
        variance += g[a] * cg[a]
    se = math.sqrt(max(variance, 0.0) / n)
    scale = weight / (2.0 * n * max(se, 1e-300))
    for a in range(k):
        through_g = 0.0
        for b in range(k):
            through_g += hessian[a, b] * cg[b]
            add(slope, scale * g[a] * g[b] / n, dzz[a, b])
        add(slope, 2.0 * scale * (through_g - level * g[a]) / n, dz[a])
    return weight * se


@compiled
def shortage(
    slope: Array,
    strength: float,
    floor: float,
    z: Array,
    dz: Array,
    zz: Array,
    dzz: Array,
) -> float:
    """Return strength·max(0, floor·Σw²/(Σw)² − 1)², w the last term, and add its gradient.

    Without any weight the effective sample size is 0 and the result infinite.
    """
    w, w2 = z[-1], zz[-1, -1]
    if w == 0.0:
        return math.inf
    short: float = floor * w2 / (w * w) - 1.0
    if not short > 0.0:
        return 0.0
    scale = 2.0 * strength * short * floor / (w * w)
    add(slope, scale, dzz[-1, -1])
    add(slope, -2.0 * scale * w2 / w, dz[-1])
    return strength * short * short
