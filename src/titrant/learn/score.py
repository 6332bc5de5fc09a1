"""Scoring candidates on rows that had no part in learning them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.kernels import Boundary, Epanechnikov
from titrant.kernels.boundary import local_kernel

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.learn.candidates import LearningRows
    from titrant.learn.setting import Units

BANDWIDTH = 0.8
"""In units of s."""
FLOOR = 0.05
"""Under q, in units of 1/s."""


def scores(params: Array, rows: LearningRows, units: Units, grid: Array) -> Array:
    """Return r̂(τ, x) + w·(y − r̂(t, x)) (candidates, n): each row's say on each candidate."""
    h = BANDWIDTH * units.dose_sd
    q = np.maximum(rows.q, FLOOR / units.dose_sd)
    e = rows.y - rows.curves.logged
    tau = np.clip(rows.phi @ params.T, units.low, units.high).T
    return np.stack([_baseline(t, rows, grid) + _kernel(t, rows, h) / (h * q) * e for t in tau])


def _baseline(tau: Array, rows: LearningRows, grid: Array) -> Array:
    """Return r̂(τ, x) (n,), linear between the doses of the table."""
    place = (tau - grid[0]) / (grid[1] - grid[0])
    cell = np.clip(place.astype(int), 0, len(grid) - 2)
    i = np.arange(len(tau))
    left, right = rows.curves.table[i, cell], rows.curves.table[i, cell + 1]
    return left + (place - cell) * (right - left)


def _kernel(tau: Array, rows: LearningRows, h: float) -> Array:
    boundary = Boundary.NONE if rows.lower is None else Boundary.LINEAR
    infinite = np.full_like(tau, np.inf)
    low = -infinite if rows.lower is None else (rows.lower - tau) / h
    high = infinite if rows.upper is None else (rows.upper - tau) / h
    return local_kernel(Epanechnikov(), boundary, (rows.t - tau) / h, low, high)


def paired_z(score: Array) -> Array:
    """Return how many SEs each candidate (candidates, n) is behind the best, paired (candidates,)."""
    best = int(np.argmin(score.mean(axis=1)))
    behind = score - score[best]
    se = behind.std(axis=1) / np.sqrt(score.shape[1])
    mean = behind.mean(axis=1)
    return np.divide(mean, se, out=np.zeros_like(mean), where=se > 0)
