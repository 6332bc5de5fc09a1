"""The default procedure, stacked DR: every choice is made from the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.errors import DataError, InvalidArgument
from titrant.learn.candidates import (
    CANDIDATES,
    Candidate,
    HeldOutScores,
    LearningRows,
    learn_candidates,
    scores,
    weights_of,
)
from titrant.learn.setting import Learned, Procedure, Units
from titrant.learn.tables import DOSES, CrossTables
from titrant.optimize import Constraint, Free

if TYPE_CHECKING:
    from collections.abc import Mapping

    from titrant.data import LoggedData
    from titrant.learn.classes import PolicyClass
    from titrant.learn.setting import Progress, TrainingLog
    from titrant.outcome import OutcomeModel
    from titrant.outcome.base import Regressor

# The default procedure, stacked DR: every choice is made from the log.
#
# 1. A library of outcome models predicts rows it has not seen, on a grid of doses.
# 2. The models are stacked by how well they predict: no weight at all leaves centered IPW, all
#    weight on a perfect model the direct method.
# 3. Nine candidates are learned from the stack, from smooth to sharp.
# 4. Each is scored on folds that it has not seen, by a doubly robust estimate.
# 5. The candidates are averaged by their scores and learned again on all rows.

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
        models take 15 kB a row
    """

    models: Mapping[str, OutcomeModel | Regressor] | None = None
    candidates: tuple[Candidate, ...] = CANDIDATES
    constraint: Constraint = field(default_factory=Free)
    folds: int = 5
    seed: int = 0
    most_rows: int = 100_000

    def __post_init__(self) -> None:
        _check.count(self.most_rows, "most_rows", "StackedDR")
        _check.count(self.folds, "folds", "StackedDR", at_least=3)
        _check.count(self.seed, "seed", "StackedDR", at_least=0)
        if self.models is not None and not self.models:
            rule = "a mapping with at least one model, or None"
            raise _check.invalid("models", "StackedDR", rule, self.models)
        if not self.candidates:
            raise _check.invalid("candidates", "StackedDR", "at least one", self.candidates)

    def learn(
        self, training: TrainingLog, policy_class: PolicyClass, progress: Progress
    ) -> Learned:
        """Return the averaged candidates, or the best alone where the average scores worse.

        Of a log that is not in memory they are learned from the sample of its rows.
        """
        log = training.losses()
        if log.dimension > 1:
            raise InvalidArgument(
                f"`StackedDR` learns one dose; the log has {log.dimension}. "
                "Use `PolicyLearner(procedure=CPO(...))` for vector doses."
            )
        if not policy_class.on(log).affine:
            raise InvalidArgument(
                "`StackedDR` averages policies by their parameters, which takes a class that is "
                f"linear in them; got {policy_class!r}. Use `PolicyLearner(procedure=CPO(...))`."
            )
        q = training.propensities()
        if len(log) > self.most_rows:
            drawn = np.random.default_rng(self.seed).choice(len(log), self.most_rows, replace=False)
            drawn.sort()
            log, q = log.rows(drawn), q[drawn]
        self._check_rows(len(log))
        # Outcomes are counted from their mean, so that their zero changes nothing, not even when
        # a search stops.
        center = float(log.outcome.mean())
        losses = log.with_outcome(log.outcome - center)
        units, fitted = Units.of(losses, policy_class.limits), policy_class.on(log)
        rows = LearningRows.of(losses, q, fitted, units)
        models = self._models()
        tables = self._tables(models, losses, units, progress)
        held_out = self._held_out(tables, rows, units, progress)
        stack = tables.without_own.weights(losses.outcome)
        learned = rows.with_curves(tables.without_own.stacked(stack))
        params, solutions = learn_candidates(self.candidates, learned, units, self.constraint)
        progress("candidates", self.folds + 1, self.folds + 1)
        return Learned(
            policy=units.policy(fitted, held_out.combined(params)),
            solution=solutions[held_out.best],
            report={
                "procedure": "stacked doubly robust",
                "outcome_models": dict(zip(models, stack.tolist(), strict=True)),
                "candidates": held_out.to_dict(self.candidates, center),
                "dose_range": [units.low, units.high],
                "dose_sd": units.dose_sd,
                "folds": self.folds,
                "seed": self.seed,
                "learned_on": len(log),
                "rows": training.survey.n,
            },
        )

    def _check_rows(self, n: int) -> None:
        """Refuse a log whose folds would be too small to fit models on."""
        least = FEWEST * self.folds
        if n < least:
            raise DataError(
                f"`StackedDR` with {self.folds} folds needs at least {least} rows, in each half if "
                f"the value is to be honest; got {n:,}. Use fewer folds, or collect more rows."
            )

    def _tables(
        self,
        models: Mapping[str, OutcomeModel],
        log: LoggedData,
        units: Units,
        progress: Progress,
    ) -> CrossTables:
        """Fit the outcome models without each fold and each pair of folds."""
        from titrant.outcome.crossfit import fold_of, inner_folds  # noqa: PLC0415

        grid = np.linspace(units.low, units.high, DOSES)
        fold = (
            fold_of(log.first_row, len(log), self.folds, self.seed)
            if log.groups is None
            else inner_folds(len(log), self.folds, self.seed, log.groups)
        )
        return CrossTables.of(models, log, fold, grid, progress)

    def _held_out(
        self, tables: CrossTables, rows: LearningRows, units: Units, progress: Progress
    ) -> HeldOutScores:
        """Learn all candidates without each fold and score them on it."""
        score = np.empty((len(self.candidates), len(rows.phi)))
        parts = []
        for k, without in enumerate(tables.without_both):
            train, test = np.flatnonzero(tables.fold != k), np.flatnonzero(tables.fold == k)
            seen = without.only(train)
            stack = seen.weights(rows.rows.y[train])
            learned = rows.only(train, seen.stacked(stack))
            params, _ = learn_candidates(self.candidates, learned, units, self.constraint)
            graded = rows.only(test, tables.without_own.only(test).stacked(stack))
            score[:, test] = scores(params, graded, units)
            parts.append((test, params, graded))
            progress("candidates", k + 1, self.folds + 1)
        weights = weights_of(score)
        average = np.empty(len(rows.phi))
        for test, params, graded in parts:
            average[test] = scores((weights @ params)[None], graded, units)[0]
        return HeldOutScores(score, weights, average)

    def _models(self) -> dict[str, OutcomeModel]:
        from titrant.outcome import as_outcome_model, library  # noqa: PLC0415

        if self.models is None:
            return library(seed=self.seed)
        return {name: as_outcome_model(model) for name, model in self.models.items()}
