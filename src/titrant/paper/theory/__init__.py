"""The paper's theorems, executed: what is predicted beside what is measured.

Each part has its own file: tasks, their measurement, and rows that put a prediction and a number
side by side. Exact numbers come from populations (`designs`), the others state their Monte-Carlo
standard error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from titrant.paper.study import Findings, Study
from titrant.paper.theory import boundary, consistency, descent, doubly, expansion, generalization
from titrant.paper.theory.drawing import draw

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from titrant.paper.study import Measurement, Piece, Settings, Task


PARTS: dict[str, ModuleType] = {
    part.NAME: part for part in (expansion, consistency, doubly, generalization, boundary, descent)
}
"""Every part by its name, in the order of the paper: its tasks carry the name under "part"."""


def tasks(settings: Settings) -> list[Task]:
    """Return the tasks of all parts."""
    return [task for part in PARTS.values() for task in part.tasks(settings)]


def measure(task: Task) -> Measurement:
    """Return what the task's part measures."""
    found: Measurement = PARTS[task["part"]].measure(task)
    return found


def summarize(pieces: Sequence[Piece]) -> Findings:
    """Return the findings of all parts, one after the other."""
    each: list[Findings] = [
        part.summarize([piece for piece in pieces if piece.task["part"] == name])
        for name, part in PARTS.items()
    ]
    series: dict[str, Any] = {}
    sample: dict[str, float] = {}
    for findings in each:
        series |= findings.series
        sample |= findings.sample
    return Findings(
        rows=tuple(row for one in each for row in one.rows), series=series, sample=sample
    )


STUDY = Study(
    name="theory",
    title="The theorems, executed",
    claim=(
        "the bias goes as h² and the variance as 1/(nh), which sets the best bandwidth; the "
        "estimates are consistent, and so is the policy that minimizes them."
    ),
    replications=4_000,
    quick_replications=200,
    tasks=tasks,
    measure=measure,
    summarize=summarize,
    draw=draw,
)
