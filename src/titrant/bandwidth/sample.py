"""A seeded choice of rows, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def sample(size: int, at_most: int, seed: int) -> NDArray[np.intp]:
    """Return ``at_most`` of 0 … size − 1, drawn without replacement by ``seed``, increasing."""
    if size <= at_most:
        return np.arange(size)
    return np.sort(np.random.default_rng(seed).choice(size, at_most, replace=False))
