"""Measure the tasks of a study, here or in several processes; each answer is kept at once."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from titrant import _check
from titrant.studies.notebook import Notebook, key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from titrant.studies.study import Measurement, Progress, Settings, Study, Task


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
