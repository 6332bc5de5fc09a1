"""Where a command works on its log: here, in memory, or part by part on a Dask cluster."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from titrant.cli import inputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from concurrent.futures import Executor

    from titrant.cli.options import ClusterOptions, LogOptions
    from titrant.data.source import Source


@dataclass(frozen=True, slots=True)
class Opened:
    """A log, and who works on it."""

    log: Source
    executor: Executor | None = None
    """None without a cluster."""
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The texts of each column that was encoded."""


@contextmanager
def opened(log: LogOptions, cluster: ClusterOptions) -> Iterator[Opened]:
    """Lend the log and the executor that works on it."""
    if not in_parts(cluster):
        encoded = inputs.read_encoded(log)
        yield Opened(inputs.logged(log, encoded), levels=encoded.levels)
        return
    source = _scanned(log)
    if cluster.workers is None and cluster.dask is None:
        yield Opened(source)
        return
    from titrant.execute.dask import dask_executor  # noqa: PLC0415

    with dask_executor(workers=cluster.workers, address=cluster.dask) as executor:
        yield Opened(source, executor)


def in_parts(cluster: ClusterOptions) -> bool:
    """Return whether the log is to be worked on part by part."""
    return cluster.in_parts or cluster.workers is not None or cluster.dask is not None


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
