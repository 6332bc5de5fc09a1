"""Draw logs, evaluate their policies by the default call and by others, and keep a record a log.

`python -m benchmarks.confounding --plan --workers 2` does what is missing of the plan, which stands
in `study.STAGES`, and ``--designs`` or ``--groups`` keeps it to some designs. Without ``--plan`` it
runs the named designs and size, and the tuning designs unless any are named.
``--anew`` forgets the records that there are, as code that finds other numbers has to.
"""

from __future__ import annotations

import argparse

from benchmarks.confounding.designs import DESIGNS, GROUPS, TUNING
from benchmarks.confounding.records import Task, run_missing
from benchmarks.confounding.study import RECORDS, SEED, plan, study


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.confounding", description=__doc__)
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--designs", nargs="*", default=[], choices=list(DESIGNS))
    parser.add_argument("--groups", nargs="*", default=[], choices=list(GROUPS))
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--replications", type=int, default=2)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--anew", action="store_true")
    asked = parser.parse_args()
    named = [*asked.designs, *(name for group in asked.groups for name in GROUPS[group])]
    tasks = [
        Task(name, asked.rows, replication, asked.seed)
        for replication in range(asked.replications)
        for name in named or TUNING
    ]
    if asked.plan:
        tasks = [t for t in plan(asked.seed) if not named or t.design in named]
    run_missing(RECORDS, tasks, study, asked.workers, anew=asked.anew)


if __name__ == "__main__":
    main()
