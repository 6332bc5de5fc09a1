"""Every outcome model, small, and a log to fit it on."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from titrant.outcome import OUTCOMES, OfRegressor, Stack, Trees, Well, library


def small(model):
    """The same model with few trees."""
    sizes = {key: 7 for key in model.get_params() if key.rpartition("__")[2] == "trees"}
    return clone(model).set_params(**sizes)


LISTED = {repr(model): small(model) for model in OUTCOMES}
MODELS = {
    **LISTED,
    "regressor": OfRegressor(LinearRegression()),
    "well, one start, given ridge": Well(ridge=0.01, starts=1),
    "stack": Stack({**library(), "trees": Trees(trees=7), "line": LinearRegression()}, folds=3),
}
"""The room's list, and what needs a part from elsewhere or a setting to be tested."""
VECTOR = {key: model for key, model in MODELS.items() if "Well(" not in str(model)}
"""Those that take several doses at once."""
DETERMINISTIC = {key: model for key, model in VECTOR.items() if "Trees(" not in str(model)} | {
    key: model for key, model in MODELS.items() if "starts=1" in str(model)
}
"""Those that draw nothing at random."""


def log(n=150, p=3, seed=0, noise=0.3):
    """A V-shaped loss around a dose that depends on the context."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + np.arange(p)
    X[:, 0] = X[:, 0] > 0.3  # a yes/no context
    t = 5 + X[:, 1] + 1.5 * rng.normal(size=n)
    y = np.abs(t - 4 - X[:, 0] - X[:, 1]) + 0.5 * X[:, 2] + noise * rng.normal(size=n)
    return X, t, y
