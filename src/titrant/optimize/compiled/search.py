"""A whole search in compiled code, where all rows are in memory: no round goes through Python.

The objective is that of `titrant.optimize.objective`; its value and gradient take two readings of
the tape, one pass over the features each way. Arguments that come as tuples: `state`, see
`steps`; `log`, the arguments of `sums.record` after the parameters; `penalties`, the arguments of
`evaluate` after the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.compiled.decorators import compiled
from titrant.optimize.compiled.chain import estimates, penalized
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


@compiled
def evaluate(params: Array, log: Log, penalties: Penalties) -> tuple[Array, Array]:
    """Return the values (m,) and gradients (m, P) at points (m, P)."""
    return recorded(blank_tape(len(params), log[0], log[10]), params, log, penalties)


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
    tape = blank_tape(len(points), log[0], log[10])
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
    phi, rows, pairs, table = log[0], log[1], log[2], log[10]
    sums, products = record(tape, params, *log)
    z = sums[:, :k].copy()
    mean = z / n
    mean[:, 0] += center
    zz = symmetric(products, pairs, k)
    v, slopes, hessian = estimates(mean, normalized, factors[1] != 0.0)
    value, by_z, by_zz = penalized(n, v, slopes, hessian, z, zz, factors)
    gradient = replay(tape, phi, rows, pairs, table, padded(by_z), by_pair(by_zz, pairs))
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
