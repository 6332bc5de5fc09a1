"""`titrant simulate`: a log whose truth is known."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from titrant.cli import config
from titrant.cli.demo import true_value
from titrant.cli.options import MOST_ROWS, RunOptions, argument, option, policies, seed, takes
from titrant.cli.writing import STDOUT, check_outputs, write_text
from titrant.data.simulate import DESIGNS

if TYPE_CHECKING:
    from titrant.data.simulate import Design
    from titrant.policies import Policy


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """Which log to draw, and where it goes."""

    design: str = argument("design", type=click.Choice(list(DESIGNS)), metavar="DESIGN")
    rows: int = option(
        "-n",
        "--rows",
        type=click.IntRange(2, MOST_ROWS),
        default=5000,
        show_default=True,
        metavar="N",
    )
    seed: int = seed()
    output: str = option(
        "-o",
        "--output",
        default="log.csv",
        show_default=True,
        metavar="FILE",
        help="CSV, Parquet or Arrow by its ending; - for CSV on standard output, without truth.",
    )
    policy: tuple[str, ...] = policies(required=False)
    no_propensity: bool = option(
        "--no-propensity", is_flag=True, help="Leave out the density of the logged dose."
    )


_TRUTH = "the truth beside --output"
_EXAMPLE = f"""Designs: {", ".join(DESIGNS)}.

\b
Example:
  titrant simulate dosing -n 5000 -o log.csv
"""


@click.command("simulate", epilog=_EXAMPLE)
@takes(SimulateOptions, RunOptions)
def command(options: SimulateOptions, run: RunOptions) -> None:
    """Write a log drawn from a built-in DESIGN, and the truth beside it.

    The columns are the contexts, `dose`, `loss` and `propensity`. The true values of the best
    policy and of every --policy go to log.truth.json beside log.csv.
    """
    import pyarrow as pa  # noqa: PLC0415

    from titrant.cli import inputs  # noqa: PLC0415
    from titrant.cli.show import check_format, write_table  # noqa: PLC0415
    from titrant.cli.terminal import (  # noqa: PLC0415
        note,
        working,
    )

    beside = None if options.output == STDOUT else _beside(options.output)
    check_outputs(
        [("--output", options.output), (_TRUTH, beside), ("--save-config", run.save_config)],
        [*inputs.files(options.policy), ("--config", run.config)],
    )
    check_format("--output", options.output)
    design = DESIGNS[options.design]
    with working(f"Drawing {options.rows:,} rows"):
        log = design.draw(options.rows, options.seed, propensity=not options.no_propensity)
        known = truth(design, inputs.policies(options.policy, log))
    config.save(click.get_current_context(), run.save_config)
    write_table(options.output, pa.table(log.to_columns(treatment="dose", outcome="loss")))
    if beside is not None:
        facts = {"design": options.design, "rows": len(log), "seed": options.seed, **known}
        write_text(beside, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
        note(f"Wrote {len(log):,} rows to {options.output} and the truth to {beside}.")


def _beside(path: str) -> str:
    """Return where the truth about a log at `path` goes."""
    return str(Path(path).with_suffix(".truth.json"))


def truth(design: Design, asked: dict[str, Policy]) -> dict[str, Any]:
    """Return what is known of a design: in words, the bounds, and the values of policies."""
    bounds = (design.law.lower, design.law.upper)
    return {
        "description": " ".join((type(design).__doc__ or "").split()),
        "bounds": [bound if abs(bound) < float("inf") else None for bound in bounds],
        "best_value": design.value(design.best),
        "logged_value": design.logged_value(),
        "values": {name: true_value(design, policy) for name, policy in asked.items()},
    }
