"""Candidate policies of the default learner: how they are made, scored and combined."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from titrant.errors import InvalidArgument
from titrant.estimators import DirectMethod, DoublyRobust, Rows
from titrant.kernels import Scale
from titrant.learn.classes.base import DoseCurves
from titrant.optimize import LBFGS, AffineSearch, PolicyObjective, Scaled, Solution, Status
from titrant.outcome.base import blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.classes import FittedClass
    from titrant.learn.limits.declared import RowLimits
    from titrant.learn.setting import Units
    from titrant.learn.tables import Curves
    from titrant.optimize import Constraint
    from titrant.outcome import DoseTable


@dataclass(frozen=True, slots=True)
class LearningRows:
    """n rows of one dose as a search for P parameters sees them."""

    phi: Array
    """Features (n, P), times s: parameters are in units of s."""
    roughness: Array
    """How much a ridge counts each parameter (P,)."""
    rows: Rows
    """The rows; their propensities are not floored, and their policy doses not read."""
    table: DoseTable | None = None
    """The curves r̂(·, x) of an outcome model that has not seen these rows."""
    limits: RowLimits | None = None
    """What keeps the dose that is given from that of a rule, besides the range of all doses."""

    @classmethod
    def of(cls, log: LoggedData, q: Array, fitted: FittedClass, units: Units) -> Self:
        """Return the rows of a log with one treatment."""
        return cls.without_features(log, q).of_class(fitted, log, units)

    @classmethod
    def without_features(cls, log: LoggedData, q: Array) -> Self:
        """Return the rows of a log for any class."""
        rows = Rows(
            tau=log.doses,
            t=log.doses,
            y=log.outcome,
            q=q,
            lower=log.lower if log.bounded else None,
            upper=log.upper if log.bounded else None,
        )
        return cls(np.empty((len(log), 0)), np.empty(0), rows)

    def of_class(self, fitted: FittedClass, log: LoggedData, units: Units) -> Self:
        """Return the same rows with the features of a class."""
        phi = fitted.features(log.context) * units.dose_sd
        limits = None if self.limits is None else self.limits.of_class(fitted)
        return replace(self, phi=phi, roughness=fitted.roughness, limits=limits)

    def only(self, index: NDArray[np.intp], curves: Curves) -> Self:
        """Return some of the rows with an outcome model."""
        limits = None if self.limits is None else self.limits.take(index)
        some = replace(self, phi=self.phi[index], rows=self.rows.take(index), limits=limits)
        return some.with_curves(curves)

    def with_curves(self, curves: Curves) -> Self:
        """Return the same rows with an outcome model."""
        return replace(self, rows=replace(self.rows, r_logged=curves.logged), table=curves.table)

    def given(self, raw: Array, units: Units) -> Array:
        """Return the doses that are given in place of a rule's doses (…, n)."""
        return (
            np.clip(raw, units.low, units.high) if self.limits is None else self.limits.given(raw)
        )

    @property
    def curves(self) -> DoseTable:
        """The curves of the outcome model, which must be there."""
        if self.table is None:
            raise InvalidArgument("These rows carry no outcome model; give one by `with_curves`.")
        return self.table


# Scoring candidates on rows that had no part in learning them.


BANDWIDTH = 0.8
"""In units of s."""
SCORE_FLOOR = 0.05
"""Under q, in units of 1/s."""
ROBUST = DoublyRobust(self_normalized=False)


def scores(params: Array, rows: LearningRows, units: Units) -> Array:
    """Return r̂(τ, x) + w·(y − r̂(t, x)) (candidates, n): each row's say on each candidate."""
    tau = rows.given((rows.phi @ params.T).T, units)
    return np.stack([robust_scores(t, rows, units) for t in tau])


def robust_scores(tau: Array, rows: LearningRows, units: Units) -> Array:
    """Return r̂(τ, x) + w·(y − r̂(t, x)) (n,) of doses τ (n,)."""
    return _scored(tau, rows.curves(tau), rows, units)


def _scored(tau: Array, r: Array, rows: LearningRows, units: Units) -> Array:
    """Return r + w·(y − r̂(t, x)) (n,), w of a kernel of h = .8s about doses τ (n,)."""
    scale = Scale.of(BANDWIDTH * units.dose_sd, 1)
    q = np.maximum(rows.rows.need("q", "scores"), SCORE_FLOOR / units.dose_sd)
    one = replace(rows.rows, q=q, tau=tau[:, None], r_tau=r)
    return np.asarray(ROBUST.terms(one, scale)[:, :2].sum(axis=1))


