"""The logs that the tests of this room share."""

from __future__ import annotations

import numpy as np
import pytest


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three columns, the second on another scale, doses with a bump in the right tail."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 20.0, 0.1] + [0.0, 100.0, 0.0]
    spread = np.exp(0.3 * X[:, 0])
    bump = 2.0 * (rng.uniform(size=n) < 0.2)
    return X, 10.0 + X[:, 0] + 0.05 * X[:, 1] + bump + spread * rng.normal(size=n)


@pytest.fixture(scope="session")
def log():
    return draw(400, seed=1)


@pytest.fixture(scope="session")
def fresh():
    """Rows of the same kind that no model was fitted on."""
    return draw(50, seed=2)
