"""`titrant reproduce`: the paper's experiments, run again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

import titrant as tt
from titrant.cli.app import REFUSED
from titrant.cli.options import (
    MOST_RUNS,
    MOST_WORKERS,
    RunOptions,
    argument,
    flag,
    option,
    save_config,
    seed,
    takes,
    whole_number,
)
from titrant.cli.terminal import bad_value, drawn, note, show
from titrant.cli.writing import check_outputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant.paper import Result, Study

ALL = "all"
_EXAMPLE = """\b
Examples:
  titrant reproduce all --quick
  titrant reproduce figure-1 figure-4 --workers 1
  titrant reproduce table-1 --data iwpc.csv
"""


@dataclass(frozen=True, slots=True)
class ReproduceOptions:
    """Which experiments, how long, and where their files go."""

    names: tuple[str, ...] = argument("names", nargs=-1, required=True, metavar="NAME…|all")
    quick: bool = flag("--quick", "A reduced run, for a first look.")
    replications: int | None = whole_number(
        "--replications",
        "--seeds",
        most=MOST_RUNS,
        help="How many logs, draws or splits.  [default: each experiment has its own number]",
    )
    seed: int = seed()
    workers: int | None = whole_number(
        "--workers",
        most=MOST_WORKERS,
        help="Processes side by side; the numbers do not depend on them.  [default: one a core]",
    )
    data: str | None = option(
        "--data",
        metavar="FILE",
        help="The warfarin table, for figure-6 and table-1.  [default: $TITRANT_WARFARIN]",
    )
    simulated: bool = flag("--simulated", "Made-up patients in place of that table.")
    out: str = option(
        "--out", default="results", metavar="FOLDER", help="For NAME.json, NAME.svg and NAME.png."
    )
    fresh: bool = flag("--fresh", "Begin anew instead of going on where a run was interrupted.")


@click.command("reproduce", epilog=_EXAMPLE)
@takes(ReproduceOptions, RunOptions)
def reproduce(options: ReproduceOptions, run: RunOptions) -> None:
    """Run experiments of the paper again: figure-1 … figure-6, table-1, theory, or all.

    Each prints a table with the paper's number, the one found here, what theory or the paper states
    about it, and whether that holds. A quick run prints numbers only. An interrupted run goes on
    where it ended. Exit code 1 means: a statement fails without an explanation.
    """
    from titrant.paper.warfarin import VARIABLE  # noqa: PLC0415

    well, studies = True, _chosen(options)
    check_outputs(
        run,
        (),
        [("--data", options.data or os.environ.get(VARIABLE))],
        made=[("--out", path) for study in studies for path in _files(study, options)],
    )
    save_config(run.save_config)
    for study in studies:
        result = _run(study, options)
        show(result.as_text() + "\n")
        well &= result.ok
    if not well:
        click.get_current_context().exit(REFUSED)


def _chosen(options: ReproduceOptions) -> Sequence[Study]:
    """Return the studies named; of all, those that can be run."""
    from titrant.paper import STUDIES  # noqa: PLC0415
    from titrant.paper.warfarin import find_table  # noqa: PLC0415

    unknown = [name for name in options.names if name not in STUDIES and name != ALL]
    if unknown:
        known = ", ".join([*STUDIES, ALL])
        raise bad_value("NAME", f"There is no experiment `{unknown[0]}`. Choose from {known}.")
    chosen = STUDIES if ALL in options.names else dict.fromkeys(options.names)
    studies = [STUDIES[name] for name in chosen]
    if options.simulated or not any(study.patients for study in studies):
        return studies
    try:
        find_table(options.data)
    except tt.DataError as missing:
        if ALL not in options.names:
            raise
        left_out = ", ".join(study.name for study in studies if study.patients)
        note(f"Left out: {left_out}. {missing}")
        return [study for study in studies if not study.patients]
    return studies


def _files(study: Study, options: ReproduceOptions) -> list[str]:
    """Return the files that a study writes."""
    made_up = "-simulated" if options.simulated and study.patients else ""
    stem = os.path.join(options.out, f"{study.name}{made_up}")  # noqa: PTH118
    return [stem + ending for ending in (".json", ".svg", ".png", ".partial.jsonl")]


def _run(study: Study, options: ReproduceOptions) -> Result:
    with drawn() as draw:

        def progress(done: int, total: int) -> None:
            if draw is not None:
                draw(f"{study.name}: {done:,} of {total:,}", done / total)

        if draw is not None:
            draw(study.name, 0.0)
        return study.run(
            quick=options.quick,
            replications=options.replications,
            seed=options.seed,
            workers=options.workers or os.cpu_count() or 1,
            folder=options.out,
            data=options.data,
            simulated=options.simulated,
            fresh=options.fresh,
            progress=progress,
        )
