"""What a study is: tasks, a measurement of each, a table and a figure of all."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from titrant import _check
from titrant.studies.result import Result
from titrant.studies.running import measured

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

    from titrant.studies.result import Row

    Progress = Callable[[int, int], None]

Task = dict[str, Any]
"""One independent piece of work as plain values: all that its measurement depends on."""

Measurement = dict[str, Any]
"""What was found, as plain values."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A task and what was found."""

    task: Task
    found: Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a study is run."""

    replications: int
    quick: bool = False
    seed: int = 0
    data: str | None = None
    """The warfarin table, for the studies that need it."""
    simulated: bool = False
    """Whether made-up patients stand in for it."""

    def __post_init__(self) -> None:
        _check.count(self.replications, "replications", "Settings")
        _check.count(self.seed, "seed", "Settings", at_least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What all pieces say together."""

    rows: tuple[Row, ...]
    series: dict[str, Any] = field(default_factory=dict)
    """The numbers of the figure, as plain values."""
    sample: dict[str, float] = field(default_factory=dict)
    """Numbers that every run with the same seed finds again, however short it is."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """An experiment of the paper."""

    name: str
    title: str
    claim: str
    """What the paper says it shows."""
    replications: int
    quick_replications: int
    tasks: Callable[[Settings], Sequence[Task]]
    measure: Callable[[Task], Measurement]
    """A function of a module: other processes find it by its name."""
    summarize: Callable[[Sequence[Piece]], Findings]
    draw: Callable[[Figure, dict[str, Any]], None]
    """Draws the series of the findings."""
    patients: bool = False
    """Whether it needs the warfarin table, or made-up patients in its place."""

    def run(
        self,
        *,
        quick: bool = False,
        replications: int | None = None,
        seed: int = 0,
        workers: int = 1,
        folder: str | Path = "results",
        data: str | None = None,
        simulated: bool = False,
        fresh: bool = False,
        progress: Progress | None = None,
    ) -> Result:
        """Run the study and write NAME.json, NAME.svg and NAME.png into `folder`.

        With made-up patients the name ends in ``-simulated``.

        Parameters
        ----------
        quick : a reduced run, for a first look and for continuous integration
        replications : how often, in place of the study's own number
        workers : processes that measure side by side; the result does not depend on their number
        data, simulated : the warfarin table, or made-up patients in its place
        fresh : begin anew instead of going on where an interrupted run ended
        progress : called with the number of tasks done and of all tasks
        """
        usual = self.quick_replications if quick else self.replications
        settings = Settings(
            replications=usual if replications is None else replications,
            quick=quick,
            seed=seed,
            data=data,
            simulated=simulated and self.patients,
        )
        where = Path(folder)
        answers = measured(self, settings, workers, where, fresh=fresh, progress=progress)
        pieces = [Piece(task, found) for task, found in answers]
        result = Result.of(self, settings, self.summarize(pieces))
        result.save(where, self.draw)
        return result
