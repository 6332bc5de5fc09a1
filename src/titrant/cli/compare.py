"""`titrant compare`: several policies on one log, and their paired differences."""

from __future__ import annotations

import click

from titrant.cli.options import (
    ClusterOptions,
    LogOptions,
    MethodOptions,
    OutputOptions,
    PolicyOptions,
    RunOptions,
    takes,
)

_EXAMPLE = """\b
Example:
  titrant compare log.csv --treatment dose --outcome loss \\
    --policy new=policy.json --policy logged-mean
"""


@click.command("compare", epilog=_EXAMPLE)
@takes(LogOptions, PolicyOptions, MethodOptions, OutputOptions, ClusterOptions, RunOptions)
def command(  # noqa: PLR0917  (one for each group of options)
    log: LogOptions,
    policies: PolicyOptions,
    method: MethodOptions,
    output: OutputOptions,
    cluster: ClusterOptions,
    run: RunOptions,
) -> None:
    """Estimate several policies on the same rows of LOG, and their paired differences.

    LOG is a CSV, Parquet or Arrow file, a pattern such as 'logs/*.parquet', or - for CSV from a
    pipe.
    """
    from titrant.cli.evaluating import compared, finish  # noqa: PLC0415

    if len(policies.policy) == 1:
        raise click.UsageError(
            "`titrant compare` takes at least two policies; got one. "
            "Use `titrant evaluate` for one."
        )
    with compared(log, policies, method, output, cluster, run) as (comparison, page):
        finish(comparison, comparison.to_dict(output.level), output, page)
