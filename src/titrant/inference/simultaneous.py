"""Intervals that hold for many estimates at once.

The multiplier bootstrap perturbs the joint influence functions by independent normal numbers:
Σᵢ ξᵢφᵢ/n. Given the data that is exactly normal with the joint covariance, so the largest
|t| is drawn from it directly, without going back to the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant import _check

if TYPE_CHECKING:
    from titrant._types import Array

DRAWS = 20_000
"""Draws of the largest |t|: a 95 % quantile is then known to about half a percent."""


def simultaneous_probability(covariance: Array, level: float, seed: int = 0) -> float:
    """Return p such that all |z_i| stay below the normal p-quantile with probability ``level``.

    z ~ N(0, R), R the correlation of ``covariance`` (m, m). For m = 1 p is (1 + level)/2.
    """
    from scipy.special import ndtr  # noqa: PLC0415

    _check.probability(level, "level", "simultaneous")
    sd = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    moving = sd > 0
    if moving.sum() <= 1:
        return 0.5 + level / 2
    correlation = covariance[np.ix_(moving, moving)] / np.outer(sd[moving], sd[moving])
    eigenvalues, v = np.linalg.eigh(correlation)
    root = v * np.sqrt(np.maximum(eigenvalues, 0.0))
    z = np.random.default_rng(seed).standard_normal((DRAWS, len(correlation))) @ root.T
    return float(ndtr(np.quantile(np.abs(z).max(axis=1), level)))
