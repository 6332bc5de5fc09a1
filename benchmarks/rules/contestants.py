"""Common ways to a rule: the dose with the least prediction of a regression, for each person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray

GRID = 41
"""Doses among which the least prediction is looked for."""


def least(model: Any, x: Array, ends: tuple[float, float]) -> Array:
    """Return the dose (n,) with the least prediction of a regressor of (x, t)."""
    grid = np.linspace(*ends, GRID)
    rows = np.column_stack([np.repeat(x, GRID, axis=0), np.tile(grid, len(x))])
    return np.asarray(grid[np.argmin(model.predict(rows).reshape(len(x), GRID), axis=1)])


def boosted(x: Array, t: Array, y: Array, new: Array, ends: tuple[float, float]) -> Array:
    """Return the arg-min of gradient-boosted trees."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415

    model = HistGradientBoostingRegressor(random_state=0).fit(np.column_stack([x, t]), y)
    return least(model, new, ends)


def forest(x: Array, t: Array, y: Array, new: Array, ends: tuple[float, float]) -> Array:
    """Return the arg-min of a random forest."""
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415

    model = RandomForestRegressor(100, min_samples_leaf=5, random_state=0)
    return least(model.fit(np.column_stack([x, t]), y), new, ends)


def quadratic(x: Array, t: Array, y: Array, new: Array, ends: tuple[float, float]) -> Array:
    """Return the arg-min of a cross-validated ridge regression on all squares and products."""
    return least(quadratic_model().fit(np.column_stack([x, t]), y), new, ends)


def quadratic_model() -> Any:
    """Return a cross-validated ridge regression on all squares and products."""
    from sklearn.linear_model import RidgeCV  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler  # noqa: PLC0415

    return make_pipeline(
        StandardScaler(),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        RidgeCV(np.logspace(-2, 4, 13)),
    )


PLUG_INS = {"boosted": boosted, "forest": forest, "quadratic": quadratic}


def causal_forest(x: Array, t: Array, y: Array, new: Array, ends: tuple[float, float]) -> Array:
    """Return the arg-min of EconML's causal forest for the dose and its square.

    EconML is no dependency: it is measured by an interpreter that has it.
    """
    from econml.dml import CausalForestDML  # noqa: PLC0415
    from sklearn.preprocessing import PolynomialFeatures  # noqa: PLC0415

    powers = PolynomialFeatures(2, include_bias=False)
    model = CausalForestDML(treatment_featurizer=powers, random_state=0)
    effects = model.fit(y, t[:, None], X=x).const_marginal_effect(new).reshape(len(new), 2)
    grid = np.linspace(*ends, GRID)
    return np.asarray(grid[np.argmin(effects @ np.stack([grid, grid**2]), axis=1)])
