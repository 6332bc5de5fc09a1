"""Draw logs with a structure of their own and evaluate each with its remedy and without.

`python -m benchmarks.structure --replications 300` does what is missing of so many logs of 1,000
rows from every design; ``--anew`` forgets the records that there are.
"""

from __future__ import annotations

import argparse
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.confounding.records import Task, digits, run_missing
from benchmarks.confounding.study import estimates, evaluated, timed
from benchmarks.structure.designs import DESIGNS

RECORDS = Path(__file__).parent / "records.jsonl.gz"
SEED = 2028
ROWS = 1000


@cache
def truths(design: str) -> tuple[float, ...]:
    return tuple(digits(DESIGNS[design].truth(name)) for name in DESIGNS[design].policies)


def study(task: Task) -> dict[str, Any]:
    """Return what is kept of one log; every list is in the order of the design's policies."""
    design = DESIGNS[task.design]
    seed = [task.seed, task.n, task.replication, zlib.crc32(task.design.encode())]
    found: dict[str, Any] = {"truth": list(truths(task.design))}
    for name, log in zip(("with", "without"), design.versions(task.n, seed), strict=True):
        (_, answers), found[name] = timed(lambda log=log: evaluated(log, design.policies))
        found[name] |= estimates(answers, design.policies)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.structure", description=__doc__)
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS), choices=list(DESIGNS))
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--anew", action="store_true")
    asked = parser.parse_args()
    tasks = [
        Task(name, asked.rows, replication, asked.seed)
        for replication in range(asked.replications)
        for name in asked.designs
    ]
    run_missing(RECORDS, tasks, study, asked.workers, anew=asked.anew)


if __name__ == "__main__":
    main()
