"""Several doses at once: a constant, a line and a tree compete on the same folds.

A table of outcome curves is cheap for one dose alone. Here every class is learned anew without each
fold: a line by searches, with and without the weighted residuals; a tree on doubly robust losses at
a few hundred doses. All are scored on the rows left out by the smoothed doubly robust score of
`titrant.learn.candidates`, with bandwidths in all directions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.errors import DataError
from titrant.estimators import DirectMethod, DoublyRobust, Rows
from titrant.kernels import Scale
from titrant.learn.candidates import (
    CANDIDATE_FLOOR,
    ROBUST,
    SCORE_FLOOR,
    HeldOutScores,
    weights_of,
)
from titrant.learn.choice import ClassChoice
from titrant.learn.classes import Automatic, ClippedClass, CurveClass, DoseCurves, LinearClass
from titrant.learn.contenders import Contender, CurveContender, HeldOutFold
from titrant.learn.cpo import CPO
from titrant.learn.setting import Learned, Procedure, dose_range, dose_sd, silent
from titrant.policies import Clipped, ParametricPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.classes import DoseLimits, PolicyClass
    from titrant.learn.setting import Progress, TrainingLog
    from titrant.outcome.crossfit import Folds
    from titrant.policies import Policy

    Outcomes = Callable[[Array], Array]
    """From doses (n, d) to predicted losses (n,)."""

POINTS = 256
"""Doses at which a tree looks for the best of a leaf."""
NEAR = 32
"""Pairs of doses over which a prediction is smoothed."""
DIRECTLY, ROBUSTLY = "direct", "doubly robust"
FEWEST = 4
"""Rows of a fold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorDR(Procedure):
    """The default procedure for several doses; see the module.

    Of a log that is not in memory, and for a policy of one's own that is not linear in its
    parameters, the doubly robust search alone is made, over all rows.
    """

    folds: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        _check.count(self.folds, "folds", "VectorDR", at_least=3)
        _check.count(self.seed, "seed", "VectorDR", at_least=0)

    @property
    def usual_class(self) -> PolicyClass:
        """The class is chosen too."""
        return Automatic()

    def learn(
        self, training: TrainingLog, policy_class: PolicyClass, progress: Progress
    ) -> Learned:
        """Return the simplest rule that scores within one standard error of the best."""
        training, notes = training.held()
        log, whole = training.losses(), training.survey.sample.whole
        classes = policy_class.competing(log)
        if len(classes) > 1 and not whole:
            classes = (LinearClass(),)
        kinds = [ClippedClass(kind, *policy_class.limits) for kind in classes]
        if len(classes) == 1 and not (whole and comparable(classes[0], log)):
            return searches(log)[ROBUSTLY].learn(training, kinds[0], progress).noted(notes)
        arena = VectorArena.of(training, policy_class.limits, self.folds, self.seed)
        found: list[Contender[VectorArena]] = []
        for kind, clipped in zip(classes, kinds, strict=True):
            progress("classes", len(found), len(classes))
            if isinstance(kind, CurveClass):
                found.append(CurveContender.of(kind, arena, lambda _: None))
            else:
                found.append(SearchedContender.of(kind.name, clipped, arena))
        choice = ClassChoice.of(found, arena)
        learned = found[choice.place].learned(arena)
        progress("classes", len(classes), len(classes))
        report = {
            "procedure": "doubly robust, several doses",
            "candidates": learned.report,
            "dose_range": [arena.low.tolist(), arena.high.tolist()],
            "dose_sd": arena.sd.tolist(),
            "folds": self.folds,
            "seed": self.seed,
            "learned_on": len(log),
            "rows": training.survey.n,
        }
        return replace(learned, choice=choice, report=report).noted(notes)


def comparable(kind: PolicyClass, log: LoggedData) -> bool:
    """Whether policies of a class are found from curves, or can be averaged by parameters."""
    return isinstance(kind, CurveClass) or kind.on(log).affine


def searches(log: LoggedData) -> dict[str, CPO]:
    """Return the two searches for a line: by predictions alone, and with weighted residuals.

    Smooth models, whose differences are slopes; a wide bandwidth, since doses near in every
    direction are few; few starts, since the penalized search hardly depends on them.
    """
    from titrant.outcome import Stack, ridge_pair  # noqa: PLC0415

    outcome, h = Stack(ridge_pair()), dose_sd(log)
    estimators: dict[str, DirectMethod | DoublyRobust] = {
        DIRECTLY: DirectMethod(outcome=outcome),
        ROBUSTLY: DoublyRobust(self_normalized=False, outcome=outcome),
    }
    return {
        name: CPO(estimator=estimator, bandwidth=h, ridge=0.003, restarts=2)
        for name, estimator in estimators.items()
    }


