"""Moments of terms and the tally of weights of many rows, in one reading of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast, listed
from titrant.compiled.weights import (
    CHUNK,
    PLAIN,
    constants,
    correct,
    far_weight,
    flag_near,
    ranges,
    set_shapes,
    write_terms,
)

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.compiled.decorators import Flags, Index
    from titrant.compiled.weights import Columns, Constants, Form, Outcomes

    Some = tuple[Array, Array, Array, Array, float]
    """t, τ, q, e and the level that e is measured from."""
    Inner = tuple[float, float, Flags]
    """Doses below the first, above the second or marked are near a bound."""

# Centered moments of chunks of terms, merged in order like `titrant.moments.Moments`.
#
# Sums of a chunk are taken from the mean of the rows before it: an outcome far from zero loses no
# digits, and sums have one order, whoever computes them.


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


# A tally of the weights of a stream of chunks; the largest cost one comparison a row.


@compiled
def tally_weights(
    w: Array,
    tally: Array,
    pool: Array,
    size: int,
    limit: float,
    kept: int,
    flags: Flags,
    which: Index,
) -> tuple[int, float]:
    """Add weights (B,) to a tally (3,) and a pool of the largest; return its size and limit."""
    if add_weights(w, limit, tally) > 0:
        return collect(w, pool, size, limit, kept, flags, which)
    return size, limit


@fast
def add_weights(w: Array, limit: float, tally: Array) -> float:
    """Add Σ|w|, Σw⁴ and the count of w ≠ 0 to tally (3,); return how many |w| exceed the limit."""
    absolute = fourths = count = above = 0.0
    for i in range(len(w)):
        size, square = abs(w[i]), w[i] * w[i]
        absolute += size
        fourths += square * square
        count += 1.0 if size != 0.0 else 0.0
        above += 1.0 if size > limit else 0.0
    tally[0] += absolute
    tally[1] += fourths
    tally[2] += count
    return above


@compiled
def collect(
    w: Array, pool: Array, size: int, limit: float, kept: int, flags: Flags, which: Index
) -> tuple[int, float]:
    """Add the |w| (B,) above ``limit`` to the pool; return its size and the new limit.

    The pool has room for 2·kept + B; the limit is the least of the ``kept`` largest so far, as of
    when others were dropped last. flags and which (≥ B,) are scratch.
    """
    _flag(w, limit, flags)
    for j in range(listed(flags, len(w), which)):
        pool[size] = abs(w[which[j]])
        size += 1
    return keep_largest(pool, size, limit, kept)


@compiled
def keep_largest(pool: Array, size: int, limit: float, kept: int) -> tuple[int, float]:
    """Drop all but the ``kept`` largest of the pool if it holds more than twice as many."""
    if size <= 2 * kept:
        return size, limit
    _bring_forward(pool, size, kept)
    limit = pool[0]
    for i in range(kept):
        limit = min(limit, pool[i])
    return kept, limit


@fast
def _flag(w: Array, limit: float, flags: Flags) -> None:
    """Flag the |w| above the limit."""
    for i in range(len(w)):
        flags[i] = abs(w[i]) > limit


@compiled
def _bring_forward(pool: Array, size: int, kept: int) -> None:
    """Reorder pool[:size] so that its ``kept`` largest come first (Hoare's selection)."""
    low, high = 0, size - 1
    while low < high:
        pivot, i, j = pool[(low + high) // 2], low, high
        while i <= j:
            while pool[i] > pivot:
                i += 1
            while pool[j] < pivot:
                j -= 1
            if i <= j:
                pool[i], pool[j] = pool[j], pool[i]
                i, j = i + 1, j - 1
        if kept <= j:
            high = j
        elif kept >= i:
            low = i
        else:
            return


# Moments of the terms b, w·e, w and the tally of weights, in one reading of the rows.
#
# A single loop takes a chunk of rows from its columns to its sums. Only rows near a bound, whose
# kernel has another shape, are set aside; they are added whenever enough of them are waiting.

WAITING = 8 * CHUNK
"""Rows near a bound for which there is room: a whole chunk, after any number that still waits."""


@compiled
def statistics(
    columns: Columns, outcomes: Outcomes, form: Form, kept: int
) -> tuple[Array, Array, Array, Array]:
    """Return mean (3,), comoment (3, 3), tally (3,), and a pool with the ``kept`` largest |w|.

    t, τ, y, q are (n,); bounds (2, n), (2, 1) or (2, 0). b and r, with e = y − r, are (n,) or (1,)
    where all rows share them. The form is that of `all_weights`.
    The tally is Σ|w|, Σw⁴ and the count of w ≠ 0.
    """
    (t, tau, q, bounds), (y, b, r) = columns, outcomes
    h, kappa, gamma, degree, areas, middle = form
    n, done, waiting, size, limit = len(t), 0, 0, 0, 0.0
    mean, comoment, tally = np.zeros(3), np.zeros((3, 3)), np.zeros(3)
    sums, own, residuals = np.zeros(3), np.zeros((3, 3)), np.empty(CHUNK)
    near, flags = np.zeros(CHUNK, dtype=np.uint8), np.empty(WAITING, dtype=np.uint8)
    which, pool = np.empty(WAITING, dtype=np.int64), np.empty(WAITING + 2 * kept)
    shape, terms = np.empty((3, WAITING)), np.empty((3, WAITING))
    k, plain = constants(h, kappa, gamma, middle), constants(h, kappa, gamma, PLAIN)
    apart, low, high = ranges(bounds, degree, h)
    # Sums of the first chunk are taken from its own mean, those of others from the mean before.
    first = min(CHUNK, n)
    base, z, w = terms[0][:first], terms[1][:first], terms[2][:first]
    write_terms(columns, outcomes, form, 0, first, base, z, w)
    mean[0], mean[1], mean[2] = average(base), average(z), average(w)
    for start in range(0, n, CHUNK):
        stop = min(start + CHUNK, n)
        # Slices throughout: numba would look for negative numbers in y[start + i].
        rows, e, level = slice(start, stop), y[start:stop], r[0]
        if len(r) > 1:
            e, level = residuals[: stop - start], 0.0
            subtract(y[rows], r[rows], e)
        if apart:
            flag_near(tau[rows], bounds[0][rows], bounds[1][rows], h, near)
        some, inner = (t[rows], tau[rows], q[rows], e, level), (low, high, near)
        add_far(some, k, mean, inner, limit, flags, sums, own, tally)
        if len(b) > 1:
            add_baselines(some, b[rows], k, mean, inner, sums, own)
        aside = 0
        for j in range(listed(flags, stop - start, which)):
            i = start + which[j]
            if near[which[j]] or tau[i] < low or tau[i] > high:
                terms[0, waiting + aside] = b[i if len(b) > 1 else 0]
                terms[1, waiting + aside] = e[which[j]] - level
                which[aside] = which[j]
                aside += 1
            else:
                pool[size] = abs(far_weight(abs(t[i] - tau[i]), q[i], k))
                size += 1
        size, limit = keep_largest(pool, size, limit, kept)
        set_shapes(t, tau, q, bounds, plain, start, which[:aside], waiting, shape, terms[2])
        waiting += aside
        if aside < stop - start:
            merge(mean, comoment, done, sums, own, stop - start - aside)
            done += stop - start - aside
        if waiting > WAITING - CHUNK or (waiting > 0 and stop == n):
            w = terms[2][:waiting]
            correct(shape, degree, areas, w)
            multiply(w, terms[1][:waiting])
            size, limit = tally_weights(w, tally, pool, size, limit, kept, flags, which)
            add_chunk(terms, waiting, mean, comoment, done, sums, own)
            done, waiting = done + waiting, 0
    comoment[0, 1], comoment[0, 2], comoment[1, 2] = comoment[1, 0], comoment[2, 0], comoment[2, 1]
    return mean, comoment, tally, pool[:size]


@fast
def subtract(y: Array, r: Array, e: Array) -> None:
    """Set e (B,) to y − r."""
    for i in range(len(e)):
        e[i] = y[i] - r[i]


@fast
def multiply(w: Array, e: Array) -> None:
    """Multiply e (B,) by w."""
    for i in range(len(e)):
        e[i] *= w[i]


@fast
def add_far(
    some: Some,
    k: Constants,
    mean: Array,
    inner: Inner,
    limit: float,
    flags: Flags,
    sums: Array,
    own: Array,
    tally: Array,
) -> None:
    """Set sums and products of w·(e − level) and w around ``mean``, add to the tally of weights.

    Nothing is added of a row with a weight that is near a bound. Such a row is flagged, and so is
    one whose |w| is above the limit.
    """
    t, tau, q, e, level = some
    low, high, near = inner
    mean_z, mean_w = mean[1], mean[2]
    s1 = s2 = s11 = s12 = s22 = absolute = fourths = count = 0.0
    for i in range(len(t)):
        w = far_weight(abs(t[i] - tau[i]), q[i], k)
        aside = ((tau[i] < low) | (tau[i] > high) | (near[i] != 0)) & (w != 0.0)
        w = 0.0 if aside else w
        z = 0.0 if aside else w * (e[i] - level) - mean_z
        dw = 0.0 if aside else w - mean_w
        s1 += z
        s2 += dw
        s11 += z * z
        s12 += z * dw
        s22 += dw * dw
        size, square = abs(w), w * w
        absolute += size
        fourths += square * square
        count += 1.0 if size != 0.0 else 0.0
        flags[i] = aside | (size > limit)
    sums[1], sums[2] = s1, s2
    own[1, 1], own[2, 1], own[2, 2] = s11, s12, s22
    tally[0] += absolute
    tally[1] += fourths
    tally[2] += count


@fast
def add_baselines(
    some: Some, b: Array, k: Constants, mean: Array, inner: Inner, sums: Array, own: Array
) -> None:
    """Set sums and products of b with all terms around ``mean``, of the same rows."""
    t, tau, q, e, level = some
    low, high, near = inner
    mean_b, mean_z, mean_w = mean[0], mean[1], mean[2]
    s0 = s00 = s01 = s02 = 0.0
    for i in range(len(b)):
        w = far_weight(abs(t[i] - tau[i]), q[i], k)
        aside = ((tau[i] < low) | (tau[i] > high) | (near[i] != 0)) & (w != 0.0)
        d = 0.0 if aside else b[i] - mean_b
        s0 += d
        s00 += d * d
        s01 += d * (w * (e[i] - level) - mean_z)
        s02 += d * (w - mean_w)
    sums[0] = s0
    own[0, 0], own[1, 0], own[2, 0] = s00, s01, s02
