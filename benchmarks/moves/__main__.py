"""Draw logs and evaluate shifts and multiples of their doses by the default call.

`python -m benchmarks.moves --replications 500` does what is missing of so many logs of each design
and size; ``--anew`` forgets the records that there are.
"""

from __future__ import annotations

import argparse

from benchmarks.confounding.records import Task, run_missing
from benchmarks.moves.designs import DESIGNS
from benchmarks.moves.study import RECORDS, SEED, SIZES, study


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moves", description=__doc__)
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--anew", action="store_true")
    asked = parser.parse_args()
    tasks = [
        Task(name, n, replication, asked.seed)
        for replication in range(asked.replications)
        for n in SIZES
        for name in DESIGNS
    ]
    run_missing(RECORDS, tasks, study, asked.workers, anew=asked.anew)


if __name__ == "__main__":
    main()
