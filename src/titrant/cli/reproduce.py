"""`titrant reproduce`: the paper's experiments, run again."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from titrant.cli import config
from titrant.cli.options import (
    MOST_RUNS,
    MOST_WORKERS,
    RunOptions,
    argument,
    option,
    seed,
    takes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
    quick: bool = option("--quick", is_flag=True, help="A reduced run, for a first look.")
    replications: int | None = option(
        "--replications",
        "--seeds",
        type=click.IntRange(1, MOST_RUNS),
        metavar="N",
        help="How many logs, draws or splits.  [default: each experiment has its own number]",
    )
    seed: int = seed()
    workers: int | None = option(
        "--workers",
        type=click.IntRange(1, MOST_WORKERS),
        metavar="N",
        help="Processes side by side; the numbers do not depend on them.  [default: one a core]",
    )
    data: str | None = option(
        "--data",
        metavar="FILE",
        help="The warfarin table, for figure-6 and table-1.  [default: $TITRANT_WARFARIN]",
    )
    simulated: bool = option(
        "--simulated", is_flag=True, help="Made-up patients in place of that table."
    )
    out: str = option(
        "--out",
        default="results",
        show_default=True,
        metavar="FOLDER",
        help="For NAME.json, NAME.svg and NAME.png.",
    )
    fresh: bool = option(
        "--fresh", is_flag=True, help="Begin anew instead of going on where a run was interrupted."
    )


@click.command("reproduce", epilog=_EXAMPLE)
@takes(ReproduceOptions, RunOptions)
def command(options: ReproduceOptions, run: RunOptions) -> None:
    """Run experiments of the paper again: figure-1 … figure-6, table-1, theory, or all.

    Each prints a table with the paper's number, the one found here, the band in which it should
    land, and a verdict. An interrupted run goes on where it ended. Exit code 1 means: a number of a
    whole run is outside its band without an explanation.
    """
    from titrant.cli.app import REFUSED  # noqa: PLC0415
    from titrant.cli.terminal import show  # noqa: PLC0415
    from titrant.cli.writing import check_outputs  # noqa: PLC0415
    from titrant.paper.warfarin import VARIABLE  # noqa: PLC0415

    well, studies = True, _chosen(options)
    check_outputs(
        [("--save-config", run.save_config)],
        [("--data", options.data or os.environ.get(VARIABLE)), ("--config", run.config)],
        made=[("--out", path) for study in studies for path in _files(study, options)],
    )
    config.save(click.get_current_context(), run.save_config)
    for study in studies:
        result = _run(study, options)
        show(result.as_text() + "\n")
        well &= result.ok or options.quick
    if not well:
        click.get_current_context().exit(REFUSED)


def _chosen(options: ReproduceOptions) -> Sequence[Study]:
    """Return the studies named; of all, those that can be run."""
    from titrant.cli.terminal import note  # noqa: PLC0415
    from titrant.errors import DataError  # noqa: PLC0415
    from titrant.paper import STUDIES  # noqa: PLC0415
    from titrant.paper.warfarin import find_table  # noqa: PLC0415

    unknown = [name for name in options.names if name not in STUDIES and name != ALL]
    if unknown:
        raise click.BadParameter(
            f"There is no experiment `{unknown[0]}`. Choose from {', '.join([*STUDIES, ALL])}.",
            param_hint="'NAME'",
        )
    chosen = STUDIES if ALL in options.names else dict.fromkeys(options.names)
    studies = [STUDIES[name] for name in chosen]
    if options.simulated or not any(study.patients for study in studies):
        return studies
    try:
        find_table(options.data)
    except DataError as missing:
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
    with _bar(study.name) as progress:
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


@contextlib.contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int], None] | None]:
    """Give what draws how far a study is; nothing off a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from titrant.cli.drawn_bar import drawn  # noqa: PLC0415

    with drawn() as draw:
        draw(name, 0.0)
        yield lambda done, total: draw(f"{name}: {done:,} of {total:,}", done / total)
