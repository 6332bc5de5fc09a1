"""Draw logs and ask them for parts, for another population and for more than the mean.

`python -m benchmarks.questions --replications 300` does what is missing of so many logs of each
design; ``--anew`` forgets the records that there are.
"""

from __future__ import annotations

import argparse

from benchmarks.confounding.records import Task, run_missing
from benchmarks.questions.designs import DESIGNS
from benchmarks.questions.study import RECORDS, SEED, study


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description=__doc__)
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS), choices=list(DESIGNS))
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--anew", action="store_true")
    asked = parser.parse_args()
    tasks = [
        Task(name, DESIGNS[name].rows, replication, asked.seed)
        for replication in range(asked.replications)
        for name in asked.designs
    ]
    run_missing(RECORDS, tasks, study, asked.workers, anew=asked.anew)


if __name__ == "__main__":
    main()
