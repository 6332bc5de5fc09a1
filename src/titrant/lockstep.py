"""Several searches that each ask for passes over the rows, asking together.

A selector asks for one statistic, thinks, and may ask for another. With many policies on a log
too large for memory, every question would be a pass of its own. Here all of them run up to their
next question, one pass answers all questions, and each runs again with the answers so far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from titrant.errors import UntrustedEstimate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from titrant.estimators import JointPass, Problem, Rows

R = TypeVar("R")
S = TypeVar("S")


class Asked(BaseException):
    """A search has come to a question that is not answered yet; it is not an error."""

    def __init__(self, statistic: Callable[[Rows], Any]) -> None:
        self.statistic = statistic
        BaseException.__init__(self)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a search sees as a pass over the rows: the answers so far, in the order of asking."""

    known: Iterator[Any]

    def __call__(self, statistic: Callable[[Rows], S]) -> S:
        """Return the next answer, or leave the search."""
        for answer in self.known:
            return answer  # type: ignore[no-any-return]
        raise Asked(statistic)


@dataclass(frozen=True, slots=True)
class Together:
    """Statistics of several policies, added up side by side."""

    parts: tuple[Any, ...]

    def __add__(self, other: Together) -> Together:
        """Return the statistics of both sets of rows."""
        return Together(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


def in_lockstep(
    search: Callable[[Problem], R], problems: Mapping[int, Problem], over_rows: JointPass
) -> dict[int, R | UntrustedEstimate]:
    """Return what each search finds, or why it refuses, in as many passes as one of them takes.

    ``problems`` are those of policies with these numbers. Searches must be deterministic.
    """
    found: dict[int, R | UntrustedEstimate] = {}
    known: dict[int, list[Any]] = {i: [] for i in problems}
    while len(found) < len(problems):
        asked: dict[int, Callable[[Rows], Any]] = {}
        for i in problems.keys() - found.keys():
            try:
                found[i] = search(replace(problems[i], over_rows=Answers(iter(known[i]))))
            except Asked as question:
                asked[i] = question.statistic
            except UntrustedEstimate as refusal:
                found[i] = refusal
        if asked:
            answers = over_rows(partial(side_by_side, list(asked.items())))
            for i, answer in zip(asked, answers.parts, strict=True):
                known[i].append(answer)
    return found


def side_by_side(
    statistics: Sequence[tuple[int, Callable[[Rows], Any]]], rows: Sequence[Rows]
) -> Together:
    """Return each statistic of the rows under the policy with its number."""
    return Together(tuple(statistic(rows[i]) for i, statistic in statistics))
