"""Least absolute deviations as a linear program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack

from titrant.errors import InvalidArgument

if TYPE_CHECKING:
    from titrant._types import Array


def least_absolute(
    x: Array, t: Array, lower: Array, upper: Array, *, intercept: bool
) -> tuple[Array, float]:
    """Return b (p,) and c with the least Σ|t − c − b'x|, lower ≤ b ≤ upper; c = 0 if none is asked.

    min Σ(u + v) over b, c, u ≥ 0, v ≥ 0 with Xb + c + u − v = t, solved by HiGHS with columns in
    units of their size.
    """
    n, p = x.shape
    size = np.abs(x).max(axis=0)
    size = np.where(size > 0, size, 1.0)
    level = 1.0 if intercept else 0.0
    columns = np.column_stack([x / size, np.full(n, level)])
    equations = hstack([csr_array(columns), eye_array(n), -eye_array(n)], format="csr")
    bounds = [
        *zip(lower * size, upper * size, strict=True),
        (None, None),
        *[(0.0, None)] * (2 * n),
    ]
    cost = np.concatenate([np.zeros(p + 1), np.ones(2 * n)])
    found = linprog(cost, A_eq=equations, b_eq=t, bounds=bounds, method="highs")
    if found.x is None:
        raise InvalidArgument(f"The linear program of the median regression: {found.message}")
    return np.clip(found.x[:p] / size, lower, upper), level * float(found.x[p])