# The rows and folds that all classes share.


@dataclass(frozen=True)
class VectorArena:
    """The rows, models and folds that all classes share."""

    training: TrainingLog
    log: LoggedData
    """Losses, counted from their mean."""
    q: Array
    fold: Folds
    folds: int
    seed: int
    sd: Array
    """s (d,), the sd of each dose that the context does not explain: the bandwidths."""
    low: Array
    high: Array

    @classmethod
    def of(cls, training: TrainingLog, limits: DoseLimits, folds: int, seed: int) -> VectorArena:
        """Return the rows of a log with their folds."""
        from titrant.outcome.crossfit import fold_of, inner_folds  # noqa: PLC0415

        log = training.losses()
        if len(log) < FEWEST * folds:
            raise DataError(
                f"`VectorDR` with {folds} folds needs at least {FEWEST * folds} rows, in each half "
                f"if the value is to be honest; got {len(log):,}. Collect more rows, or use "
                "fewer folds."
            )
        center = float(log.outcome.mean())
        fold = (
            fold_of(log.first_row, len(log), folds, seed)
            if log.groups is None
            else inner_folds(len(log), folds, seed, log.groups)
        )
        low, high = dose_range(log, limits, tails=True)
        return cls(
            training=training,
            log=log.with_outcome(log.outcome - center),
            q=training.propensities(),
            fold=fold,
            folds=folds,
            seed=seed,
            sd=dose_sd(log),
            low=low,
            high=high,
        )

    @cached_property
    def splits(self) -> tuple[HeldOutFold, ...]:
        """The folds, each held out once."""
        return tuple(
            HeldOutFold(np.flatnonzero(self.fold != k), np.flatnonzero(self.fold == k))
            for k in range(self.folds)
        )

    def found(self, kind: CurveClass, without: int | None = None) -> tuple[Policy, ...]:
        """Return the policies that a class finds on the rows without a fold, or on all."""
        log = self.log if without is None else self.log.rows(self.splits[without].train)
        return kind.found(log, self.curves(without))

    def given(self, raw: Array, fold: int) -> Array:  # noqa: ARG002
        """Return the doses of a rule as they are: several doses have no limits of a row."""
        return raw

    def settled(self, policy: Policy) -> Policy:
        """Return a policy as it is: several doses have no limits of means."""
        return policy

    def deployed(self, policy: Policy) -> Policy:
        """Return a policy as it is deployed: as it is."""
        return policy

    @property
    def bounds_personal(self) -> bool:
        """Whether rules may be held against a personal one, which keeps to all limits."""
        return True

    def curves(self, without: int | None = None) -> DoseCurves:
        """Return D of the rows without a fold, or of all, by models that have not seen them."""
        index = np.arange(len(self.log)) if without is None else self.splits[without].train
        rows, at = self._rows(index, CANDIDATE_FLOOR), unseen(self.log, index, self.fold[index])
        e = rows.y - at(rows.t)
        scale = Scale.of(self.sd, len(self.sd))
        predicted = np.empty((len(index), len(self.points)))
        robust = np.empty_like(predicted)
        for j, dose in enumerate(self.points):
            tau = np.broadcast_to(dose, rows.t.shape)
            predicted[:, j] = at(tau)
            robust[:, j] = predicted[:, j] + ROBUST.weight(replace(rows, tau=tau), scale) * e
        return DoseCurves(self.points, predicted, robust)

    def score(self, tau: Array) -> Array:
        """Return S = (K_H ∗ r̂)(τ) + K_H(t − τ)/q·(y − r̂(t)) (n,) of doses τ (n, d)."""
        at, rows = self._graded
        scale = Scale.of(self.sd, len(self.sd))
        total, weight = np.zeros(len(tau)), np.zeros(len(tau))
        even = replace(rows, tau=tau, q=np.ones(len(tau)))
        for step in near(len(self.sd)):
            t = tau + ROBUST.kernel.support * self.sd * step
            own = ROBUST.weight(replace(even, t=t), scale)
            total += own * at(t)
            weight += own
        own = ROBUST.weight(replace(rows, tau=tau), scale)
        return np.asarray(total / weight + own * (rows.y - at(rows.t)))

    def personal(self) -> Array:
        """Return for each row the dose (n, d) with the least prediction by models without it."""
        at, rows = self._graded
        predicted = [at(np.broadcast_to(dose, rows.t.shape)) for dose in self.points]
        return np.asarray(self.points[np.argmin(predicted, axis=0)])

    @cached_property
    def points(self) -> Array:
        """Doses (G, d) spread evenly over those that a rule may give."""
        return self.low + (self.high - self.low) * evenly(POINTS, len(self.low))

    @cached_property
    def _graded(self) -> tuple[Outcomes, Rows]:
        """The curves of all rows by models without their folds, and the rows."""
        every = np.arange(len(self.log))
        return unseen(self.log, every, self.fold), self._rows(every, SCORE_FLOOR)

    def _rows(self, index: NDArray[np.intp], floor: float) -> Rows:
        """Return rows with propensities floored, in units of 1/s for each dose."""
        log = self.log
        lowest = np.prod(floor / self.sd)
        return Rows(
            tau=log.doses[index],
            t=log.doses[index],
            y=log.outcome[index],
            q=np.maximum(self.q[index], lowest),
            lower=log.lower[index] if log.bounded else None,
            upper=log.upper[index] if log.bounded else None,
        )


