"""How often a safe learner deploys where the dose does nothing.

`python -m benchmarks.confounding.safe` goes on to 300 logs of each kind, or of those that
``--kinds`` names. The outcome follows the contexts alone, so whatever the learner deploys is a
false alarm. The learner is `PolicyLearner(safe=True)` with its defaults, on logs of 400 rows: about
4 CPU s each. Whether it deploys rests on the two halves, so the rule on all rows is not learned
here.
"""

from __future__ import annotations

import argparse
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import titrant as tt
from benchmarks.confounding.designs import TUNING, Design
from benchmarks.confounding.records import Task, digits, run_missing
from titrant.errors import UntrustedEstimate
from titrant.learn.honest import LEARNED

RECORDS = Path(__file__).parent / "safe.jsonl.gz"
SEED = 2028
ROWS, RUNS = 400, 300


def without_effect(design: Design) -> Design:
    """Return the design with the outcome of the dose 0 at every dose."""
    return replace(design, mean=lambda t, x: design.mean(0.0 * t, x))


SETTINGS = {
    name: without_effect(TUNING[name]) for name in ("randomized", "linear", "periodic", "threshold")
}
"""Doses that follow no context, one linearly, and one in two other ways."""


def log_of(task: Task) -> tt.LoggedData:
    name = zlib.crc32(task.design.encode())
    return SETTINGS[task.design].draw(task.n, [task.seed, task.n, task.replication, name])


def run(task: Task) -> dict[str, Any]:
    """Return whether the learner deployed, and what it went by."""
    log = log_of(task)
    began = time.process_time()
    learner = tt.PolicyLearner(safe=True, seed=task.replication)
    try:
        learner.estimate_ = honest = learner._honest_value(learner._begin(log))  # noqa: SLF001
    except UntrustedEstimate:
        return {"deployed": False, "verdict": "refuse", "cpu": seconds(began)}
    diagnostics = honest.comparison[LEARNED].diagnostics
    return {
        "deployed": learner._is_safe(),  # noqa: SLF001
        "improves": bool(honest.improves()),
        "bound": digits(honest.gain()[1]),
        "verdict": diagnostics.verdict.value,
        "checks": [c.name for c in diagnostics if c.verdict.value != "ok"],
        "cpu": seconds(began),
    }


def seconds(began: float) -> float:
    return round(time.process_time() - began, 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.confounding.safe", description=__doc__
    )
    parser.add_argument("--kinds", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--anew", action="store_true")
    asked = parser.parse_args()
    tasks = [
        Task(name, asked.rows, replication, asked.seed)
        for names in (list(SETTINGS)[:3], list(SETTINGS)[3:])
        for replication in range(asked.runs)
        for name in names
        if name in asked.kinds
    ]
    run_missing(RECORDS, tasks, run, asked.workers, anew=asked.anew)


if __name__ == "__main__":
    main()
