"""Classes that compete on the same curves: each learned without every fold, then on all rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from titrant.errors import InvalidArgument
from titrant.learn.candidates import (
    HeldOutScores,
    dose_curves,
    fair_scores,
    score_table,
    scores,
    smoothed_curves,
    weights_of,
)
from titrant.learn.classes import CurveClass, DoseCurves
from titrant.learn.limits.keeping import (
    found_kept,
    found_within,
    kept,
    learn_within,
    least_within,
    settled,
)
from titrant.learn.setting import Learned
from titrant.optimize import Solution, Status
from titrant.policies import ParametricPolicy
from titrant.policies.calling import recommended
from titrant.policies.lookup import least_dose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.candidates import Candidate, LearningRows
    from titrant.learn.classes import FittedClass, PolicyClass
    from titrant.learn.limits import Limits
    from titrant.learn.limits.population import Population
    from titrant.learn.setting import Units
    from titrant.learn.tables import Curves, Predictions
    from titrant.learn.vector import VectorArena
    from titrant.optimize import Constraint
    from titrant.outcome.crossfit import Folds
    from titrant.policies import Policy

    Done = Callable[[int], None]
    Scores = Callable[[Array, LearningRows, Units], Array]


@dataclass(frozen=True, slots=True)
class HeldOutFold:
    """One fold held out."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Split(HeldOutFold):
    """One fold held out: what is learned from without it, and what it is graded by."""

    seen: Curves
    """Of the training rows, by models that have seen neither them nor the fold."""
    graded: Curves
    """Of the fold, by models that have not seen it, stacked on the training rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """The rows, curves and folds that all classes share."""

    log: LoggedData
    """Losses, counted from their mean."""
    rows: LearningRows
    """The same rows without features, with the curves of models that have not seen them."""
    units: Units
    splits: tuple[Split, ...]
    stack: Array
    """The share of each outcome model on all rows."""
    candidates: tuple[Candidate, ...]
    constraint: Constraint
    center: float
    """The mean loss."""
    limits: Limits | None = None
    """What every rule keeps to; what that is in each row, the rows know."""
    population: Population | None = None
    """By whose means a rule is deployed, where these are not all rows of the log, each once."""

    @staticmethod
    def folded(
        fold: Folds, own: Predictions, others: Iterator[Predictions], y: Array
    ) -> tuple[Split, ...]:
        """Return the folds with their curves, stacked for outcomes y (n,); see `unseen`."""
        found = []
        for k in range(int(fold.max()) + 1):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            seen = next(others)
            stack = seen.weights(y[train])
            curves = seen.stacked(stack)
            del seen  # before the next is made
            found.append(Split(train, test, curves, own.only(test).stacked(stack)))
        return tuple(found)

    def score(self, tau: Array, by: Scores = fair_scores) -> Array:
        """Return each row's say (n,) on doses τ (n,) that were learned without its fold."""
        found = np.empty(len(tau))
        for split in self.splits:
            graded = self.rows.only(split.test, split.graded)
            found[split.test] = by(tau[split.test], graded, self.units)
        return found

    def found(self, kind: CurveClass, without: int | None = None) -> tuple[Policy, ...]:
        """Return the policies that a class finds on the rows without a fold, or on all."""
        log, rows = self.log, self.rows
        if without is not None:
            split = self.splits[without]
            log, rows = log.rows(split.train), rows.only(split.train, split.seen)
        return found_within(kind, log, dose_curves(rows, self.units), rows.limits)

    def given(self, raw: Array, fold: int) -> Array:
        """Return the doses that the rows of a fold are given in place of a rule's (…, n)."""
        split = self.splits[fold]
        return self.rows.only(split.test, split.graded).given(raw, self.units)

    def personal(self) -> Array:
        """Return the dose (n,) with the least smoothed curve for each row."""
        found = np.empty(len(self.log))
        for split in self.splits:
            graded = self.rows.only(split.test, split.graded)
            grid, model = smoothed_curves(graded, self.units)
            least = least_dose(grid, model)
            if graded.limits is not None:
                least = least_within(DoseCurves(grid, model, model), graded.limits)
            found[split.test] = graded.given(least, self.units)
        return found

    @property
    def bounds_personal(self) -> bool:
        """Whether a personal rule keeps to all limits, so that rules may be held against it."""
        return self.limits is None or not {"monotone", "equal"} & set(self.limits.parts)

    def settled(self, policy: Policy) -> Policy:
        """Return a policy that was found on all rows with the last move to its mean dose."""
        return found_kept(policy, self.population)

    def deployed(self, policy: Policy) -> Policy:
        """Return a policy as it is deployed: within the limits of each row."""
        return policy if self.limits is None else self.limits.kept(policy)


Shared_contra = TypeVar("Shared_contra", bound="Arena | VectorArena", contravariant=True)
"""The rows, models and folds that a class was learned from."""


class Contender(ABC, Generic[Shared_contra]):
    """A class with what it learned without each fold."""

    __slots__ = ()
    name: str
    size: int | None
    """Parameters of a rule, leaves of a tree; None for a dose of each person's own."""
    doses: Array
    """The dose of each row (n,), learned without its fold."""

    @abstractmethod
    def learned(self, arena: Shared_contra) -> Learned:
        """Return what is learned on all rows, with a report on its candidates."""


