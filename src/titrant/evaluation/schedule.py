"""Several searches that each ask for passes over the rows, asking together.

A selector asks for one statistic, thinks, and may ask for another. With many policies on a log
too large for memory, every request would be a pass of its own. Here all searches run up to their
next request, one pass answers all of them, and each goes on from where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from titrant.errors import UntrustedEstimate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from titrant.estimators import Ask, JointPass, Rows
    from titrant.estimators.joint import Search

R = TypeVar("R")


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