# Curves of each row over the doses, smoothed as scores are.

NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(32)
"""Where a curve is looked at to smooth it, in bandwidths."""
AT_ONCE = 16_384
"""Weights that are computed together: enough that a call costs little, few enough for the cache."""
EVERY = 2
"""A search over curves sees every second dose of the table."""


def smoothed_at(tau: Array, rows: LearningRows, units: Units) -> Array:
    """Return (K_h ∗ r̂)(τ, x) = ∫ K*_h(t − τ)·r̂(t, x) dt (n,) at doses τ (n,), h = .8s.

    It is what the weighted outcomes near τ estimate. A rule that sits on the dips of r̂ itself
    would look too well by r̂(τ, x).
    """
    h = BANDWIDTH * units.dose_sd
    scale = Scale.of(h, 1)
    doses = tau[:, None] + h * ROBUST.kernel.support * NODES
    weight = _weights(doses, tau[:, None], np.ones(len(tau)), rows.rows, scale) * NODE_WEIGHTS
    return np.asarray((weight * rows.curves(doses)).sum(axis=1) / weight.sum(axis=1))


def fair_scores(tau: Array, rows: LearningRows, units: Units) -> Array:
    """Return S = (K_h ∗ r̂)(τ) + K_h(t − τ)/q·(y − r̂(t)) (n,) of doses τ (n,).

    The loss of the dose smoothed by h: for comparing classes, never a value.
    """
    return _scored(tau, smoothed_at(tau, rows, units), rows, units)


def smoothed_curves(rows: LearningRows, units: Units) -> tuple[Array, Array]:
    """Return a grid of doses (G,) and r̂ smoothed over h = .8s on it (n, G)."""
    fine = rows.curves.grid
    grid = fine[::EVERY]
    near = ROBUST.kernel((fine[:, None] - grid) / (BANDWIDTH * units.dose_sd))
    # A bandwidth below the step of the grid has only the dose itself in it.
    near[::EVERY][np.diag_indices(len(grid))] += np.finfo(np.float64).tiny
    return grid, rows.curves.values @ (near / near.sum(axis=0))


def dose_curves(rows: LearningRows, units: Units) -> DoseCurves:
    """Return r̂ smoothed, and D = r̂(g) + K_h(t − g)/q·(y − r̂(t)), on a grid of doses.

    Each at the dose that the limits of its row leave of g.
    """
    grid, model = smoothed_curves(rows, units)
    doses = np.broadcast_to(grid, model.shape)
    if rows.limits is not None and rows.limits.per_row:
        doses = rows.limits.held(doses)
        model = replace(rows.curves, values=model)(doses)
    return DoseCurves(grid, model, robust_at(doses, rows, units, BANDWIDTH))


def robust_at(doses: Array, rows: LearningRows, units: Units, bandwidth: float) -> Array:
    """Return D = r̂(g) + K_h(t − g)/q·(y − r̂(t)) at doses g (n, G) of each row, h in units of s."""
    scale, seen = Scale.of(bandwidth * units.dose_sd, 1), rows.rows
    e = seen.y - seen.need("r_logged", "curves")
    q = np.maximum(seen.need("q", "curves"), CANDIDATE_FLOOR / units.dose_sd)
    return np.asarray(rows.curves(doses) + _weights(seen.t, doses, q, seen, scale) * e[:, None])


