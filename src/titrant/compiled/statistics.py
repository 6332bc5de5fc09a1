"""Moments of the terms b, w·e, w and the tally of weights, in one reading of the rows.

A single loop takes a chunk of rows from its columns to its sums. Only rows near a bound, whose
kernel has another shape, are set aside; they are added whenever enough of them are waiting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast
from titrant.compiled.flags import listed
from titrant.compiled.largest import keep_largest, tally_weights
from titrant.compiled.moments import add_chunk, average, merge
from titrant.compiled.terms import write_terms
from titrant.compiled.weights import (
    CHUNK,
    PLAIN,
    constants,
    correct,
    far_weight,
    flag_near,
    ranges,
    set_shapes,
)

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.compiled.flags import Flags
    from titrant.compiled.weights import Constants

WAITING = 8 * CHUNK
"""Rows near a bound for which there is room: a whole chunk, after any number that still waits."""


@compiled
def statistics(
    t: Array,
    tau: Array,
    y: Array,
    q: Array,
    bounds: Array,
    b: Array,
    r: Array,
    h: float,
    kappa: Array,
    gamma: int,
    degree: int,
    areas: Array,
    middle: Array,
    kept: int,
) -> tuple[Array, Array, Array, Array]:
    """Return mean (3,), comoment (3, 3), tally (3,), and a pool with the ``kept`` largest |w|.

    t, τ, y, q are (n,); bounds (2, n), (2, 1) or (2, 0). b and r, with e = y − r, are (n,) or (1,)
    where all rows share them. Kernel, degree, areas and middle are those of `all_weights`.
    The tally is Σ|w|, Σw⁴ and the count of w ≠ 0.
    """
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
    write_terms(
        t, tau, y, q, bounds, b, r, h, kappa, gamma, degree, areas, middle, 0, first, base, z, w
    )
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
        add_far(
            t[rows],
            tau[rows],
            q[rows],
            e,
            level,
            k,
            mean,
            low,
            high,
            near,
            limit,
            flags,
            sums,
            own,
            tally,
        )
        if len(b) > 1:
            add_baselines(
                t[rows], tau[rows], q[rows], e, level, b[rows], k, mean, low, high, near, sums, own
            )
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
    t: Array,
    tau: Array,
    q: Array,
    e: Array,
    level: float,
    k: Constants,
    mean: Array,
    low: float,
    high: float,
    near: Flags,
    limit: float,
    flags: Flags,
    sums: Array,
    own: Array,
    tally: Array,
) -> None:
    """Set sums and products of w·(e − level) and w around ``mean``, add to the tally of weights.

    Nothing is added of a row with a weight that is near a bound: outside of low and high or marked
    by ``near``. Such a row is flagged, and so is one whose |w| is above the limit.
    """
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
    t: Array,
    tau: Array,
    q: Array,
    e: Array,
    level: float,
    b: Array,
    k: Constants,
    mean: Array,
    low: float,
    high: float,
    near: Flags,
    sums: Array,
    own: Array,
) -> None:
    """Set sums and products of b with all terms around ``mean``, of the same rows."""
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
