"""Passes over the rows of an evaluation: what they add up, and how many searches share one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from titrant.errors import UntrustedEstimate
from titrant.estimators.joint import of_policy, statistics_of
from titrant.execute import add_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant.data.source import Partition
    from titrant.estimators import Ask, Joint, JointPass, Question, Rows
    from titrant.estimators.joint import AnyStatistics, Search
    from titrant.evaluation.models.nuisance import PolicyRows

R = TypeVar("R")
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class OverBlocks(Generic[S]):
    """A statistic of blocks under policies as a task of partitions: the sum over their blocks."""

    policy_rows: PolicyRows
    statistic: Callable[[Sequence[Rows]], S]

    def __call__(self, partition: Partition) -> S:
        """Return the sum over the blocks of one partition, in order."""
        return add_up(self.statistic, self.policy_rows.blocks(partition))


@dataclass(frozen=True, slots=True)
class HeldBlocks(Sequence["list[Rows]"]):
    """Blocks that stay in memory. A pass gets copies: the weights that it asks for go with it.

    What kernels made of distances stays where that is little, for the passes that follow.
    """

    blocks: list[list[Rows]]
    keep: bool

    @property
    def first(self) -> list[Rows]:
        """The rows of the first block under every policy, to be known again."""
        return self[0] if self.blocks else []

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, i: Any) -> Any:  # noqa: ANN401  (one block, or some)
        return [replace(one) if self.keep else one.forgotten() for one in self.blocks[i]]


def over_rows_of(i: int, over_rows: JointPass, statistic: Callable[[Rows], S]) -> S:
    """Return the sum of a statistic over all rows under policy i."""
    return over_rows(partial(of_policy, i, statistic))


@dataclass(frozen=True, slots=True)
class Point:
    """Estimates of several policies, and the share of rows whose propensity the floor raised."""

    joint: Joint
    floor_share: float


@dataclass(frozen=True, slots=True)
class PointStatistics:
    """What is kept of the rows for estimates, and how many rows the floor raised."""

    statistics: AnyStatistics
    raised: int

    def __add__(self, other: PointStatistics) -> PointStatistics:
        """Return the statistics of both sets of rows."""
        return PointStatistics(self.statistics + other.statistics, self.raised + other.raised)


def point_statistics(questions: Sequence[Question], rows: Sequence[Rows]) -> PointStatistics:
    """Return the statistics of some rows for several questions."""
    return PointStatistics(statistics_of(questions, rows), raised_rows(rows))


def raised_rows(rows: Sequence[Rows]) -> int:
    """Return how many rows have a propensity that the floor raised."""
    q = rows[0].q
    return 0 if q is None else int(np.count_nonzero(q <= rows[0].floor))


def smoothed_rows(rows: Rows) -> int:
    """Return how many rows a kernel decides about."""
    return len(rows.y) if rows.share is None else int(np.count_nonzero(rows.share))


@dataclass(frozen=True, slots=True)
class Nearest:
    """The least distance of a logged dose to the policy's."""

    distance: float

    def __add__(self, other: Nearest) -> Nearest:
        """Return the least distance in both sets of rows."""
        return Nearest(min(self.distance, other.distance))


def nearest_dose(rows: Rows) -> Nearest:
    """Return the least distance in some rows."""
    near = rows.smoothed()
    return Nearest(float(np.abs(near.tau - near.t).max(axis=1).min(initial=np.inf)))


# Several searches that each ask for passes, asking together.
#
# A selector asks for one statistic, thinks, and may ask for another. With many policies on a log
# too large for memory, every request would be a pass of its own. Here all searches run up to their
# next request, one pass answers all of them, and each goes on from where it was.


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Several statistics of the same rows, which share the weights that they ask for."""

    statistics: tuple[Callable[[Sequence[Rows]], Any], ...]

    def __call__(self, rows: Sequence[Rows]) -> Answers:
        """Return each statistic of some rows."""
        parts = []
        for statistic in self.statistics:
            parts.append(statistic(rows))  # noqa: PERF401  (the way to the kernel stays short)
        return Answers(tuple(parts))


@dataclass(frozen=True, slots=True)
class Answers:
    """What several statistics are so far."""

    parts: tuple[Any, ...]

    def __add__(self, other: Answers) -> Answers:
        """Return the statistics of both sets of rows."""
        return Answers(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


def served(searches: Sequence[Search[R]], over_rows: JointPass) -> list[R | UntrustedEstimate]:
    """Return what each search finds, or why it refuses, in as many passes as one of them takes."""
    found: dict[int, R | UntrustedEstimate] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(searches)))
    while answers:
        requests: dict[int, Ask] = {}
        for i, answer in answers.items():
            try:
                requests[i] = searches[i].send(answer)
            except StopIteration as end:
                found[i] = end.value
            except UntrustedEstimate as refusal:
                found[i] = refusal
        answers = {}
        if requests:
            statistics = tuple(request.statistic for request in requests.values())
            answers = dict(zip(requests, over_rows(SideBySide(statistics)).parts, strict=True))
    return [found[i] for i in range(len(searches))]
