"""A bar with the time left, on standard error, for work that may take more than a second."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

READING, FITTING, ESTIMATING = "Reading the log", "Fitting propensities and outcomes", "Estimating"
CHECKING, LEARNING, REPORTING = "Checking", "Learning", "Writing the report"
COSTS = {READING: 1.0, FITTING: 20.0, ESTIMATING: 8.0, CHECKING: 20.0, LEARNING: 500.0}
COSTS |= {REPORTING: 80.0}
"""How long the parts of a run take beside each other, as measured on 100,000 rows."""

_ROWS = {"all rows": (0.0, 0.5), "first half": (0.5, 0.75), "second half": (0.75, 1.0)}
_STAGES = {"outcome models": (0.0, 0.93), "candidates": (0.93, 0.97), "grading": (0.97, 1.0)}
"""Of the time that learning takes, from where to where each stage goes."""


@dataclass(slots=True)
class Bar:
    """The parts of a run in their order, and how far it is; drawn by `draw`, if by anything."""

    parts: Mapping[str, float]
    """Each part with the time it takes beside the others."""
    draw: Callable[[str, float], None] | None = None
    """Called with what is at work and the share that is done."""
    now: str = field(default="", init=False)

    def begin(self, part: str) -> None:
        """Say that a part begins: all before it are done."""
        self.now = part
        self._move(part, 0.0)

    def advance(self, stage: str, done: int, total: int) -> None:
        """Say how much of the part is done; `stage` says what is at work."""
        self._move(f"{self.now}: {stage}", done / total)

    def learning(self, stage: str, done: int, total: int) -> None:
        """Say how far learning is: a `PolicyLearner` reports each stage of its own from 0."""
        self._move(f"{self.now}: {stage}", learned_share(stage, done, total))

    def _move(self, text: str, inside: float) -> None:
        if self.draw is not None:
            ends = dict(zip(self.parts, accumulate(self.parts.values()), strict=True))
            size = self.parts[self.now]
            self.draw(text, (ends[self.now] - size * (1.0 - inside)) / sum(self.parts.values()))


@contextlib.contextmanager
def bar(*parts: str | None) -> Iterator[Bar]:
    """Give the bar of a run with these parts; it is drawn on a terminal and nowhere else."""
    costs = {part: COSTS[part] for part in parts if part is not None}
    if not sys.stderr.isatty():
        yield Bar(costs)
        return
    from titrant.cli.drawn_bar import drawn  # noqa: PLC0415

    with drawn() as draw:
        yield Bar(costs, draw)


@contextlib.contextmanager
def working(text: str) -> Iterator[None]:
    """Show on a terminal that work of unknown length goes on, and say nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from titrant.cli.drawn_bar import drawn  # noqa: PLC0415

    with drawn(length=False) as draw:
        draw(text, 0.0)
        yield


def learned_share(stage: str, done: int, total: int) -> float:
    """Return the share of all learning that is done, `done` of `total` steps into a stage.

    >>> learned_share("all rows: outcome models", 15, 15)
    0.465
    """
    rows, _, work = stage.partition(": ")
    start, end = _ROWS.get(rows, (0.0, 1.0))
    first, last = _STAGES.get(work, (0.0, 0.97))
    return start + (end - start) * (first + (last - first) * done / total)
