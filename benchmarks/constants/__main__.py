"""Change each constant of the default call and see what it does to errors and coverage.

`python -m benchmarks.constants` does what is missing of the plan in `study.STAGES`; ``--anew``
forgets the records that there are. `python -m benchmarks.constants.page` writes the table of
`docs/explanation/default.md` from the records.
"""

from __future__ import annotations

import argparse

from benchmarks.confounding.records import run_missing
from benchmarks.constants.study import RECORDS, plan, study


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constants", description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--anew", action="store_true")
    asked = parser.parse_args()
    run_missing(RECORDS, plan(), study, asked.workers, anew=asked.anew)


if __name__ == "__main__":
    main()
