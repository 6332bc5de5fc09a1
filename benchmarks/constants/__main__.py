"""Change each constant of the default call and see what it does to errors and coverage.

`python -m benchmarks.constants` does what is missing of the plan in `study.STAGES`; ``--acting``
varies those that act on few logs, on logs where they act, ``--learner`` those of the learner, and
``--anew`` forgets the records that there are. `python -m benchmarks.constants.page` writes the
tables of `docs/explanation/default.md` from the records.
"""

from __future__ import annotations

import argparse

from benchmarks.confounding.records import run_missing
from benchmarks.constants import acting, learner, study


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constants", description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--anew", action="store_true")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--acting", action="store_true")
    which.add_argument("--learner", action="store_true")
    asked = parser.parse_args()
    of = acting if asked.acting else learner if asked.learner else study
    run_missing(of.RECORDS, of.plan(), of.study, asked.workers, anew=asked.anew)


if __name__ == "__main__":
    main()
