"""What a study is: tasks, a measurement of each, a table and a figure of all."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from titrant import __version__, _check
from titrant._writing import append_text, write_text
from titrant.paper.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Self

    from matplotlib.figure import Figure

    from titrant.paper.result import Row

    Progress = Callable[[int, int], None]


Task = dict[str, Any]
"""One independent piece of work as plain values: all that its measurement depends on."""

Measurement = dict[str, Any]
"""What was found, as plain values."""


def crossed(values: Mapping[str, Iterable[object]]) -> list[Task]:
    """Return a task for each combination of values, the last name going round first.

    >>> crossed({"n": [10, 20], "seed": [0]})
    [{'n': 10, 'seed': 0}, {'n': 20, 'seed': 0}]
    """
    return [dict(zip(values, each, strict=True)) for each in product(*values.values())]


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
    ours: tuple[str, ...] = ()
    """Settings that the paper does not give, and what is taken here; a sentence each."""
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


# Measure the tasks of a study, here or in several processes; each answer is kept at once.


def measured(
    study: Study,
    settings: Settings,
    workers: int,
    folder: Path,
    *,
    fresh: bool,
    progress: Progress | None,
) -> list[tuple[Task, Measurement]]:
    """Return each task of a study with its measurement, in the order of the tasks."""
    count = _check.count(workers, "workers", "Study.run")
    tasks = list(study.tasks(settings))
    made_up = "-simulated" if settings.simulated else ""
    path = folder / f"{study.name}{made_up}.partial.jsonl"
    notebook = Notebook.opened(path, study.name, settings, fresh=fresh)
    to_do = [task for task in tasks if key(task) not in notebook.found]
    done = len(tasks) - len(to_do)
    for task, found in _answers(study, to_do, count):
        notebook.write(task, found)
        done += 1
        if progress is not None:
            progress(done, len(tasks))
    answers = [(task, notebook.found[key(task)]) for task in tasks]
    notebook.discard()
    return answers


def _answers(
    study: Study, tasks: Sequence[Task], workers: int
) -> Iterator[tuple[Task, Measurement]]:
    """Yield each task with its measurement as soon as that is known."""
    if workers == 1 or len(tasks) < 2:  # noqa: PLR2004
        with _one_thread():
            for task in tasks:
                yield task, study.measure(task)
        return
    # Fresh interpreters: a fork of a process that runs threads may hang.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_one_thread)
    with pool:
        futures = {pool.submit(study.measure, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _one_thread() -> Any:  # noqa: ANN401  (threadpoolctl has no types)
    """Pin linear algebra to one thread: processes do not compete, and sums keep their order.

    Only libraries that are loaded can be pinned, so they are loaded first.
    """
    import scipy.linalg  # noqa: F401, PLC0415
    import sklearn  # noqa: F401, PLC0415
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    return threadpool_limits(limits=1)


# What has been measured so far, on disk: an interrupted run goes on where it ended.


@dataclass(frozen=True, slots=True)
class Notebook:
    """A file with one line for each measurement, under a line that says of which run."""

    path: Path
    found: dict[str, Measurement]

    @classmethod
    def opened(cls, path: Path, name: str, settings: Settings, *, fresh: bool) -> Self:
        """Return the notebook of a run, with what an interrupted run of its kind left in it."""
        title = json.dumps(
            {
                "study": name,
                "version": __version__,
                "seed": settings.seed,
                "simulated": settings.simulated,
                "data": settings.data,
            }
        )
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        if fresh or not lines or lines[0] != title:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, title + "\n")
            return cls(path, {})
        found = dict(filter(None, map(_parsed, lines[1:])))
        # Written anew, for the last line may have been cut off in the middle.
        write_text(path, "\n".join([title, *map(_line, found.items())]) + "\n")
        return cls(path, found)

    def write(self, task: Task, found: Measurement) -> None:
        """Keep a measurement at once."""
        entry = key(task), found
        append_text(self.path, _line(entry) + "\n")
        parsed = _parsed(_line(entry))  # what a later run would read, so that both see the same
        if parsed is not None:
            self.found[parsed[0]] = parsed[1]

    def discard(self) -> None:
        """Remove the file of a run that has ended well."""
        self.path.unlink()


def key(task: Task) -> str:
    """Return the text by which a task is known."""
    return json.dumps(task, sort_keys=True)


def _line(entry: tuple[str, Measurement]) -> str:
    return json.dumps(entry)


def _parsed(line: str) -> tuple[str, Measurement] | None:
    """Return the entry of a line, None if the line was cut off."""
    try:
        entry: list[Any] = json.loads(line)
    except json.JSONDecodeError:
        return None
    return entry[0], entry[1]
