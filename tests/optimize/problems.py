"""Small searches to state laws on: rows with bounds, an outcome model as a table, policies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from optimize.affine import affine_search
from titrant.estimators import (
    ESTIMATORS,
    DirectMethod,
    Estimator,
    Rows,
    SmoothedEstimator,
)
from titrant.kernels import Boundary, Scale
from titrant.optimize import (
    PolicyObjective,
    SearchStatistics,
    SearchSums,
    Second,
    search_statistics,
    stacked,
)
from titrant.outcome.table import DoseTable
from titrant.policies import RBF, Clipped, Constant, Linear, ParametricPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

N, H = 60, 0.9
CENTERS = np.array([[0.0, 1.0, -1.0], [1.0, 0.5, 0.3], [-1.0, 0.0, 0.5]])
POLICIES: dict[str, ParametricPolicy] = {
    "constant": Constant(0.3),
    "linear": Linear([0.3, -0.2, 0.25], 0.2),
    "rbf": RBF(CENTERS, [0.7, -0.2, 0.4], scale=1.3, intercept=0.1),
    "clipped": Clipped(Linear([0.6, -0.5, 0.4], 0.2), -0.6, 0.8),
    "clipped below": Clipped(Clipped(Linear([0.6, -0.5, 0.4], 0.2), -0.5), -2.0, 1.1),
}
DIFFERENTIABLE = tuple(e for e in ESTIMATORS if isinstance(e, SmoothedEstimator | DirectMethod))
PENALTIES: dict[str, dict[str, object]] = {
    "none": {},
    "se": {"se_weight": 0.7, "scale": 2.0},
    "ridge": {"ridge": np.array([0.3]), "ridge_center": 0.1},
    "ess": {"ess_floor": 40.0, "ess_strength": 0.5},
    "all, maximized": {
        "se_weight": 0.4,
        "ridge": 0.2,
        "ess_floor": 50.0,
        "maximize": True,
        "scale": 0.5,
    },
}


def slope_of(table: DoseTable, t: np.ndarray) -> np.ndarray:
    """∂r̂/∂t at the dose of each row (n,), by scipy; 0 beyond the grid."""
    slopes = np.gradient(table.values, table.grid, axis=1, edge_order=2)
    found = [
        CubicHermiteSpline(table.grid, *curve)(dose, 1)
        for *curve, dose in zip(table.values, slopes, t, strict=True)
    ]
    return np.where((t < table.lower) | (t > table.upper), 0.0, found)


@dataclass(frozen=True)
class Log:
    """Rows of one dose and the curves of an outcome model."""

    x: np.ndarray
    t: np.ndarray
    y: np.ndarray
    q: np.ndarray
    lower: np.ndarray | None
    upper: np.ndarray | None
    table: DoseTable

    def rows(self, policy: ParametricPolicy) -> Rows:
        """The rows as an estimator sees them under a policy."""
        tau = policy(self.x)
        return Rows(
            tau=tau[:, None],
            t=self.t[:, None],
            y=self.y,
            x=self.x,
            center=float(self.y.mean()),
            q=self.q,
            lower=None if self.lower is None else self.lower[:, None],
            upper=None if self.upper is None else self.upper[:, None],
            r_tau=self.table(tau),
            r_logged=self.table(self.t),
            r_slope=slope_of(self.table, tau)[:, None],
        )

    def take(self, index: slice) -> Log:
        """Some of the rows."""
        chosen = {
            name: None if (a := getattr(self, name)) is None else a[index]
            for name in ("x", "t", "y", "q", "lower", "upper")
        }
        return Log(
            **chosen, table=DoseTable(self.table.lower, self.table.upper, self.table.values[index])
        )


def log(n: int = N, *, bounded: bool = False, seed: int = 0, shift: float = 0.0) -> Log:
    """Doses that depend on the context, losses with a best dose, a wrong outcome model."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    t = 0.3 * x[:, 0] + rng.normal(size=n) * 0.8
    y = (t - 0.4 * x[:, 1] - 0.2) ** 2 + 0.3 * rng.normal(size=n) + shift
    grid = np.linspace(-1.5, 1.5, 13)
    curves = 0.8 * (grid - 0.3 * x[:, [1]]) ** 2 + np.sin(2 * grid) * x[:, [2]] + shift
    lower, upper = np.minimum(t, -rng.uniform(0.2, 1, n)), np.full(n, np.inf)
    upper[::2] = np.maximum(t[::2], 0.5)
    table = DoseTable(-1.5, 1.5, curves)
    return Log(
        x,
        t,
        y,
        rng.uniform(0.2, 1.0, n),
        lower if bounded else None,
        upper if bounded else None,
        table,
    )


def with_boundary(estimator: Estimator, boundary: Boundary) -> Estimator:
    return (
        replace(estimator, boundary=boundary)
        if isinstance(estimator, SmoothedEstimator)
        else estimator
    )


@dataclass(frozen=True)
class OwnSums(SearchSums):
    """Sums by a function of parameters, about which nothing else is known."""

    function: Callable[[np.ndarray], SearchStatistics]

    def __call__(self, params: np.ndarray) -> SearchStatistics:
        return self.function(params)


def generic(estimator: Estimator, policy: ParametricPolicy, data: Log, **penalties: object):
    """The objective through numpy, one candidate at a time."""
    scale = Scale.of(H, 1)

    def statistics(params: np.ndarray):
        moved = [policy.with_params(p) for p in params]
        return stacked([search_statistics(estimator, p, scale, data.rows(p)) for p in moved])

    return PolicyObjective(statistics=OwnSums(statistics), estimator=estimator, **penalties)


def fused(
    estimator: Estimator,
    policy: ParametricPolicy,
    data: Log,
    *,
    in_memory: bool = True,
    **penalties: object,
):
    """The objective through the compiled loops: recorded in memory, or as sums that add up."""
    second = Second.NONE
    if penalties.get("ess_floor"):
        second = Second.WEIGHTS
    if penalties.get("se_weight"):
        second = Second.ALL
    search = affine_search(
        estimator,
        policy,
        data.rows(policy),
        H,
        table=data.table if estimator.uses_outcome_model else None,
        second=second,
    )
    statistics = search if in_memory else OwnSums(search)
    return PolicyObjective(statistics=statistics, estimator=estimator, **penalties)


def around(policy: ParametricPolicy, count: int = 3, seed: int = 0) -> np.ndarray:
    """Parameters (count, P) near those of a policy."""
    rng = np.random.default_rng(seed)
    return policy.params + 0.2 * rng.normal(size=(count, len(policy.params)))


def differences(objective, points: np.ndarray, step: float) -> np.ndarray:
    """Central differences (m, P) of an objective."""
    moves = step * np.eye(points.shape[1])
    return np.stack(
        [(objective(points + s)[0] - objective(points - s)[0]) / (2 * step) for s in moves], axis=1
    )


def applies(estimator: Estimator, penalties: dict[str, object]) -> bool:
    """Whether the estimator has the weights that a penalty speaks of."""
    return not (isinstance(estimator, DirectMethod) and penalties.get("ess_floor"))
