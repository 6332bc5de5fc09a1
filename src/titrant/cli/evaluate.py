"""`titrant evaluate`: one policy on one log."""

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
  titrant evaluate log.csv --treatment dose --outcome loss --policy constant:35
"""


@click.command("evaluate", epilog=_EXAMPLE)
@takes(LogOptions, PolicyOptions, MethodOptions, OutputOptions, ClusterOptions, RunOptions)
def command(  # noqa: PLR0917  (one for each group of options)
    log: LogOptions,
    policies: PolicyOptions,
    method: MethodOptions,
    output: OutputOptions,
    cluster: ClusterOptions,
    run: RunOptions,
) -> None:
    """Estimate how good one policy would have been on the contexts of LOG.

    LOG is a CSV, Parquet or Arrow file, a pattern such as 'logs/*.parquet', or - for CSV from a
    pipe.
    """
    from titrant.cli.evaluating import compared, finish  # noqa: PLC0415

    if len(policies.policy) > 1:
        raise click.UsageError(
            f"`titrant evaluate` takes one policy; got {len(policies.policy)}. "
            "Use `titrant compare` for several."
        )
    with compared(log, policies, method, output, cluster, run) as (comparison, page):
        (estimate,) = comparison.estimates.values()
        finish(comparison, estimate.to_dict(output.level), output, page)