def _weights(t: Array, tau: Array, q: Array, rows: Rows, scale: Scale) -> Array:
    """Return w (n, G) of doses t about doses τ, (n, G) or (n, 1) each, with propensities q (n,)."""
    t, tau, q = np.broadcast_arrays(t, tau, q[:, None])
    found = np.empty(t.shape)
    for some in blocks(len(t), max(1, AT_ONCE // t.shape[1])):
        lower, upper = (
            None if end is None else np.repeat(end[some], t.shape[1], axis=0)
            for end in (rows.lower, rows.upper)
        )
        each = Rows(
            tau=tau[some].reshape(-1, 1),
            t=t[some].reshape(-1, 1),
            y=np.zeros(t[some].size),
            q=q[some].ravel(),
            lower=lower,
            upper=upper,
        )
        found[some] = ROBUST.weight(each, scale).reshape(t[some].shape)
    return found


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
ROUGHLY, SETTLED = 1e-7, 1e-12
"""The value tolerances of a search, in sd(y): all starts go as far as the first, and the best of
them goes on to the second. At 1e-5 some are taken for settled that would still become the best.
Where a search ends within a wider second one is decided by the last bits of the log, and they must
not matter."""


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
            solutions.append(_searched(objective, starts, within))
    return np.stack([s.params for s in solutions]), solutions


def _searched(objective: PolicyObjective, starts: Array, within: Constraint) -> Solution:
    """Return the end of the best of all starts (m, P), the others searched roughly."""
    rough = LBFGS(constraint=within, value_tolerance=ROUGHLY).minimize(objective, starts)
    best = rough.params[None]
    end = LBFGS(constraint=within, value_tolerance=SETTLED).minimize(objective, best)
    return replace(
        end,
        starts=starts,
        ends=np.vstack([rough.ends, end.ends]),
        values=np.append(rough.values, end.values),
        evaluations=rough.evaluations + end.evaluations,
    )


def first_starts(rows: LearningRows) -> Array:
    """Return the mean dose, the model's best constant, and each row's best dose, as parameters."""
    grid, table, t = rows.curves.grid, rows.curves.values, rows.rows.t[:, 0]
    constants = (t.mean(), grid[np.argmin(table.mean(axis=0))])
    best = grid[np.argmin(table, axis=1)]
    targets = np.column_stack([*(np.full_like(t, dose) for dose in constants), best])
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
    s, seen, table = units.dose_sd, rows.rows, rows.curves
    direct = candidate.bandwidth is None
    if rows.limits is not None and rows.limits.per_row:
        # D of the dose that the limits of a row leave, as a curve of its own.
        doses = rows.limits.held(np.broadcast_to(table.grid, table.values.shape))
        h = candidate.bandwidth
        values = table(doses) if h is None else robust_at(doses, rows, units, h)
        table, direct = replace(table, values=values), True
    bounds: dict[str, Any] = {}
    if seen.lower is not None and seen.upper is not None:
        lower, upper = seen.lower[:, 0].copy(), seen.upper[:, 0].copy()
        bounds = {"boundary": ROBUST.boundary, "lower": lower, "upper": upper}
    search = AffineSearch(
        phi=rows.phi,
        t=seen.t[:, 0],
        e=seen.y - seen.need("r_logged", "search"),
        q=np.maximum(seen.need("q", "search"), CANDIDATE_FLOOR / s),
        kernel=ROBUST.kernel,
        h=(candidate.bandwidth or 1.0) * s,
        low=units.low,
        high=units.high,
        table=table,
        weight_slopes=False,
        direct=direct,
        **bounds,
    )
    return PolicyObjective(
        statistics=search,
        estimator=DirectMethod() if direct else ROBUST,
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

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Return why the policy was chosen, as plain values."""
        chosen = self.score[self.best] if self.best_alone else self.average
        return {
            "chosen": names[self.best] if self.best_alone else "weighted average",
            "because": self._because(names[self.best]),
            "scores": score_table(names, self.score, self.weights, chosen),
        }

    def _because(self, best: str) -> str:
        behind, se = paired(self.average, self.score[self.best])
        far = f"{abs(behind):.3g} {'above' if behind > 0 else 'below'} that of `{best}`, the best"
        rule = f"it is kept unless it lies more than {WORSE:g} of the difference's SE above"
        return f"the held-out score of the weighted average lies {far} (SE {se:.3g}); {rule}"


def score_table(
    names: Sequence[str], score: Array, weights: Array, chosen: Array
) -> dict[str, dict[str, float]]:
    """Return how far scores (candidates, n) lie behind those of what was chosen (n,), by name.

    A score is a smoothed loss, some SEs above the value that is reached: only differences of scores
    say something.
    """
    found = {}
    for name, one, weight in zip(names, score, weights, strict=True):
        behind, se = paired(one, chosen)
        entry = {"behind_the_chosen": behind, "behind_the_chosen_se": se}
        found[name] = {**entry, "weight": float(weight)}
    return found


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
