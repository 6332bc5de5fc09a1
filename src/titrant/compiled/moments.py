"""Centered moments of chunks of terms, merged in order like `titrant.moments.Moments`.

Sums of a chunk are taken from the mean of the rows before it: an outcome far from zero loses no
digits, and sums have one order, whoever computes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from titrant.compiled.decorators import compiled, fast

if TYPE_CHECKING:
    from titrant._types import Array


@compiled
def add_chunk(
    terms: Array, rows: int, mean: Array, comoment: Array, n: int, sums: Array, own: Array
) -> None:
    """Merge a chunk of terms (K, ≥ rows) into the moments (lower triangle) of n rows before it.

    Terms are overwritten; sums (K,) and own (K, K) are scratch.
    """
    if n == 0:
        for a in range(len(mean)):
            mean[a] = average(terms[a][:rows])
    for a in range(len(mean)):
        sums[a] = subtract_mean(terms[a][:rows], mean[a])
        for c in range(a + 1):
            own[a, c] = product(terms[a][:rows], terms[c][:rows])
    merge(mean, comoment, n, sums, own, rows)


@compiled
def merge(mean: Array, comoment: Array, n: int, sums: Array, own: Array, rows: int) -> None:
    """Add a chunk to the moments of n rows, given its sums and products around their mean.

    With s = Σ(z − z̄) of the chunk: C ← C + Σ(z − z̄)(z − z̄)' − ss'/(n + rows), lower triangle only,
    and z̄ ← z̄ + s/(n + rows).
    """
    share = 1.0 / (n + rows)
    for a in range(len(mean)):
        for c in range(a + 1):
            comoment[a, c] += own[a, c] - sums[a] * sums[c] * share
    for a in range(len(mean)):
        mean[a] += sums[a] * share


@fast
def average(z: Array) -> float:
    """Return the mean of z (B,), taken from its first number."""
    total = 0.0
    for i in range(len(z)):
        total += z[i] - z[0]
    return float(z[0]) + total / len(z)


@fast
def subtract_mean(z: Array, mean: float) -> float:
    """Subtract ``mean`` from z (B,) and return the sum of what is left."""
    total = 0.0
    for i in range(len(z)):
        z[i] -= mean
        total += z[i]
    return total


@fast
def product(a: Array, b: Array) -> float:
    """Return Σab."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total
