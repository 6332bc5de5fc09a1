"""The penalized estimate of policies τ = φ'β, and a whole search for the least one.

The compiled twin of `titrant.optimize.objective`, where all rows are in memory and an estimate is
b + w·e or b + w·e/w: no round of a search goes through Python. Value and gradient take two
readings of a tape, one pass over the features each way. Arguments that come as tuples: `state` and
`limits`, see `steps`; `log`, the arguments of `sums.added_sums` after the parameters; `penalties`,
which are (the number of rows, whether the estimate is normalized, the center of its first term),
the factors (sign, λ, ESS floor, its strength), and ridge and its center (P,).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.compiled.decorators import compiled
from titrant.optimize.compiled.steps import propose, receive
from titrant.optimize.compiled.sums import blank_tape, record, replay

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.optimize.compiled.steps import Index, Limits, State, Tolerances

    Log = tuple[Any, ...]
    Shape = tuple[int, bool, float]
    Factors = tuple[float, float, float, float]
    Penalties = tuple[Shape, Factors, Array, Array]


@compiled
def descend(
    state: State,
    limits: Limits,
    tolerances: Tolerances,
    points: Array,
    index: Index,
    log: Log,
    penalties: Penalties,
) -> int:
    """Take all runs to their ends; return the number of evaluations."""
    tape = blank_tape(len(points), log[0])
    evaluations = 0
    while True:
        active = propose(state, limits, points, index)
        if active == 0:
            return evaluations
        f, g = penalized_estimates(tape, points[:active], log, penalties)
        receive(state, limits, index[:active], f, g, tolerances)
        evaluations += active


@compiled
def objective(params: Array, log: Log, penalties: Penalties) -> tuple[Array, Array]:
    """Return the values (m,) and gradients (m, P) at points (m, P)."""
    return penalized_estimates(blank_tape(len(params), log[0]), params, log, penalties)


@compiled
def penalized_estimates(
    tape: Array, params: Array, log: Log, penalties: Penalties
) -> tuple[Array, Array]:
    """Do the same with a tape that is there."""
    shape, factors, ridge, ridge_center = penalties
    blocks, pairs, _, how = log
    sums = record(tape, params, blocks, pairs, how)
    value, slopes = np.zeros(len(params)), np.zeros(sums.shape)
    for j in range(len(params)):
        value[j] = penalized(sums[j], pairs, shape, factors, slopes[j])
    gradient = replay(tape, blocks, pairs, slopes)
    for j in range(len(params)):
        for k in range(len(ridge)):
            away = params[j, k] - ridge_center[k]
            value[j] += ridge[k] * away * away
            gradient[j, k] += 2.0 * ridge[k] * away
    return value, gradient


@compiled
def penalized(sums: Array, pairs: Index, shape: Shape, factors: Factors, slopes: Array) -> float:
    """Return sign·v + λ·SE + strength·max(0, floor/ESS − 1)², and set its slopes in the sums.

    sums (3 + S,) are those of b − center, w·e and w, and of the products of pairs (S, 2).
    """
    n, normalized, center = shape
    sign, weight, floor, strength = factors
    b, we, w = sums[0] / n + center, sums[1] / n, sums[2] / n
    g, bend = np.ones(3), np.zeros(2)
    if normalized:
        v = b + we / w
        g[1], g[2] = 1.0 / w, -we / (w * w)
        bend[0], bend[1] = -1.0 / (w * w), 2.0 * we / (w * w * w)
    else:
        v = b + we
        g[2] = 0.0
    value: float = sign * v
    for a in range(3):
        slopes[a] = sign * g[a] / n
    if weight != 0.0:
        value += weight * standard_error(sums, pairs, n, g, bend, weight, slopes)
    if floor != 0.0:
        value += shortage(sums, floor, strength, slopes)
    return value


@compiled
def standard_error(
    sums: Array, pairs: Index, n: int, g: Array, bend: Array, weight: float, slopes: Array
) -> float:
    """Return SE, SE² = g'Cg/n with C = zz/n − oo', o = z/n; add λ times its slopes.

    They are λ/(2n²·SE) times 2(HCg − (g'o)g) in z and gg' in zz; bend (2,) is H₁₂ and H₂₂.
    """
    level = variance = 0.0
    cg = np.zeros(3)
    for s in range(len(pairs)):
        one, two = pairs[s]
        c = sums[3 + s] / n - sums[one] / n * sums[two] / n
        cg[one] += c * g[two]
        if one != two:
            cg[two] += c * g[one]
    for a in range(3):
        level += g[a] * sums[a] / n
        variance += g[a] * cg[a]
    se = math.sqrt(max(variance, 0.0) / n)
    scale = weight / (2.0 * n * n * max(se, 1e-300))
    through = np.array([0.0, bend[0] * cg[2], bend[0] * cg[1] + bend[1] * cg[2]])
    for a in range(3):
        slopes[a] += 2.0 * scale * (through[a] - level * g[a])
    for s in range(len(pairs)):
        one, two = pairs[s]
        slopes[3 + s] += scale * g[one] * g[two] * (1.0 if one == two else 2.0)
    return se


@compiled
def shortage(sums: Array, floor: float, strength: float, slopes: Array) -> float:
    """Return strength·max(0, floor·Σw²/(Σw)² − 1)², Σw² the last of the sums; add its slopes.

    Without any weight the effective sample size is 0 and the result infinite.
    """
    w, w2 = sums[2], sums[-1]
    if w == 0.0:
        return math.inf
    short: float = floor * w2 / (w * w) - 1.0
    if not short > 0.0:
        return 0.0
    scale = 2.0 * strength * short * floor / (w * w)
    slopes[-1] += scale
    slopes[2] -= 2.0 * scale * w2 / w
    return strength * short * short
