"""One default call in a fresh interpreter: ``python -m benchmarks.speed.job '{"call": …}'``.

Prints the CPU seconds of each of its ``times`` calls, with those of Dask's workers, and the memory
in MB before the first and at its highest. Nothing is imported before the first call, so that it
costs what a user's first call costs, unless ``warm`` asks for a call on a few rows before.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.speed.draws import people, rule

if TYPE_CHECKING:
    from collections.abc import Callable

FEW = 3_000
"""Rows of the call that warms."""


def run(job: dict[str, Any], **environment: str) -> dict[str, Any]:
    """Return what a job measured in a process of its own."""
    from benchmarks.speed.measuring import environment as usual  # noqa: PLC0415

    command = [sys.executable, "-m", "benchmarks.speed.job", json.dumps(job)]
    done = subprocess.run(  # noqa: S603
        command, check=False, capture_output=True, text=True, env=usual(**environment)
    )
    if done.returncode != 0:
        raise SystemExit(f"{job} ended with {done.returncode}: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {"said": done.stderr.splitlines()}


def main(
    call: str,
    rows: int = 0,
    p: int = 3,
    *,
    known: bool = True,
    folder: str | None = None,
    workers: int | None = None,
    times: int = 1,
    warm: bool = False,
) -> dict[str, Any]:
    """Return the seconds and the memory of a call on rows drawn here, or in a folder of files."""
    with ExitStack() as stack:
        executor = None
        if workers is not None:
            import titrant as tt  # noqa: PLC0415

            executor = stack.enter_context(tt.dask_executor(workers=workers))
        if folder is None:
            work = CALLS[call](people(rows, p, known=known))
            first = CALLS[call](people(FEW, p, known=known))
        else:
            files = [str(path) for path in sorted(Path(folder).glob("*.parquet"))]
            work, first = (FILES[call](some, executor) for some in (files, files[:1]))
        if warm:
            first()
        before, seconds = highest(), []
        for _ in range(times):
            begun = spent(executor)
            work()
            seconds.append(spent(executor) - begun)
        peak = max([highest(), *of_workers(executor, highest)])
    return {"cpu": seconds, "before_mb": before, "peak_mb": peak}


def evaluate(log: Any, executor: Any = None) -> Callable[[], Any]:
    """Return the default evaluation."""
    import titrant as tt  # noqa: PLC0415

    policy = rule(len(log.names))
    return lambda: tt.evaluate(log, policy, executor=executor, allow_untrusted=True)


def plain(log: Any) -> Callable[[], Any]:
    """Return an evaluation without models."""
    import titrant as tt  # noqa: PLC0415

    how = {"estimator": tt.SelfNormalized(), "bandwidth": 0.3, "allow_untrusted": True}
    return lambda: tt.evaluate(log, rule(len(log.names)), **how)


def learn(log: Any) -> Callable[[], Any]:
    """Return the default way to a rule, with its honest value."""
    import titrant as tt  # noqa: PLC0415

    return lambda: tt.PolicyLearner().fit(log)


def evaluate_files(files: list[str], executor: Any) -> Callable[[], Any]:
    """Return the default evaluation over files, by threads or by an executor."""
    import titrant as tt  # noqa: PLC0415
    from benchmarks.scale.generate import COLUMNS  # noqa: PLC0415

    return evaluate(tt.scan_parquet(files, COLUMNS), executor)


def evaluate_loaded(files: list[str], executor: Any) -> Callable[[], Any]:
    """Return the default evaluation of the same rows in memory."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    import titrant as tt  # noqa: PLC0415
    from benchmarks.scale.generate import COLUMNS  # noqa: PLC0415

    log = tt.LoggedData.from_frame(
        pq.read_table(files),
        treatment=COLUMNS.doses,
        outcome=COLUMNS.outcome,
        context=COLUMNS.features,
        propensity=COLUMNS.propensity,
    )
    return evaluate(log, executor)


def read(files: list[str], executor: Any) -> Callable[[], Any]:  # noqa: ARG001
    """Return reading all columns once by pyarrow."""
    from pyarrow import dataset  # noqa: PLC0415

    return lambda: [None for _ in dataset.dataset(files).to_batches()]


CALLS = {"evaluate": evaluate, "plain": plain, "learn": learn}
FILES = {"evaluate": evaluate_files, "loaded": evaluate_loaded, "read": read}


def spent(executor: Any) -> float:
    """Return the CPU seconds of this process so far, and of the workers."""
    return time.process_time() + sum(of_workers(executor, time.process_time))


def highest() -> float:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def of_workers(executor: Any, what: Callable[[], float]) -> list[float]:
    """Return what each worker of Dask answers; nothing without them."""
    if executor is None:
        return []
    from distributed import default_client  # noqa: PLC0415

    return list(default_client().run(what).values())


if __name__ == "__main__":
    print(json.dumps(main(**json.loads(sys.argv[1]))))
