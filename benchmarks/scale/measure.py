"""Measure one job on one log in a process of its own: time, memory, and the numbers found.

``python -m benchmarks.scale.measure JOB FOLDER`` prints one line of JSON. What a first call
compiles and imports is done before, on a few rows, and does not count as time; as memory it does.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

import titrant as tt
from benchmarks.scale.generate import COLUMNS, NAMES, WITHOUT_Q, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POLICY = tt.Linear(coef=np.linspace(-0.2, 0.3, len(NAMES)), intercept=0.1)
WORKERS = 2
MB = 1024
"""Kilobytes, the unit of ru_maxrss."""
FEW = 70_000
"""More than one block."""


def evaluate(log: Any, executor: Any) -> dict[str, float]:
    """Return value and interval by the log's propensities, at a bandwidth chosen by the data."""
    return _found(tt.evaluate(log, POLICY, estimator=tt.SelfNormalized(), executor=executor))


def evaluate_modeled(log: Any, executor: Any) -> dict[str, float]:
    """Return the same with a linear-Gaussian model of the propensities, fitted first."""
    how = {"estimator": tt.SelfNormalized(), "propensity": tt.LinearGaussian()}
    return _found(tt.evaluate(log, POLICY, executor=executor, **how))


def search(log: Any, executor: Any) -> dict[str, Any]:
    """Return the best linear policy by the self-normalized estimate, from two starts."""
    procedure = tt.CPO(estimator=tt.SelfNormalized(), bandwidth=0.5, restarts=2)
    learner = tt.PolicyLearner(
        policy=tt.Linear(), procedure=procedure, honest=False, executor=executor
    ).fit(log)
    doses = learner.policy_(np.vstack([np.zeros(len(NAMES)), np.eye(len(NAMES))]))
    return {"doses": doses.tolist(), "evaluations": learner.solution_.evaluations}


def _found(estimate: Any) -> dict[str, float]:
    low, high = estimate.interval()
    return {"value": estimate.value, "low": low, "high": high, "h": float(estimate.bandwidth.h)}


TASKS: dict[str, tuple[Callable[..., dict[str, Any]], tt.Columns]] = {
    "evaluate": (evaluate, COLUMNS),
    "evaluate-modeled": (evaluate_modeled, WITHOUT_Q),
    "search": (search, COLUMNS),
}


@contextmanager
def in_memory(folder: Path, columns: tt.Columns) -> Iterator[tuple[Any, Any]]:
    """Lend the log as arrays; reading them does not count."""
    log = tt.LoggedData.from_frame(
        pq.read_table(folder),
        treatment=columns.doses,
        outcome=columns.outcome,
        context=columns.features,
        propensity=columns.propensity,
    )
    yield log, None


@contextmanager
def in_files(folder: Path, columns: tt.Columns) -> Iterator[tuple[Any, Any]]:
    """Lend the log as files, read by threads."""
    yield tt.scan_parquet(str(folder), columns), None


@contextmanager
def by_one_thread(folder: Path, columns: tt.Columns) -> Iterator[tuple[Any, Any]]:
    """Lend the log as files, read by one thread."""
    yield tt.scan_parquet(str(folder), columns), tt.Engine()


@contextmanager
def on_dask(folder: Path, columns: tt.Columns) -> Iterator[tuple[Any, Any]]:
    """Lend the log as files, read by the processes of a local Dask cluster."""
    with tt.dask_executor(workers=WORKERS) as executor:
        yield tt.scan_parquet(str(folder), columns), executor


PLACES = {
    "memory": in_memory,
    "files": in_files,
    "files-serial": by_one_thread,
    "files-dask": on_dask,
}


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds on the wall, and seconds of processors in this process."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> Clock:
        """Return the time now."""
        return cls(time.perf_counter(), time.process_time())

    def since(self) -> dict[str, float]:
        """Return the seconds from then to now."""
        now = Clock.now()
        return {"wall": now.wall - self.wall, "cpu": now.cpu - self.cpu}


def few_rows(columns: tt.Columns) -> tt.LoggedData:
    """Return a log of a few rows."""
    return tt.LoggedData.from_frame(
        table(0, FEW),
        treatment=columns.doses,
        outcome=columns.outcome,
        context=columns.features,
        propensity=columns.propensity,
    )


def measure(task: str, place: str, folder: Path) -> dict[str, Any]:
    """Return the time, the memory and the numbers of one job."""
    run, columns = TASKS[task]
    with ExitStack() as stack:
        log, executor = stack.enter_context(PLACES[place](folder, columns))
        warm = log if place != "memory" and len(log) <= FEW else few_rows(columns)
        run(warm, None)
        if place != "memory":
            first = sorted(folder.glob("*.parquet"))[:1]
            run(tt.scan_parquet([str(p) for p in first], columns), executor)
        begun = Clock.now()
        found = run(log, executor)
        seconds = begun.since()
    return {
        "task": task,
        "place": place,
        "rows": len(log),
        **seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MB,
        "peak_mb_of_a_worker": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / MB,
        "found": found,
    }


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1].split(":"), Path(sys.argv[2]))))
