"""`titrant describe`: what is in a log."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import click

import titrant as tt
from titrant.cli import inputs
from titrant.cli.options import (
    ClusterOptions,
    LogOptions,
    RunOptions,
    json_file,
    save_config,
    takes,
)
from titrant.cli.terminal import READING, bar, note, show
from titrant.cli.writing import PIPE, check_outputs, write_json

_DESCRIBE = """\b
Example:
  titrant describe log.csv --treatment dose --outcome loss
"""


@dataclass(frozen=True, slots=True)
class DescribeOptions:
    """Where the description goes."""

    json: str | None = json_file()


@click.command("describe", epilog=_DESCRIBE)
@takes(LogOptions, DescribeOptions, ClusterOptions, RunOptions)
def describe(
    log: LogOptions, options: DescribeOptions, cluster: ClusterOptions, run: RunOptions
) -> None:
    """Show what is in LOG: its rows, doses, outcomes and contexts, and which columns are doubtful.

    LOG is a CSV, Parquet or Arrow file, a pattern such as 'logs/*.parquet', or - for CSV from a
    pipe. Nothing is estimated.
    """
    from titrant.cli import results  # noqa: PLC0415

    check_outputs(run, [("--json", options.json)], [("LOG", log.log)])
    with bar(READING), ExitStack() as stack:
        opened = stack.enter_context(inputs.opened(log, cluster))
        save_config(run.save_config)
        found = tt.describe(opened.log, executor=opened.executor)
    if options.json != PIPE:
        treatments = inputs.columns(log.treatment)
        for part in results.description(found, treatments, log.outcome):
            show(part)
    for check in found.doubts:
        note(f"Doubt: {check.message}")
    for remark in found.doubts.notes:
        note(f"Note: {remark}")
    write_json(options.json, found.to_dict())
