"""The one array type: float64, because a dose or a loss in half precision is a wrong number."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""An array of float64; docstrings state its shape."""