def unseen(log: LoggedData, index: NDArray[np.intp], fold: Folds) -> Outcomes:
    """Return t ↦ r̂(tᵢ, xᵢ) (n,) of some rows, each by models fitted without its fold (n,)."""
    from titrant.outcome import Stack, bent_ridges  # noqa: PLC0415
    from titrant.outcome.base import given_of  # noqa: PLC0415

    x, t, y = log.context[index], log.doses[index], log.outcome[index]
    parts = []
    for k in np.unique(fold):
        own, rest = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        fitted = Stack(bent_ridges()).fit(x[rest], t[rest], y[rest])
        parts.append((given_of(fitted, x[own]), own))

    def at(doses: Array) -> Array:
        found = np.empty(len(x))
        for curves, own in parts:
            found[own] = curves(doses[own])
        return found

    return at


def evenly(number: int, d: int) -> Array:
    """Return points (number, d) spread evenly over the unit cube: those of Halton."""
    from scipy.stats import qmc  # noqa: PLC0415

    return np.asarray(qmc.Halton(d, scramble=False).random(number + 1)[1:])


def near(d: int) -> Array:
    """Return points of the cube [−1, 1]ᵈ, each with its opposite (2·NEAR, d)."""
    half = 2.0 * evenly(NEAR, d) - 1.0
    return np.vstack([half, -half])


# A line: two searches, averaged by their scores.


@dataclass(frozen=True, slots=True)
class SearchedContender(Contender[VectorArena]):
    """Policies with parameters, of two searches, averaged by their scores."""

    name: str
    size: int
    kind: PolicyClass
    held_out: HeldOutScores
    doses: Array

    @classmethod
    def of(cls, name: str, kind: PolicyClass, arena: VectorArena) -> SearchedContender:
        """Search without each fold and score what is found on it."""
        names = list(searches(arena.log))
        tau = np.empty((len(names), *arena.log.doses.shape))
        parts = []
        for split in arena.splits:
            rows = arena.training.survey.sample.log.rows(split.train)
            found = [one.policy for one in searched(kind, arena.training.part(rows))]
            tau[:, split.test] = [rule(arena.log.context[split.test]) for rule in found]
            parts.append((split.test, found))
        score = np.stack([arena.score(own) for own in tau])
        weights = weights_of(score)
        mean = np.empty_like(arena.log.doses)
        for test, found in parts:
            mean[test] = averaged(found, weights)(arena.log.context[test])
        held_out = HeldOutScores(score, weights, arena.score(mean))
        size = inside(parts[0][1][0]).params.size
        doses = tau[held_out.best] if held_out.best_alone else mean
        return cls(name, size, kind, held_out, doses)

    def learned(self, arena: VectorArena) -> Learned:
        """Search on all rows and average by the held-out scores."""
        found = searched(self.kind, arena.training)
        alone = np.eye(len(found))[self.held_out.best]
        weights = alone if self.held_out.best_alone else self.held_out.weights
        return Learned(
            policy=averaged([one.policy for one in found], weights),
            solution=found[self.held_out.best].solution,
            report=self.held_out.to_dict(list(searches(arena.log))),
        )


def searched(kind: PolicyClass, part: TrainingLog) -> list[Learned]:
    """Return what each search finds."""
    every = searches(part.losses()).values()
    return [search.learn(part, kind, silent) for search in every]


def inside(policy: Policy) -> ParametricPolicy:
    """Return the policy with parameters, without the limits around it."""
    found = policy.policy if isinstance(policy, Clipped) else policy
    if not isinstance(found, ParametricPolicy):
        raise TypeError(f"{found!r} has no parameters to average.")
    return found


def averaged(policies: list[Policy], weights: Array) -> Policy:
    """Return the policy whose parameters are the weighted mean of several of one form."""
    rules = [inside(policy) for policy in policies]
    mean = rules[0].with_params(weights @ np.stack([rule.params for rule in rules]))
    first = policies[0]
    return Clipped(mean, first.lower, first.upper) if isinstance(first, Clipped) else mean
