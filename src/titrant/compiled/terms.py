"""The terms of a chunk of rows, for several questions whose terms stand side by side.

Unlike `statistics`, which does one question over all rows in a single call, this is a step that
the caller takes chunk by chunk: the questions may be about policies with arrays of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from titrant.compiled.decorators import compiled, fast
from titrant.compiled.weights import all_weights, copy

if TYPE_CHECKING:
    from titrant._types import Array


@compiled
def write_terms(
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
    start: int,
    stop: int,
    base: Array,
    z: Array,
    w: Array,
) -> None:
    """Set base, z and w (stop − start,) to b, w·e and w of some of the rows; see `statistics`."""
    part = bounds[:, start:stop].copy() if bounds.shape[1] > 1 else bounds.copy()
    all_weights(
        t[start:stop],
        tau[start:stop],
        q[start:stop],
        part,
        h,
        kappa,
        gamma,
        degree,
        areas,
        middle,
        w,
    )
    multiply(w, y[start:stop], r[start:stop] if len(r) > 1 else r, z)
    for i in range(len(base)):
        base[i] = b[0]
    if len(b) > 1:
        copy(b[start:stop], base)


@fast
def multiply(w: Array, y: Array, r: Array, z: Array) -> None:
    """Set z (B,) to w·(y − r); r is (B,) or (1,)."""
    if len(r) == len(w):
        for i in range(len(w)):
            z[i] = w[i] * (y[i] - r[i])
    else:
        level = r[0]
        for i in range(len(w)):
            z[i] = w[i] * (y[i] - level)
