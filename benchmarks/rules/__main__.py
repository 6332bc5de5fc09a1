"""Measure which rules the learner finds: ``python -m benchmarks.rules --draws 20``.

The excess risk of the automatic choice, of its classes and of common plug-in rules, all on the same
draws of problems with known truth. Records are JSON lines that a later run goes on with. With
``--econml`` the causal forest of EconML, on the same draws, by an interpreter that has it; with
``--honest`` the coverage of the honest interval; with ``--warfarin`` the doses of new patients, 20
splits of the table that TITRANT_WARFARIN names; with ``--vector`` two doses at once; with
``--library`` the automatic choice with more outcome models, on 6 problems (5 draws were made).
"""

from __future__ import annotations

import argparse

from benchmarks.confounding.records import Task, run_missing
from benchmarks.rules import measure, vector
from benchmarks.rules.problems import PROBLEMS


def main() -> None:
    """Run the draws that are missing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rules", description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--problems", nargs="*", choices=[*PROBLEMS, *vector.DESIGNS])
    parser.add_argument("--seed", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--anew", action="store_true")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--econml", action="store_true")
    which.add_argument("--honest", action="store_true")
    which.add_argument("--warfarin", action="store_true")
    which.add_argument("--vector", action="store_true")
    which.add_argument("--library", action="store_true")
    asked = parser.parse_args()
    path, work, usual = measure.RECORDS, measure.measure, tuple(PROBLEMS)
    seed = measure.SEED
    if asked.econml:
        path, work = measure.ECONML_RECORDS, measure.econml
    if asked.honest:
        path, work, usual = measure.HONEST_RECORDS, measure.honest, measure.HONEST_PROBLEMS
    if asked.warfarin:
        path, work, usual = measure.WARFARIN_RECORDS, measure.warfarin, (measure.WARFARIN,)
    if asked.vector:
        path, work, usual = vector.RECORDS, vector.measure, tuple(vector.DESIGNS)
        seed = vector.SEED
    if asked.library:
        # It needs titrant, which the interpreter that has EconML may lack.
        from benchmarks.rules import library  # noqa: PLC0415

        path, work, usual = library.RECORDS, library.measure, library.PROBLEMS
        seed = library.SEED
    names = asked.problems or usual
    tasks = [
        Task(name, PROBLEMS[name].n if name in PROBLEMS else 0, draw, asked.seed or seed)
        for draw in range(asked.draws)
        for name in names
    ]
    run_missing(path, tasks, work, asked.workers, anew=asked.anew)


if __name__ == "__main__":
    main()
