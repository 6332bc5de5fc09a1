"""Draw logs with a hidden cause of the dose and bound what it may have done.

`python -m benchmarks.hidden --replications 300` does what is missing of so many logs of 1,000 rows
from every design; ``--anew`` forgets the records that there are.
"""

from __future__ import annotations

import argparse

from benchmarks.confounding.records import Task, run_missing
from benchmarks.hidden.designs import DESIGNS
from benchmarks.hidden.study import RECORDS, ROWS, SEED, study


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hidden", description=__doc__)
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
