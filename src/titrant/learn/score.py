"""Scoring candidates on rows that had no part in learning them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.kernels import Boundary, Epanechnikov
from titrant.kernels.boundary import local_kernel

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.learn.rows import LearningRows
    from titrant.learn.setting import Units

BANDWIDTH = 0.8
"""In units of s."""
FLOOR = 0.05
"""Under q, in units of 1/s."""


def scores(params: Array, rows: LearningRows, units: Units) -> Array:
    """Return r̂(τ, x) + w·(y − r̂(t, x)) (candidates, n): each row's say on each candidate."""
    h = BANDWIDTH * units.dose_sd
    q = np.maximum(rows.q, FLOOR / units.dose_sd)
    e = rows.y - rows.model.logged
    tau = np.clip(rows.phi @ params.T, units.low, units.high).T
    return np.stack([rows.model.table(t) + _kernel(t, rows, h) / (h * q) * e for t in tau])


def _kernel(tau: Array, rows: LearningRows, h: float) -> Array:
    boundary = Boundary.NONE if rows.lower is None else Boundary.LINEAR
    infinite = np.full_like(tau, np.inf)
    low = -infinite if rows.lower is None else (rows.lower - tau) / h
    high = infinite if rows.upper is None else (rows.upper - tau) / h
    return local_kernel(Epanechnikov(), boundary, (rows.t - tau) / h, low, high)
