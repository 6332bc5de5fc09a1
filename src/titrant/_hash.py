"""Random numbers as a pure function of a row's number, however a log is cut into blocks."""

import numpy as np
from numpy.typing import NDArray

GOLDEN = 0x9E3779B97F4A7C15
"""The odd number nearest 2⁶⁴/φ, the increment of splitmix64."""


def splitmix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the first output of the splitmix64 generator at state x (Steele, Lea & Flood 2014)."""
    z = x + np.uint64(GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
