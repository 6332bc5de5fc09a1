"""The candidates of the default learner: nine ways from one outcome model to a policy.

Mean dose; the direct method at two ridges; the un-normalized doubly robust estimate at three
bandwidths and two ridges. All are searched from the strongest smoothing to the weakest, each
starting where the one before ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.estimators import DirectMethod, DoublyRobust
from titrant.kernels import Boundary, Epanechnikov
from titrant.optimize import LBFGS, AffineSearch, PolicyObjective, Scaled, Solution, Status

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.learn.rows import LearningRows
    from titrant.learn.setting import Units
    from titrant.optimize import Constraint

RIDGES = (0.03, 0.003)
"""On Σ(coefficient/s)², the loss in units of sd(y); strong first."""
BANDWIDTHS = (1.6, 0.8, 0.4)
"""In units of s; wide first."""
FLOOR = 0.2
"""Under q, in units of 1/s."""
SETTLED = 1e-12
"""The value tolerance of a search: where it ends within a wider one is decided by the last bits of
the log, and they must not matter."""


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


def learn_candidates(
    candidates: tuple[Candidate, ...],
    rows: LearningRows,
    units: Units,
    constraint: Constraint,
) -> tuple[Array, list[Solution]]:
    """Return the parameters (candidates, P), in units of s, and the search of each candidate."""
    within = Scaled(constraint, units.dose_sd)
    first = within.project(first_starts(rows))
    solutions: list[Solution] = []
    for candidate in candidates:
        objective = _objective(candidate, rows, units)
        if candidate.ridge is None:
            solutions.append(_as_it_is(objective, first[:1]))
        else:
            starts = np.vstack([first, *(s.params for s in solutions[-2:])])
            search = LBFGS(constraint=within, value_tolerance=SETTLED)
            solutions.append(search.minimize(objective, starts))
    return np.stack([s.params for s in solutions]), solutions


def first_starts(rows: LearningRows) -> Array:
    """Return the mean dose, the model's best constant, and each row's best dose, as parameters."""
    grid, table = rows.model.table.grid, rows.model.table.values
    targets = np.column_stack(
        [
            np.full_like(rows.t, rows.t.mean()),
            np.full_like(rows.t, grid[np.argmin(table.mean(axis=0))]),
            grid[np.argmin(table, axis=1)],
        ]
    )
    # Least squares: for a class with an intercept the first two are the constants themselves.
    return np.asarray(np.linalg.lstsq(rows.phi, targets, rcond=None)[0].T)


def _as_it_is(objective: PolicyObjective, params: Array) -> Solution:
    """Return one point (1, P) as the end of a search that has nothing to look for."""
    values, _ = objective(params)
    return Solution(
        params=params[0],
        value=float(values[0]),
        status=Status.CONVERGED,
        starts=params,
        ends=params,
        values=values,
        evaluations=1,
    )


def _objective(candidate: Candidate, rows: LearningRows, units: Units) -> PolicyObjective:
    """Return the penalized loss of a candidate, in units of sd(y)."""
    s = units.dose_sd
    direct = candidate.bandwidth is None
    search = AffineSearch(
        phi=rows.phi,
        t=rows.t,
        e=rows.y - rows.model.logged,
        q=np.maximum(rows.q, FLOOR / s),
        kernel=Epanechnikov(),
        h=(candidate.bandwidth or 1.0) * s,
        boundary=Boundary.NONE if rows.lower is None else Boundary.LINEAR,
        lower=rows.lower,
        upper=rows.upper,
        low=units.low,
        high=units.high,
        table=rows.model.table,
        weight_slopes=False,
        direct=direct,
    )
    return PolicyObjective(
        statistics=search,
        estimator=DirectMethod() if direct else DoublyRobust(self_normalized=False),
        ridge=(candidate.ridge or 0.0) * rows.roughness,
        scale=units.outcome_sd,
    )
