"""The penalized estimate of a policy, and a whole search for the least one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.compiled.decorators import compiled
from titrant.optimize.compiled.steps import propose, receive
from titrant.optimize.compiled.sums import blank_tape, record, replay

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

    Index = NDArray[np.int64]
    Log = tuple[Any, ...]
    Penalties = tuple[tuple[int, bool, int, float], tuple[float, float, float, float], Array, Array]
    State = tuple[Array, Array, Array, Index, Array, float]
    """That of the runs, see `steps`; the limits of the set, and its radius."""

# From sums over rows to the penalized estimate of a policy search, and how it depends on them.
#
# For m candidates with k terms: values v (m,), their gradients g (m, k) and Hessians H (m, k, k) in
# the mean terms; sums z (m, k) and zz (m, k, k) over n rows.


@compiled
def estimates(mean: Array, normalized: bool, curved: bool) -> tuple[Array, Array, Array]:
    """Return m₀, or with weights m₀ + m₁ or m₀ + m₁/m₂, their gradients and Hessians.

    mean (m, k), k = 1 or 3; returns (m,), (m, k) and (m, k, k), the last empty unless `curved`.
    The same as `titrant.estimators.base`, for many candidates.
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


# A whole search in compiled code, where all rows are in memory: no round goes through Python.
#
# The objective is that of `titrant.optimize.objective`; its value and gradient take two readings of
# the tape, one pass over the features each way. Arguments that come as tuples: `state`, see
# `steps`; `log`, the arguments of `sums.fused_sums` after the parameters; `penalties`, the
# arguments of `evaluate` after the log.


@compiled
def evaluate(params: Array, log: Log, penalties: Penalties) -> tuple[Array, Array]:
    """Return the values (m,) and gradients (m, P) at points (m, P)."""
    return recorded(blank_tape(len(params), log[0]), params, log, penalties)


@compiled
def descend(
    state: State,
    tolerances: tuple[float, float, int],
    points: Array,
    index: Index,
    log: Log,
    penalties: Penalties,
) -> tuple[int, int]:
    """Take all runs to their ends; return the rounds and the evaluations it took."""
    tape = blank_tape(len(points), log[0])
    rounds = evaluations = 0
    while True:
        active = propose(*state, points, index)
        if active == 0:
            return rounds, evaluations
        f, g = recorded(tape, points[:active], log, penalties)
        receive(*state, index[:active], f, g, tolerances)
        rounds += 1
        evaluations += active


@compiled
def recorded(tape: Array, params: Array, log: Log, penalties: Penalties) -> tuple[Array, Array]:
    """Return the values (m,) and gradients (m, P) at points (m, P), by way of a tape.

    penalties are (the number of rows, whether the estimate is normalized, its number of terms, the
    center of the first), the factors of `chain.penalized`, and ridge and its center (P,).
    """
    (n, normalized, k, center), factors, ridge, ridge_center = penalties
    columns, pairs, _, how = log
    sums, products = record(tape, params, columns, pairs, how)
    z = sums[:, :k].copy()
    mean = z / n
    mean[:, 0] += center
    zz = symmetric(products, pairs, k)
    v, slopes, hessian = estimates(mean, normalized, factors[1] != 0.0)
    value, by_z, by_zz = penalized(n, v, slopes, hessian, z, zz, factors)
    gradient = replay(tape, columns, pairs, padded(by_z), by_pair(by_zz, pairs))
    add_ridge(params, ridge, ridge_center, value, gradient)
    return value, gradient


@compiled
def symmetric(products: Array, pairs: Index, k: int) -> Array:
    """Return sums over pairs of terms (m, S) as matrices (m, k, k)."""
    matrix = np.zeros((len(products), k, k))
    for j in range(len(products)):
        for s in range(len(pairs)):
            a, b = pairs[s]
            matrix[j, a, b] = matrix[j, b, a] = products[j, s]
    return matrix


@compiled
def by_pair(by_zz: Array, pairs: Index) -> Array:
    """Return slopes (m, k, k) as those of pairs (m, S): a product of two terms stands twice."""
    out = np.zeros((len(by_zz), len(pairs)))
    for j in range(len(by_zz)):
        for s in range(len(pairs)):
            a, b = pairs[s]
            out[j, s] = by_zz[j, a, b] + (by_zz[j, b, a] if a != b else 0.0)
    return out


@compiled
def padded(by_z: Array) -> Array:
    """Return slopes (m, k) as those of b, w·e and w (m, 3)."""
    out = np.zeros((len(by_z), 3))
    for j in range(len(by_z)):
        for a in range(by_z.shape[1]):
            out[j, a] = by_z[j, a]
    return out


@compiled
def add_ridge(params: Array, ridge: Array, center: Array, value: Array, gradient: Array) -> None:
    """Add Σ ridgeₖ·(βₖ − centerₖ)² to values (m,) and its slope to gradients (m, P)."""
    for j in range(len(params)):
        for k in range(len(ridge)):
            away = params[j, k] - center[k]
            value[j] += ridge[k] * away * away
            gradient[j, k] += 2.0 * ridge[k] * away
