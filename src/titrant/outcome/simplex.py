"""Non-negative least squares with weights that sum to at most one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import nnls

if TYPE_CHECKING:
    from titrant._types import Array

NEGLIGIBLE = 1e-9
"""Smaller weights are rounding."""


def bounded_nnls(a: Array, b: Array) -> Array:
    """Return the w ≥ 0 with Σw ≤ 1 that minimizes ‖aw − b‖², a (n, m), b (n,); w (m,).

    If plain non-negative least squares stays within the limit it is the answer; else the limit
    binds and, with Σw = 1, aw − b = (a − b1')w: the point of a simplex nearest the origin.
    """
    unit = float(np.linalg.norm(b))
    if unit == 0.0:
        return np.zeros(a.shape[1])
    # The triangular factor has the same products as the data, and m + 1 rows.
    r = np.asarray(np.linalg.qr(np.column_stack([a, b]) / unit)[1], dtype=np.float64)
    weights, _ = nnls(r[:, :-1], r[:, -1])
    if weights.sum() > 1.0:
        weights = _nearest_on_simplex(r[:, :-1] - r[:, [-1]])
    return np.where(weights > NEGLIGIBLE, weights, 0.0)


def _nearest_on_simplex(a: Array) -> Array:
    """Return the w ≥ 0 with Σw = 1 that minimizes ‖aw‖².

    Let u ≥ 0 minimize ‖au‖² + (Σu − 1)², and u = s·w. For a given w the best s leaves
    q/(1 + q) with q = ‖aw‖², which grows with q: w is the answer.
    """
    extended = np.vstack([a, np.ones(a.shape[1])])
    weights, _ = nnls(extended, np.append(np.zeros(len(a)), 1.0))
    total: Array = weights / weights.sum()
    return total
