"""Every outcome model, small, and a log to fit it on."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LinearRegression

from titrant.outcome import (
    Bounded,
    ContextsOnly,
    OfRegressor,
    Quadratic,
    RidgeModel,
    SmoothContext,
    Spline,
    Stack,
    Trees,
    Well,
    library,
    ridge_pair,
)

MODELS = {
    "regressor": OfRegressor(LinearRegression()),
    "quadratic": RidgeModel(Quadratic()),
    "quadratic without products": RidgeModel(Quadratic(products_up_to=1)),
    "spline": RidgeModel(Spline()),
    "smooth context": RidgeModel(SmoothContext()),
    "well": Well(),
    "well, one start, given ridge": Well(ridge=0.01, starts=1),
    "trees": Trees(trees=7),
    "bounded": Bounded(RidgeModel(Quadratic())),
    "contexts only": ContextsOnly(RidgeModel(SmoothContext()), extra=0),
    "ridge stack": Stack(ridge_pair()),
    "stack": Stack({**library(), "trees": Trees(trees=7), "line": LinearRegression()}, folds=3),
}
VECTOR = {
    name: MODELS[name]
    for name in ("regressor", "quadratic", "spline", "smooth context", "contexts only", "trees")
}


def log(n=150, p=3, seed=0, noise=0.3):
    """A V-shaped loss around a dose that depends on the context."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + np.arange(p)
    X[:, 0] = X[:, 0] > 0.3  # a yes/no context
    t = 5 + X[:, 1] + 1.5 * rng.normal(size=n)
    y = np.abs(t - 4 - X[:, 0] - X[:, 1]) + 0.5 * X[:, 2] + noise * rng.normal(size=n)
    return X, t, y
