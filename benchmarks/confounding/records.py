"""Records of a study, one JSON line a log: append-only, and gone on with wherever they are.

Only the parent process writes. Before it goes on, it makes a few of the known logs again: code that
finds other numbers than the records say does not add to them.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import multiprocessing
import os
import signal
import warnings
import zlib
from concurrent.futures import ProcessPoolExecutor, as_completed
from math import isclose
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    Record = dict[str, Any]

MADE_AGAIN = 5
"""Known logs that are made again before others are added."""
CLOSE = 1e-3
"""Records keep five digits, of which the last may differ between machines."""
SHOWN_EVERY = 20
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Task(NamedTuple):
    """One log: its design, rows, number and seed."""

    design: str
    n: int
    replication: int
    seed: int


def task_of(record: Record) -> Task:
    return Task(*(record[field] for field in Task._fields))


def records_in(path: Path) -> list[Record]:
    """Return the records of a compressed file; a last line that a stop cut short is none."""
    return [json.loads(line) for line in whole_lines(path)]


def whole_lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    lines: list[str] = []
    # A stop may have cut the file short; what comes before is whole.
    short = contextlib.suppress(EOFError, zlib.error)
    with short, gzip.open(path, "rt", encoding="utf-8") as file:
        lines.extend(line for line in file if line.endswith("\n"))
    return lines


def run_missing(
    path: Path,
    tasks: Sequence[Task],
    work: Callable[[Task], Record],
    workers: int,
    *,
    anew: bool = False,
) -> None:
    """Do the tasks that have no record, in order, and append their records.

    ``anew`` forgets the records that there are; without it they must be what the code finds today.
    """
    with _alone(path):
        _run_missing(path, tasks, work, workers, anew=anew)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a file of records: two runs would write over each other."""
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"Another run is writing {path.name}; stop it first.") from None
        yield


def _run_missing(
    path: Path,
    tasks: Sequence[Task],
    work: Callable[[Task], Record],
    workers: int,
    *,
    anew: bool,
) -> None:
    lines = [] if anew else whole_lines(path)
    known = {task_of(record): record for record in map(json.loads, lines)}
    missing = [task for task in tasks if task not in known]
    print(f"{len(missing)} of {len(tasks)} logs are missing", flush=True)
    # Fresh interpreters read these before numpy starts its threads.
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    fresh = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, fresh, warnings.simplefilter, ("ignore",))
    # A run that is told to stop takes its workers with it.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        again = list(known)[:: max(1, len(known) // MADE_AGAIN)][:MADE_AGAIN]
        for record in pool.map(recorded, [work] * len(again), again):
            check_same(path, known[task_of(record)], record)
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.writelines(lines)
            running = [pool.submit(recorded, work, task) for task in missing]
            for i, finished in enumerate(as_completed(running), 1):
                file.write(json.dumps(finished.result()) + "\n")
                if i % SHOWN_EVERY == 0 or i == len(missing):
                    file.flush()
                    print(f"{i} of {len(missing)} logs", flush=True)
    finally:
        pool.shutdown(cancel_futures=True)
        signal.signal(signal.SIGTERM, before)


def recorded(work: Callable[[Task], Record], task: Task) -> Record:
    """Return the record of a task; a failure is one too, so that the page can count it."""
    try:
        found = work(task)
    except Exception as error:  # noqa: BLE001
        found = {"failed": f"{type(error).__name__}: {error}"}
    return {**task._asdict(), **found}


def check_same(path: Path, known: Record, found: Record) -> None:
    """Raise unless a log gives what its record says."""
    if not same(known, found):
        raise SystemExit(
            f"{task_of(known)} gives other numbers than its record in {path.name}: the code has "
            "changed. Begin new records with --anew."
        )


def same(known: Any, found: Any) -> bool:
    """Return whether two records say the same, whatever time they took."""
    if isinstance(known, dict):
        return known.keys() == found.keys() and all(
            key == "cpu" or same(value, found[key]) for key, value in known.items()
        )
    if isinstance(known, list):
        return len(known) == len(found) and all(map(same, known, found))
    if isinstance(known, float) and isinstance(found, float):
        return isclose(known, found, rel_tol=CLOSE)
    return bool(known == found)


def digits(number: float) -> float:
    """Return a number to five digits, which is enough and short."""
    return float(f"{number:.5g}")
