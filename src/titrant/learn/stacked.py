"""The default procedure, stacked DR: every choice is made from the log."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.data.columns import places
from titrant.errors import DataError, InvalidArgument
from titrant.learn.candidates import CANDIDATES, Candidate, LearningRows, smoothed_curves
from titrant.learn.choice import ClassChoice
from titrant.learn.classes import Automatic, CurveClass, LinearClass
from titrant.learn.contenders import Arena, affine, contender
from titrant.learn.limits.declared import LimitedClass
from titrant.learn.limits.found import told
from titrant.learn.limits.population import Population
from titrant.learn.limits.prices import capped
from titrant.learn.setting import Learned, Procedure, Units, outcome_sd, silent
from titrant.learn.tables import DOSES, unseen
from titrant.optimize import Constraint, Free
from titrant.policies.advice import People
from titrant.scaling import Held, spread_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.classes import PolicyClass
    from titrant.learn.contenders import Contender
    from titrant.learn.limits import Limits
    from titrant.learn.limits.prices import Capped
    from titrant.learn.setting import Progress, TrainingLog
    from titrant.outcome import OutcomeModel
    from titrant.outcome.base import Regressor
    from titrant.outcome.crossfit import Folds
    from titrant.policies import Policy

# The default procedure, stacked DR: every choice is made from the log.
#
# 1. A library of outcome models predicts rows it has not seen, on a grid of doses.
# 2. The models are stacked by how well they predict: no weight at all leaves centered IPW, all
#    weight on a perfect model the direct method.
# 3. Nine candidates are learned from the stack, from smooth to sharp.
# 4. Each is scored on folds that it has not seen, by a doubly robust estimate.
# 5. The candidates are averaged by their scores and learned again on all rows.
#
# Where classes compete, each goes through steps 3 to 5 on the same curves and folds, and the
# simplest that scores within one standard error of the best is learned on all rows.

FEWEST = 4
"""Rows of a fold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedDR(Procedure):
    """The default procedure; see the module.

    Parameters
    ----------
    models : name → outcome model or scikit-learn regressor, in place of the library
    candidates : the ways to a policy that compete
    constraint : a `Box` or `Ball` on the parameters of the class
    folds, seed : of the held-out scores; the seed also goes to the library
    most_rows : of a larger log so many rows are drawn, and the report says so: the curves of all
        models take about 15 kB a row. The honest value is over all rows
    """

    models: Mapping[str, OutcomeModel | Regressor] | None = None
    candidates: tuple[Candidate, ...] = CANDIDATES
    constraint: Constraint = field(default_factory=Free)
    folds: int = 5
    seed: int = 0
    most_rows: int = 30_000

    def __post_init__(self) -> None:
        _check.count(self.most_rows, "most_rows", "StackedDR")
        _check.count(self.folds, "folds", "StackedDR", at_least=3)
        _check.count(self.seed, "seed", "StackedDR", at_least=0)
        if self.models is not None and not self.models:
            rule = "a mapping with at least one model, or None"
            raise _check.invalid("models", "StackedDR", rule, self.models)
        if not self.candidates:
            raise _check.invalid("candidates", "StackedDR", "at least one", self.candidates)

    @property
    def usual_class(self) -> PolicyClass:
        """The class is chosen too; a constraint, on the parameters of one class, is on a line's."""
        return Automatic() if isinstance(self.constraint, Free) else LinearClass()

    def learn(
        self, training: TrainingLog, policy_class: PolicyClass, progress: Progress
    ) -> Learned:
        """Return the averaged candidates, or the best alone where the average scores worse.

        Where the class is a choice among several, they are those of the simplest good one. Of a
        log that is not in memory they are learned from the sample of its rows.
        """
        training, notes = training.held()
        log = training.losses()
        self._check_doses(log)
        classes = policy_class.competing(log)
        if isinstance(policy_class, LimitedClass):
            notes = [*notes, *policy_class.notes(log)]
        self._check_classes(classes, log)
        arena = self.arena(training, policy_class, progress)
        steps = self.folds * len(classes) + 1
        found: list[Contender[Arena]] = []
        for kind in classes:
            before = self.folds * len(found)
            done = partial(_advance, progress, before, steps)
            found.append(contender(kind, arena, done))
        choice = ClassChoice.of(found, arena)
        kind, chosen, limits = classes[choice.place], found[choice.place], None
        if policy_class.kept is not None:
            within = self._capped(kind, chosen, arena, policy_class.kept, progress)
            chosen = chosen if within is None else within.chosen
            limits = told(policy_class, kind, chosen, arena, within)
            learned = chosen.learned(arena if within is None else within.arena)
        else:
            learned = chosen.learned(arena)
        if arena.population is not None:
            notes = [*notes, *arena.population.notes(learned.policy)]
        progress("candidates", steps, steps)
        report = {
            "procedure": "stacked doubly robust",
            "outcome_models": dict(zip(self._models(), arena.stack.tolist(), strict=True)),
            "candidates": learned.report,
            "dose_range": [arena.units.low, arena.units.high],
            "dose_sd": arena.units.dose_sd,
            "folds": self.folds,
            "seed": self.seed,
            "learned_on": len(arena.log),
            "rows": training.survey.n,
        }
        people = people_of(learned.policy, arena, self.seed)
        learned = replace(learned, choice=choice, limits=limits, people=people, report=report)
        return learned.noted(notes)

    def arena(
        self, training: TrainingLog, policy_class: PolicyClass, progress: Progress = silent
    ) -> Arena:
        """Return what all classes are learned from: the rows with the curves of unseen models."""
        log, q = training.losses(), training.propensities()
        drawn = self._drawn(len(log))
        if drawn is not None:
            log, q = log.rows(drawn), q[drawn]
        self._check_rows(len(log))
        units, limits = Units.of(log, policy_class.limits), policy_class.kept
        arena = self._arena(log, q, units, limits, progress)
        if limits is None or (drawn is None and training.each_once):
            return arena
        return replace(arena, population=Population.of(training, limits, log, units))

    def _drawn(self, n: int) -> NDArray[np.intp] | None:
        """Return which of n rows are learned from; None for all."""
        if n <= self.most_rows:
            return None
        drawn = np.random.default_rng(self.seed).choice(n, self.most_rows, replace=False)
        return np.sort(drawn)

    def _capped(
        self,
        kind: PolicyClass,
        chosen: Contender[Arena],
        arena: Arena,
        limits: Limits,
        progress: Progress,
    ) -> Capped | None:
        """Return the rule of a class within a limit that has a price, if there is one."""
        if limits.priced is None:
            return None

        def fitted(y: Array) -> Arena:
            drawn = self._drawn(len(y))
            log = arena.log.with_outcome(y if drawn is None else y[drawn])
            units = replace(arena.units, outcome_sd=outcome_sd(log))
            return self._arena(log, arena.rows.rows.need("q", "cap"), units, None, progress)

        market = limits.priced.market(arena, chosen.doses, fitted)
        return capped(kind, chosen, arena, market, limits.priced)

    def _arena(
        self, log: LoggedData, q: Array, units: Units, limits: Limits | None, progress: Progress
    ) -> Arena:
        # Outcomes are counted from their mean, so that their zero changes nothing, not even when
        # a search stops.
        center = float(log.outcome.mean())
        losses = log.with_outcome(log.outcome - center)
        fold, grid = self._fold(losses), np.linspace(units.low, units.high, DOSES)
        predicted = unseen(self._models(), losses, fold, grid, progress)
        own = next(predicted)
        stack = own.weights(losses.outcome)
        rows = LearningRows.without_features(losses, q)
        if limits is not None:
            rows = replace(rows, limits=limits.on(losses, units))
        return Arena(
            log=losses,
            rows=rows.with_curves(own.stacked(stack)),
            units=units,
            splits=Arena.folded(fold, own, predicted, losses.outcome),
            stack=stack,
            candidates=self.candidates,
            constraint=self.constraint,
            center=center,
            limits=limits,
        )

    def _check_doses(self, log: LoggedData) -> None:
        """Refuse a log with several doses."""
        if log.dimension > 1:
            raise InvalidArgument(
                f"`StackedDR` learns one dose; the log has {log.dimension}. "
                "Use `PolicyLearner(procedure=CPO(...))` for vector doses."
            )

    def _check_classes(self, classes: tuple[PolicyClass, ...], log: LoggedData) -> None:
        """Refuse classes that cannot be learned from this log before any model is fitted."""
        if len(classes) > 1 and not isinstance(self.constraint, Free):
            raise InvalidArgument(
                f"A constraint is on the parameters of one class; here {len(classes)} compete. "
                "Name the class to learn, such as `policy=LinearClass()`."
            )
        for kind in classes:
            if not isinstance(kind, CurveClass):
                affine(kind, log)

    def _check_rows(self, n: int) -> None:
        """Refuse a log whose folds would be too small to fit models on."""
        least = FEWEST * self.folds
        if n < least:
            raise DataError(
                f"`StackedDR` with {self.folds} folds needs at least {least} rows, in each half if "
                f"the value is to be honest; got {n:,}. Collect more rows, or use fewer folds."
            )

    def _fold(self, log: LoggedData) -> Folds:
        """Return the fold of each row (n,)."""
        from titrant.outcome.crossfit import fold_of, inner_folds  # noqa: PLC0415

        if log.groups is None:
            return fold_of(log.first_row, len(log), self.folds, self.seed)
        return inner_folds(len(log), self.folds, self.seed, log.groups)

    def _models(self) -> dict[str, OutcomeModel]:
        from titrant.outcome import as_outcome_model, library  # noqa: PLC0415

        if self.models is None:
            return library(seed=self.seed)
        return {name: as_outcome_model(model) for name, model in self.models.items()}


