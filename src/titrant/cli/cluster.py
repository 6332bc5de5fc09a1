"""Where a command works on its log: here, in memory, or part by part on a Dask cluster."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from titrant.cli import inputs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from titrant.cli.options import ClusterOptions, LogOptions
    from titrant.data.source import Source


@contextmanager
def opened(log: LogOptions, cluster: ClusterOptions) -> Iterator[tuple[Source, Executor | None]]:
    """Lend the log and the executor that works on it; None without a cluster."""
    if not asked_for(cluster):
        yield inputs.read_log(log), None
        return
    from titrant.execute.dask import dask_executor  # noqa: PLC0415

    source = _scanned(log)
    with dask_executor(workers=cluster.workers, address=cluster.dask) as executor:
        yield source, executor


def asked_for(cluster: ClusterOptions) -> bool:
    """Return whether the log is to be worked on part by part."""
    return cluster.workers is not None or cluster.dask is not None


def check_no_page(cluster: ClusterOptions, html: str | None) -> None:
    """Refuse a report page of a log that is read part by part."""
    if asked_for(cluster) and html is not None:
        raise click.BadParameter(
            "The report page looks at single rows, which needs the log in memory. Leave out the "
            "page, or `--workers` and `--dask`.",
            param_hint="'--html'",
        )


def _scanned(log: LogOptions) -> Source:
    """Return the Parquet files of the log, yet to be read."""
    from titrant.data import Columns  # noqa: PLC0415
    from titrant.data.scan import scan_parquet  # noqa: PLC0415

    if not log.context:
        raise click.BadParameter(
            "Name the context columns: a log that is read part by part is not searched for them.",
            param_hint="'--context'",
        )
    doses = inputs.columns(log.treatment)
    columns = Columns(
        treatment=doses,
        outcome=log.outcome,
        context=inputs.columns(log.context),
        propensity=log.propensity,
    )
    return scan_parquet(log.log, columns, bounds=inputs.bounds(log.bounds, len(doses)))
