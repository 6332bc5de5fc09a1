"""The candidates of the default learner: nine ways from one outcome model to a policy.

Mean dose; the direct method at two ridges; the un-normalized doubly robust estimate at three
bandwidths and two ridges. All are searched from the strongest smoothing to the weakest, each
starting where the one before ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.estimators import DoublyRobust
from titrant.kernels import Boundary, Epanechnikov
from titrant.optimize import LBFGS, AffineSearch, PolicyObjective

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.learn.setting import Units
    from titrant.learn.tables import Curves

RIDGES = (0.03, 0.003)
"""On Σ(coefficient/s)², the loss in units of sd(y); strong first."""
BANDWIDTHS = (1.6, 0.8, 0.4)
"""In units of s; wide first."""
FLOOR = 0.2
"""Under q, in units of 1/s."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to a policy; a bandwidth of None is the direct method, a ridge of None the mean."""

    name: str
    bandwidth: float | None
    ridge: float | None


CANDIDATES: tuple[Candidate, ...] = (
    Candidate("mean dose", None, None),
    *(Candidate(f"direct, ridge {ridge:g}", None, ridge) for ridge in RIDGES),
    *(
        Candidate(f"doubly robust, h {h:g}s, ridge {ridge:g}", h, ridge)
        for h in BANDWIDTHS
        for ridge in RIDGES
    ),
)
"""In the order in which they are searched."""


@dataclass(frozen=True, slots=True)
class LearningRows:
    """What a candidate is learned from: rows with an outcome model that has not seen them."""

    phi: Array
    """Features (n, P)."""
    t: Array
    y: Array
    q: Array
    """Propensities (n,), not floored."""
    curves: Curves
    lower: Array | None
    """Bounds of the dose (n,), or None."""
    upper: Array | None


def learn_candidates(
    candidates: tuple[Candidate, ...], rows: LearningRows, units: Units, grid: Array
) -> Array:
    """Return the parameters of each candidate (candidates, P)."""
    starts = first_starts(rows, units, grid)
    params = np.empty((len(candidates), rows.phi.shape[1]))
    for i, candidate in enumerate(candidates):
        params[i] = starts[0] if candidate.ridge is None else _search(candidate, rows, units, grid, starts)
        if candidate.ridge is not None:
            starts = np.vstack([starts[:3], params[max(1, i - 2) : i + 1]])
    return params


def first_starts(rows: LearningRows, units: Units, grid: Array) -> Array:
    """Return the mean dose, the best constant of the model, and OLS of each row's best dose."""
    starts = np.zeros((3, rows.phi.shape[1]))
    starts[0, 0] = rows.t.mean()
    starts[1, 0] = grid[np.argmin(rows.curves.table.mean(axis=0))]
    best = grid[np.argmin(rows.curves.table, axis=1)]
    starts[2] = np.linalg.lstsq(rows.phi, best, rcond=None)[0]
    return starts


def _search(
    candidate: Candidate, rows: LearningRows, units: Units, grid: Array, starts: Array
) -> Array:
    """Return the parameters (P,) with the least penalized loss found from the starts."""
    s = units.dose_sd
    smoothed = candidate.bandwidth is not None
    search = AffineSearch(
        phi=rows.phi,
        t=rows.t,
        e=rows.y - rows.curves.logged if smoothed else np.zeros_like(rows.y),
        q=np.maximum(rows.q, FLOOR / s),
        kernel=Epanechnikov(),
        h=(candidate.bandwidth or 1.0) * s,
        boundary=Boundary.NONE if rows.lower is None else Boundary.LINEAR,
        lower=rows.lower,
        upper=rows.upper,
        low=units.low,
        high=units.high,
        table=rows.curves.table,
        grid=(float(grid[0]), float(grid[1] - grid[0])),
    )
    ridge = np.full(rows.phi.shape[1], (candidate.ridge or 0.0) / s**2)
    ridge[0] = 0.0  # the intercept is not penalized: it is the level of the dose
    objective = PolicyObjective(
        statistics=search,
        estimator=DoublyRobust(self_normalized=False),
        ridge=ridge,
        scale=units.outcome_sd,
    )
    return LBFGS().minimize(objective, starts).params
