"""Several searches that each ask for passes over the rows, asking together.

A selector asks for one statistic, thinks, and may ask for another. With many policies on a log
too large for memory, every question would be a pass of its own. Here all of them run up to their
next question, one pass answers all questions, and each runs again with the answers so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from titrant.errors import UntrustedEstimate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from titrant.estimators import JointPass, Rows

R = TypeVar("R")
S = TypeVar("S")


class Asked(BaseException):
    """A search has come to a question that is not answered yet; it is not an error."""

    def __init__(self, statistic: Callable[[Sequence[Rows]], Any]) -> None:
        self.statistic = statistic
        BaseException.__init__(self)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a search sees as a pass over the rows: the answers so far, in the order of asking."""

    known: Iterator[Any]

    def __call__(self, statistic: Callable[[Sequence[Rows]], S]) -> S:
        """Return the next answer, or leave the search."""
        for answer in self.known:
            return answer  # type: ignore[no-any-return]
        raise Asked(statistic)


@dataclass(frozen=True, slots=True)
class Together:
    """Several statistics of the same rows, added up side by side."""

    parts: tuple[Any, ...]

    def __add__(self, other: Together) -> Together:
        """Return the statistics of both sets of rows."""
        return Together(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


def in_lockstep(
    searches: Sequence[Callable[[JointPass], R]], over_rows: JointPass
) -> list[R | UntrustedEstimate]:
    """Return what each search finds, or why it refuses, in as many passes as one of them takes.

    A search takes a pass over the rows, calls it as often as it likes, and must be deterministic.
    """
    found: dict[int, R | UntrustedEstimate] = {}
    known: list[list[Any]] = [[] for _ in searches]
    while len(found) < len(searches):
        asked: dict[int, Callable[[Sequence[Rows]], Any]] = {}
        for i, search in enumerate(searches):
            if i in found:
                continue
            try:
                found[i] = search(Answers(iter(known[i])))
            except Asked as question:
                asked[i] = question.statistic
            except UntrustedEstimate as refusal:
                found[i] = refusal
        if asked:
            answers = over_rows(partial(side_by_side, list(asked.values())))
            for i, answer in zip(asked, answers.parts, strict=True):
                known[i].append(answer)
    return [found[i] for i in range(len(searches))]


def side_by_side(
    statistics: Sequence[Callable[[Sequence[Rows]], Any]], rows: Sequence[Rows]
) -> Together:
    """Return each statistic of some rows."""
    return Together(tuple(statistic(rows) for statistic in statistics))