def contender(kind: PolicyClass, arena: Arena, done: Done = lambda _: None) -> Contender[Arena]:
    """Return the class with what it learns without each fold; ``done`` is told each fold."""
    if isinstance(kind, CurveClass):
        return CurveContender.of(kind, arena, done)
    return AffineContender.of(kind.name, affine(kind, arena.log), arena, done)


def affine(kind: PolicyClass, log: LoggedData) -> FittedClass:
    """Return the scales of a class whose policies can be averaged; refuse any other."""
    fitted = kind.on(log)
    if not fitted.affine:
        raise InvalidArgument(
            "`StackedDR` averages policies by their parameters, which takes a class that is "
            f"linear in them; got {kind!r}. Use `PolicyLearner(procedure=CPO(...))`."
        )
    return fitted


# Classes that are affine in their parameters: the candidates of each fold are averaged.


@dataclass(frozen=True, slots=True)
class AffineContender(Contender[Arena]):
    """Candidates from smooth to sharp, averaged by their scores."""

    name: str
    size: int
    fitted: FittedClass
    candidates: tuple[Candidate, ...]
    rows: LearningRows
    held_out: HeldOutScores
    doses: Array

    @classmethod
    def of(cls, name: str, fitted: FittedClass, arena: Arena, done: Done) -> AffineContender:
        """Learn all candidates without each fold and score them on it."""
        rows, units = arena.rows.of_class(fitted, arena.log, arena.units), arena.units
        candidates = tuple(
            c for c in arena.candidates if c.bandwidth is None or c.bandwidth >= fitted.narrowest
        )
        score = np.empty((len(candidates), len(rows.phi)))
        parts = []
        for fold, split in enumerate(arena.splits):
            learned = rows.only(split.train, split.seen)
            params, _ = learn_within(candidates, learned, units, arena.constraint)
            graded = rows.only(split.test, split.graded)
            score[:, split.test] = scores(params, graded, units)
            parts.append((split.test, params, graded, learned))
            done(fold)
        weights = weights_of(score)
        average = np.empty(len(rows.phi))
        for test, params, graded, _ in parts:
            average[test] = scores((weights @ params)[None], graded, units)[0]
        held_out = HeldOutScores(score, weights, average)
        doses = np.empty(len(rows.phi))
        for test, params, graded, learned in parts:
            combined = settled(held_out.combined(params), learned)
            doses[test] = graded.given(graded.phi @ combined, units)
        return cls(name, rows.phi.shape[1], fitted, candidates, rows, held_out, doses)

    def learned(self, arena: Arena) -> Learned:
        """Learn all candidates on all rows and combine them by their held-out scores."""
        params, solutions = learn_within(self.candidates, self.rows, arena.units, arena.constraint)
        rule = partial(_rule, self.fitted, arena.units)
        combined = kept(self.held_out.combined(params), self.rows, arena.population, rule)
        return Learned(
            policy=arena.deployed(arena.units.policy(self.fitted, combined)),
            solution=solutions[self.held_out.best],
            report=self.held_out.to_dict([c.name for c in self.candidates]),
        )


def _rule(fitted: FittedClass, units: Units, params: Array) -> Policy:
    """Return the policy with parameters β/s (P,) before it is cut to any range."""
    return fitted.policy(params * units.dose_sd)


# Classes with a search of their own: the best of their policies.


@dataclass(frozen=True, slots=True)
class CurveContender(Contender["Arena | VectorArena"]):
    """A few policies with their held-out scores (candidates, n); the best is taken as it is."""

    name: str
    size: int | None
    kind: CurveClass
    score: Array
    doses: Array

    @classmethod
    def of(cls, kind: CurveClass, arena: Arena | VectorArena, done: Done) -> CurveContender:
        """Find the policies without each fold and score them on it."""
        tau = np.empty((len(kind.candidates), *arena.log.treatment.shape))
        for fold, split in enumerate(arena.splits):
            found = arena.found(kind, fold)
            x, names = arena.log.context[split.test], arena.log.names
            raw = np.stack([recommended(policy, x, names) for policy in found])
            tau[:, split.test] = arena.given(raw, fold)
            done(fold)
        score = np.stack([arena.score(t) for t in tau])
        best = int(np.argmin(score.mean(axis=1)))
        return cls(kind.name, [*kind.candidates.values()][best], kind, score, tau[best])

    def learned(self, arena: Arena | VectorArena) -> Learned:
        """Find the policies on all rows and take the one that was best on rows held out."""
        names, best = [*self.kind.candidates], int(np.argmin(self.score.mean(axis=1)))
        policy = arena.settled(arena.found(self.kind)[best])
        alone = np.eye(len(names))[best]
        candidates = {
            "chosen": names[best],
            "because": f"`{names[best]}` has the best held-out score of {len(names)}",
            "scores": score_table(names, self.score, alone, self.score[best]),
        }
        return Learned(
            policy=arena.deployed(policy),
            solution=_end(policy, float(self.score[best].mean())),
            report=candidates,
        )


def _end(policy: Policy, value: float) -> Solution:
    """Return the end of a search that is no descent."""
    params = np.empty(0)
    if isinstance(policy, ParametricPolicy) and policy.parametric:
        params = policy.params
    return Solution(
        params=params,
        value=value,
        status=Status.CONVERGED,
        starts=params[None],
        ends=params[None],
        values=np.array([value]),
        evaluations=1,
    )
