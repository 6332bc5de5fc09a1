"""Candidate policies of the default learner: how they are made, scored and combined."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from titrant.errors import InvalidArgument
from titrant.estimators import DirectMethod, DoublyRobust
from titrant.kernels import Boundary, Epanechnikov
from titrant.kernels.boundary import local_kernel
from titrant.optimize import LBFGS, AffineSearch, PolicyObjective, Scaled, Solution, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.classes import FittedClass
    from titrant.learn.setting import Units
    from titrant.learn.tables import Curves
    from titrant.optimize import Constraint


@dataclass(frozen=True, slots=True)
class LearningRows:
    """n rows as a search for P parameters sees them."""

    phi: Array
    """Features (n, P), times s: parameters are in units of s."""
    roughness: Array
    """How much a ridge counts each parameter (P,)."""
    t: Array
    y: Array
    q: Array
    """Propensities (n,), not floored."""
    lower: Array | None
    """Bounds of the dose (n,), or None."""
    upper: Array | None
    curves: Curves | None = None
    """An outcome model that has not seen these rows."""

    @classmethod
    def of(cls, log: LoggedData, q: Array, fitted: FittedClass, units: Units) -> Self:
        """Return the rows of a log with one treatment."""
        bounds = (log.lower[:, 0].copy(), log.upper[:, 0].copy()) if log.bounded else (None, None)
        phi = fitted.features(log.context) * units.dose_sd
        return cls(phi, fitted.roughness, log.treatment, log.outcome, q, *bounds)

    def only(self, rows: NDArray[np.intp]) -> Self:
        """Return some of the rows, without their outcome model."""
        return replace(
            self,
            phi=self.phi[rows],
            t=self.t[rows],
            y=self.y[rows],
            q=self.q[rows],
            lower=None if self.lower is None else self.lower[rows],
            upper=None if self.upper is None else self.upper[rows],
            curves=None,
        )

    def with_curves(self, curves: Curves) -> Self:
        """Return the same rows with an outcome model."""
        return replace(self, curves=curves)

    @property
    def model(self) -> Curves:
        """The outcome model."""
        if self.curves is None:
            raise InvalidArgument("These rows carry no outcome model; give one by `with_curves`.")
        return self.curves


# Scoring candidates on rows that had no part in learning them.


BANDWIDTH = 0.8
"""In units of s."""
SCORE_FLOOR = 0.05
"""Under q, in units of 1/s."""


def scores(params: Array, rows: LearningRows, units: Units) -> Array:
    """Return r̂(τ, x) + w·(y − r̂(t, x)) (candidates, n): each row's say on each candidate."""
    h = BANDWIDTH * units.dose_sd
    q = np.maximum(rows.q, SCORE_FLOOR / units.dose_sd)
    e = rows.y - rows.model.logged
    tau = np.clip(rows.phi @ params.T, units.low, units.high).T
    return np.stack([rows.model.table(t) + _kernel(t, rows, h) / (h * q) * e for t in tau])


def _kernel(tau: Array, rows: LearningRows, h: float) -> Array:
    boundary = Boundary.NONE if rows.lower is None else Boundary.LINEAR
    infinite = np.full_like(tau, np.inf)
    low = -infinite if rows.lower is None else (rows.lower - tau) / h
    high = infinite if rows.upper is None else (rows.upper - tau) / h
    return local_kernel(Epanechnikov(), boundary, (rows.t - tau) / h, low, high)


# The candidates of the default learner: nine ways from one outcome model to a policy.
#
# Mean dose; the direct method at two ridges; the un-normalized doubly robust estimate at three
# bandwidths and two ridges. All are searched from the strongest smoothing to the weakest, each
# starting where the one before ended.

RIDGES = (0.03, 0.003)
"""On Σ(coefficient/s)², the loss in units of sd(y); strong first."""
BANDWIDTHS = (1.6, 0.8, 0.4)
"""In units of s; wide first."""
CANDIDATE_FLOOR = 0.2
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
        q=np.maximum(rows.q, CANDIDATE_FLOOR / s),
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


# From scored candidates to one policy: an average, unless the best alone is clearly better.

TEMPERATURE = 0.5
"""A candidate z SEs behind the best has weight exp(−z/.5)."""
WORSE = 0.25
"""The average is kept unless it scores more than this many SEs worse than the best."""


@dataclass(frozen=True, slots=True)
class HeldOutScores:
    """Scores of all candidates and of their average on rows that had no part in learning them."""

    score: Array
    """Each row's say on each candidate (candidates, n)."""
    weights: Array
    """The candidates' shares in the average (candidates,)."""
    average: Array
    """Each row's say on the average (n,)."""

    @property
    def best(self) -> int:
        """The candidate with the least mean score."""
        return int(np.argmin(self.score.mean(axis=1)))

    @property
    def best_alone(self) -> bool:
        """Whether the average scores clearly worse than the best candidate."""
        behind, se = paired(self.average, self.score[self.best])
        return behind > WORSE * se

    def combined(self, params: Array) -> Array:
        """Return the parameters (P,) to use, from those of all candidates (candidates, P)."""
        return params[self.best] if self.best_alone else self.weights @ params

    def to_dict(self, candidates: Sequence[Candidate], center: float) -> dict[str, Any]:
        """Return why the policy was chosen, as plain values; ``center`` is added to all scores."""
        behind = [paired(score, self.score[self.best]) for score in self.score]
        return {
            "chosen": candidates[self.best].name if self.best_alone else "weighted average",
            "because": self._because(candidates[self.best].name),
            "scores": {
                candidate.name: {
                    "held_out_loss": float(score.mean()) + center,
                    "behind_the_best": difference,
                    "behind_the_best_se": se,
                    "weight": float(weight),
                }
                for candidate, score, (difference, se), weight in zip(
                    candidates, self.score, behind, self.weights, strict=True
                )
            },
            "average_held_out_loss": float(self.average.mean()) + center,
        }

    def _because(self, best: str) -> str:
        behind, se = paired(self.average, self.score[self.best])
        far = f"{abs(behind):.3g} {'above' if behind > 0 else 'below'} that of `{best}`, the best"
        rule = f"it is kept unless it lies more than {WORSE:g} of the difference's SE above"
        return f"the held-out loss of the weighted average lies {far} (SE {se:.3g}); {rule}"


def paired(a: Array, b: Array) -> tuple[float, float]:
    """Return the mean of a − b (n,) and its standard error."""
    difference = a - b
    return float(difference.mean()), float(difference.std() / np.sqrt(len(difference)))


def weights_of(score: Array) -> Array:
    """Return the share of each candidate, exp(−z/.5), z its SEs behind the best (candidates,)."""
    best = score[int(np.argmin(score.mean(axis=1)))]
    behind = np.array([paired(s, best) for s in score])
    # A difference that is the same in all rows has no SE: it is none, or as clear as can be.
    z = behind[:, 0] / np.maximum(behind[:, 1], np.finfo(np.float64).tiny)
    w = np.exp(-z / TEMPERATURE)
    return np.asarray(w / w.sum())