def _advance(progress: Progress, before: int, steps: int, fold: int) -> None:
    progress("candidates", before + fold + 1, steps)


# The people of a log as a few groups of like people, for what is told of each new person.

GROUP_ROWS, GROUPS, MOST_GROUPED = 25, 30, 5000
"""Rows of a group, on average, the most groups, and the most rows that they are made of."""
FEWEST_ALIKE = 5
"""Rows of a group that is kept: fewer say little of doses, and much of a person."""
EVERY = 2
"""Every second dose of a curve is kept."""
GIVEN = (0.01, 0.99)
"""The quantiles of a group's doses between which a dose was given in it."""
WITHIN, BEYOND = 0.99, 1.25
"""The share of a group that its reach is taken from, and how much further it goes: new people who
are like the others lie a little beyond."""
MARGIN = 0.05
"""In units of sd(y)."""


def people_of(policy: Policy, arena: Arena, seed: int) -> People | None:
    """Return groups of like rows with their doses and mean smoothed curves; None without names."""
    from sklearn.cluster import KMeans  # noqa: PLC0415

    names = policy.features
    if names is None:
        return None
    at = list(places(names, arena.log.names, "policy"))
    n = len(arena.log)
    some = np.unique(np.linspace(0, n - 1, min(n, MOST_GROUPED)).astype(np.intp))
    x, t = arena.log.context[some][:, at], arena.log.treatment[some]
    spread = spread_of(Held.of(x).columns(x)) if at else np.empty(0)
    scale = np.where(spread > 0.0, spread, 1.0)
    grid, curves = smoothed_curves(arena.rows, arena.units)
    losses = curves[some][:, ::EVERY]
    group = np.zeros(len(some), dtype=np.intp)
    if at:
        # Of texts alone there may be fewer different people than groups.
        most = min(GROUPS, len(np.unique(x, axis=0)))
        count = int(np.clip(len(some) // GROUP_ROWS, 1, most))
        group = KMeans(count, n_init=1, random_state=seed).fit_predict(x / scale)
    every = [np.flatnonzero(group == g) for g in np.unique(group)]
    each = [rows for rows in every if len(rows) >= FEWEST_ALIKE]
    if not each:
        return None
    centers = np.stack([x[rows].mean(axis=0) for rows in each])
    far = [
        np.sqrt((((x[rows] - center) / scale) ** 2).sum(axis=1))
        for rows, center in zip(each, centers, strict=True)
    ]
    return People(
        names=names,
        centers=centers,
        scale=scale,
        reach=BEYOND * np.array([np.quantile(one, WITHIN) for one in far]),
        doses=np.stack([np.quantile(t[rows], GIVEN) for rows in each]),
        grid=grid[::EVERY],
        losses=np.stack([losses[rows].mean(axis=0) for rows in each]) + arena.center,
        margin=MARGIN * arena.units.outcome_sd,
    )
