"""The floor ("clip") under a propensity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant._check import nonnegative

if TYPE_CHECKING:
    from titrant._types import Array


def floored(q: Array, floor: float) -> tuple[Array, float]:
    """Return max(q, θ) (n,) and the share of rows that the floor θ raised.

    A floor bounds every weight by K(0)/(hθ) at the price of a bias toward the rows it leaves
    alone, so its share is to be reported with the estimate. θ = 0 changes nothing.
    """
    theta = nonnegative(floor, "floor", "floored")
    return np.maximum(q, theta), float(np.mean(q < theta))
