"""The log of whole calls: people with p contexts, whose best dose bends in one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from titrant import Linear, LoggedData


def people(n: int, p: int, *, known: bool) -> LoggedData:
    """Return n rows with p ≥ 3 contexts, and their propensities if known."""
    import titrant as tt  # noqa: PLC0415 - what it loads belongs to the first call

    rng = np.random.default_rng([n, p])
    x, e = rng.standard_normal((n, p)), rng.standard_normal(n)
    t = 0.5 * x[:, 0] + e
    best = 0.3 * x[:, 1] + 0.5 * np.maximum(x[:, 2], 0.0)
    y = (t - best) ** 2 + rng.standard_normal(n)
    return tt.LoggedData(x, t, y, np.exp(-0.5 * e**2) / np.sqrt(2 * np.pi) if known else None)


def rule(p: int) -> Linear:
    """Return the policy that is evaluated."""
    import titrant as tt  # noqa: PLC0415

    return tt.Linear(coef=[0.0, 0.3, *[0.0] * (p - 2)], intercept=0.2)
