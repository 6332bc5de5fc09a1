"""From scored candidates to one policy: an average, unless the best alone is clearly better."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.learn.score import paired_z

if TYPE_CHECKING:
    from titrant._types import Array

TEMPERATURE = 0.5
"""A candidate z SEs behind the best has weight exp(−z/.5)."""
WORSE = 0.25
"""The average is kept unless it scores this many SEs worse than the best."""


def weights_of(score: Array) -> Array:
    """Return the weight of each candidate from held-out scores (candidates, n)."""
    w = np.exp(-paired_z(score) / TEMPERATURE)
    return np.asarray(w / w.sum())


def average_is_worse(score: Array, average: Array) -> bool:
    """Return whether the averaged policy (n,) scores clearly worse than the best candidate."""
    best = score[int(np.argmin(score.mean(axis=1)))]
    behind = average - best
    se = behind.std() / np.sqrt(len(behind))
    return bool(behind.mean() > WORSE * se)
