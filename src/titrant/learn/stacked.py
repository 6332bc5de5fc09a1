"""The default procedure, stacked DR: every choice is made from the log.

1. A library of outcome models predicts rows it has not seen, on a grid of doses.
2. The models are stacked by how well they predict: no weight at all leaves centered IPW, all
   weight on a perfect model the direct method.
3. Nine candidates are learned from the stack, from smooth to sharp.
4. Each is scored on folds that it has not seen, by a doubly robust estimate.
5. The candidates are averaged by their scores and learned again on all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.learn.candidates import CANDIDATES, Candidate, learn_candidates
from titrant.learn.combine import HeldOut, weights_of
from titrant.learn.procedure import Learned, Procedure
from titrant.learn.rows import LearningRows
from titrant.learn.score import scores
from titrant.learn.setting import Units
from titrant.learn.tables import DOSES, CrossTables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.classes import PolicyClass
    from titrant.learn.procedure import Progress
    from titrant.outcome import OutcomeModel
    from titrant.outcome.adapter import Regressor


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedDR(Procedure):
    """The default procedure; see the module.

    ``models`` (name → outcome model or scikit-learn regressor) replace the library.
    """

    models: Mapping[str, OutcomeModel | Regressor] | None = None
    candidates: tuple[Candidate, ...] = CANDIDATES
    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        _check.count(self.folds, "folds", "StackedDR", at_least=3)
        _check.count(self.seed, "seed", "StackedDR", at_least=0)

    def learn(
        self, log: LoggedData, q: Array, policy_class: PolicyClass, progress: Progress
    ) -> Learned:
        """Return the averaged candidates, or the best alone where the average scores worse."""
        if log.dimension > 1:
            raise InvalidArgument(
                f"`StackedDR` learns one dose; the log has {log.dimension}. "
                "Use `PolicyLearner(procedure=CPO(...))` for vector doses."
            )
        from titrant.outcome import fold_of  # noqa: PLC0415

        units, fitted = Units.of(log), policy_class.on(log)
        grid = np.linspace(units.low, units.high, DOSES)
        fold = fold_of(log.first_row, len(log), self.folds, self.seed)
        models = self._models()
        tables = CrossTables.of(models, log, fold, grid, progress)
        rows = LearningRows.of(log, q, fitted)
        held_out = self._held_out(tables, rows, units)
        progress("candidates", self.folds, self.folds + 1)
        stack = tables.without_own.weights(log.outcome)
        learned = rows.with_curves(tables.without_own.stacked(stack))
        params, solutions = learn_candidates(self.candidates, learned, units)
        return Learned(
            policy=units.clipped(fitted, held_out.combined(params)),
            solution=solutions[held_out.best],
            report={
                "procedure": "stacked doubly robust",
                "outcome_models": dict(zip(models, stack.tolist(), strict=True)),
                "candidates": held_out.to_dict(self.candidates),
                "dose_range": [units.low, units.high],
                "dose_sd": units.dose_sd,
                "folds": self.folds,
                "seed": self.seed,
            },
        )

    def _held_out(self, tables: CrossTables, rows: LearningRows, units: Units) -> HeldOut:
        """Learn all candidates without each fold and score them on it."""
        score = np.empty((len(self.candidates), len(rows.t)))
        parts = []
        for k, without in enumerate(tables.without_both):
            train, test = np.flatnonzero(tables.fold != k), np.flatnonzero(tables.fold == k)
            seen = without.only(train)
            stack = seen.weights(rows.y[train])
            learned = rows.only(train).with_curves(seen.stacked(stack))
            params, _ = learn_candidates(self.candidates, learned, units)
            graded = rows.only(test).with_curves(tables.without_own.only(test).stacked(stack))
            score[:, test] = scores(params, graded, units)
            parts.append((test, params, graded))
        weights = weights_of(score)
        average = np.empty(len(rows.t))
        for test, params, graded in parts:
            average[test] = scores((weights @ params)[None], graded, units)[0]
        return HeldOut(score, weights, average)

    def _models(self) -> dict[str, OutcomeModel]:
        from titrant.outcome import as_outcome_model, library  # noqa: PLC0415

        if self.models is None:
            return library(seed=self.seed)
        return {name: as_outcome_model(model) for name, model in self.models.items()}
