"""`titrant check`: whether a log, and a policy on it, can be trusted."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from titrant.cli.options import (
    ClusterOptions,
    LogOptions,
    MethodOptions,
    RunOptions,
    json_file,
    policies,
    takes,
)

if TYPE_CHECKING:
    from titrant.inference import Diagnostics

_EXAMPLE = """\b
Example:
  titrant check log.csv --treatment dose --outcome loss --policy constant:35
"""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """About which policy, and where the report goes."""

    policy: tuple[str, ...] = policies(required=False)
    json: str | None = json_file()


@click.command("check", epilog=_EXAMPLE)
@takes(LogOptions, CheckOptions, MethodOptions, ClusterOptions, RunOptions)
def command(
    log: LogOptions,
    options: CheckOptions,
    method: MethodOptions,
    workers: ClusterOptions,
    run: RunOptions,
) -> None:
    """Check whether LOG can be trusted, and a policy on it: propensities, overlap, bandwidth.

    LOG is a CSV, Parquet or Arrow file, a pattern such as 'logs/*.parquet', or - for CSV from a
    pipe. Without a policy only the propensities are checked. Exit code 1 means: not to be trusted.
    """
    from titrant.cli import inputs  # noqa: PLC0415
    from titrant.cli.app import REFUSED  # noqa: PLC0415
    from titrant.cli.writing import check_outputs  # noqa: PLC0415
    from titrant.inference import Verdict  # noqa: PLC0415

    if len(options.policy) > 1:
        raise click.UsageError(
            f"`titrant check` takes one policy at a time; got {len(options.policy)}. "
            "Call it once for each, or use `titrant compare`."
        )
    check_outputs(
        [("--json", options.json), ("--save-config", run.save_config)],
        [("LOG", log.log), *inputs.files(options.policy), ("--config", run.config)],
    )
    found = _checked(log, options, method, workers, run)
    _show(found, options)
    if found.verdict is Verdict.REFUSE and not method.allow_untrusted:
        click.get_current_context().exit(REFUSED)


def _checked(
    log_options: LogOptions,
    options: CheckOptions,
    method: MethodOptions,
    workers: ClusterOptions,
    run: RunOptions,
) -> Diagnostics:
    from titrant import check  # noqa: PLC0415
    from titrant.cli import config, inputs  # noqa: PLC0415
    from titrant.cli.terminal import CHECKING, READING, bar  # noqa: PLC0415

    how = inputs.method(method, log_options)
    with bar(READING, CHECKING) as steps, ExitStack() as stack:
        steps.begin(READING)
        opened = stack.enter_context(inputs.opened(log_options, workers))
        policy = next(iter(inputs.policies(options.policy, opened.log).values()), None)
        config.save(click.get_current_context(), run.save_config)
        steps.begin(CHECKING)
        return check(
            opened.log,
            policy,
            estimator=how["estimator"],
            bandwidth=how["bandwidth"],
            propensity=how["propensity"],
            seed=method.seed,
            executor=opened.executor,
        )


def _show(found: Diagnostics, options: CheckOptions) -> None:
    from titrant.cli import show  # noqa: PLC0415
    from titrant.cli.terminal import note  # noqa: PLC0415
    from titrant.cli.terminal import show as to_terminal  # noqa: PLC0415
    from titrant.cli.writing import STDOUT, write_text  # noqa: PLC0415

    if options.json != STDOUT:
        to_terminal(show.checks(found))
    for remark in found.notes:
        note(f"Note: {remark}")
    if options.json is not None:
        write_text(options.json, json.dumps(found.to_dict(), indent=2, ensure_ascii=False) + "\n")
