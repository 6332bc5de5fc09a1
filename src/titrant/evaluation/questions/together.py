"""Several evaluations of the same rows side by side: estimates with their joint covariance.

The evaluations differ in the outcome, and with it in models and bandwidths. Their rows stand beside
each other as those of several policies do, so one pass gives the covariance of all estimates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from titrant.errors import DataError, InvalidArgument, UntrustedEstimate
from titrant.estimators.joint import ask
from titrant.evaluation.models.fitting import MOST_TO_FIT
from titrant.evaluation.models.jackknife import filled, models_share
from titrant.evaluation.passes import HeldBlocks, served
from titrant.execute import add_up
from titrant.inference import RobustBiasCorrected
from titrant.inference.base import StudentInference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from titrant.bandwidth import Bandwidth
    from titrant.estimators import Joint, Question, Rows
    from titrant.evaluation.evaluation import Evaluation
    from titrant.evaluation.models.nuisance import PolicyRows
    from titrant.evaluation.survey import Sample
    from titrant.inference import IntervalMethod

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Pick:
    """Policy number ``policy`` of evaluation number ``evaluation``, at a bandwidth."""

    evaluation: int
    policy: int
    bandwidth: Bandwidth | None


@dataclass(frozen=True)
class Evaluations:
    """Evaluations of the same rows."""

    evaluations: tuple[Evaluation, ...]

    def question(self, pick: Pick) -> Question:
        """Return the question how good a policy is in one of the evaluations."""
        own = self.evaluations[pick.evaluation].question(pick.policy, pick.bandwidth)
        return replace(own, policy=self._first(pick.evaluation) + pick.policy)

    def inferred(
        self, picks: Sequence[Pick], interval: IntervalMethod | None = None
    ) -> tuple[Joint, StudentInference]:
        """Return the estimates, and what their intervals rest on, with joint covariance."""
        questions = [self.question(pick) for pick in picks]
        point = ask(questions, self.over_rows)
        share = models_share(self, questions, self.evaluations[0].survey.sample)
        whole = point.with_models(filled(share, point.covariance), max(self.folds - 1, 1))
        (found,) = served([(interval or RobustBiasCorrected()).search(whole)], self.over_rows)
        if isinstance(found, UntrustedEstimate):
            raise found
        if not isinstance(found, StudentInference):
            raise InvalidArgument(
                "Joint estimates need `interval=RobustBiasCorrected()`, `Narrow()` or `Normal()`; "
                f"got {interval!r}."
            )
        return whole, found

    @property
    def folds(self) -> int:
        """In how many folds models were cross-fitted, in any of the evaluations."""
        return max(e.policy_rows.folds for e in self.evaluations)

    def judged_by(self, k: int, sample: Sample) -> Callable[[int], Rows]:  # noqa: ARG002
        """Return what gives the rows under policy i of all, by the models without fold k."""
        return partial(self._judged, k, {})

    def _judged(self, k: int, known: dict[int, Callable[[int], Rows]], i: int) -> Rows:
        j = int(np.searchsorted(self._ends, i, side="right"))
        if j not in known:  # not every evaluation is asked
            own = self.evaluations[j]
            known[j] = own.policy_rows.judged_by(k, own.survey.sample.thinned(MOST_TO_FIT))
        return known[j](i - self._first(j))

    def over_rows(self, statistic: Callable[[Sequence[Rows]], S]) -> S:
        """Return the sum of a statistic over all blocks, each seen in every evaluation."""
        engine = self.evaluations[0].engine
        if all(e.held for e in self.evaluations):
            blocks = zip(*(e.held_blocks.blocks for e in self.evaluations), strict=True)
            whole = HeldBlocks([list(chain(*some)) for some in blocks], keep=False)
            return engine.add_up(statistic, whole)
        parts = [list(e.source.partitions) for e in self.evaluations]
        if len({len(some) for some in parts}) > 1:
            raise DataError("The logs are cut into different parts; scan the same files for each.")
        task = OverTogether(tuple(e.policy_rows for e in self.evaluations), statistic)
        return engine.add_up(task, list(zip(*parts, strict=True)))

    @property
    def _ends(self) -> list[int]:
        return list(accumulate(len(e.policies) for e in self.evaluations))

    def _first(self, j: int) -> int:
        return 0 if j == 0 else self._ends[j - 1]


@dataclass(frozen=True, slots=True)
class OverTogether(Generic[S]):
    """A statistic of blocks under policies in several evaluations, as a task of partitions."""

    policy_rows: tuple[PolicyRows, ...]
    statistic: Callable[[Sequence[Rows]], S]

    def __call__(self, partitions: Sequence[Any]) -> S:
        """Return the sum over the blocks of the same partition of each log, in order."""
        return add_up(self.statistic, self._blocks(partitions))

    def _blocks(self, partitions: Sequence[Any]) -> Iterator[list[Rows]]:
        pairs = zip(self.policy_rows, partitions, strict=True)
        for some in zip(*(own.blocks(part) for own, part in pairs), strict=True):
            yield list(chain(*some))
