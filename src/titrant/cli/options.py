"""The one vocabulary of options, each defined once; a command takes them in groups.

A group is a dataclass whose fields carry the declaration of their option. `takes` gives a command
the options of some groups and calls it with one filled object for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from titrant.cli import config
from titrant.cli.names import (
    ESTIMATORS,
    KERNELS,
    OUTCOME_MODELS,
    PROPENSITIES,
    SMOOTH,
    BandwidthText,
    EdgesText,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_DECLARATION = "declaration"
MOST_SEEDS = 2**32 - 1
"""The largest seed that all libraries take."""
MOST_ROWS, MOST_RUNS, MOST_WORKERS = 10**9, 10**6, 10**4
"""Beyond these a number is a slip of the finger: nothing of it would end, or fit in memory."""


def option(*names: str, **settings: Any) -> Any:  # noqa: ANN401  (what click.option takes)
    """Return the field of a group that holds an option."""
    return field(metadata={_DECLARATION: click.option(*names, **settings)})


def argument(name: str, **settings: Any) -> Any:  # noqa: ANN401
    """Return the field of a group that holds an argument."""
    return field(metadata={_DECLARATION: click.argument(name, **settings)})


def policies(*, required: bool) -> Any:  # noqa: ANN401
    """Return the field of the policies as typed."""
    return option(
        "--policy",
        multiple=True,
        required=required,
        metavar="[NAME=]POLICY",
        help="A saved policy (file.json), `constant:35`, `linear:intercept=20,age=0.3`, "
        "`logged-mean`, `status-quo` (as logged), `clipped:LO,HI:POLICY` or `rounded:STEP:POLICY`.",
    )


def json_file() -> Any:  # noqa: ANN401
    """Return the field of the file for programs."""
    return option(
        "--json", metavar="FILE", help="Write the result for programs; `-` for standard output."
    )


def propensity_model() -> Any:  # noqa: ANN401
    """Return the field of the model of the propensities."""
    return option(
        "--propensity-model",
        type=click.Choice([SMOOTH, *PROPENSITIES]),
        help="The model of f(t | x) to fit.  [default: the --propensity column, or else smooth: an "
        "average of four that follow contexts which act nonlinearly]",
    )


def allow_untrusted() -> Any:  # noqa: ANN401
    """Return the field of the override of the trust rules."""
    return option(
        "--allow-untrusted", is_flag=True, help="Show numbers that the trust rules refuse."
    )


def seed() -> Any:  # noqa: ANN401
    """Return the field of the seed."""
    return option(
        "--seed",
        type=click.IntRange(0, MOST_SEEDS),
        default=0,
        show_default=True,
        metavar="N",
        help="Of everything that is drawn at random.",
    )


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which table is the log, and which of its columns play which role."""

    log: str = argument("log", metavar="LOG")
    treatment: tuple[str, ...] = option(
        "--treatment",
        multiple=True,
        required=True,
        metavar="COLUMN,…",
        help="The dose, price or bid; several columns for a vector.",
    )
    outcome: str = option(
        "--outcome", required=True, metavar="COLUMN", help="What came of it: a loss."
    )
    context: tuple[str, ...] = option(
        "--context",
        multiple=True,
        metavar="COLUMN,…",
        help="What was known before the treatment.  [default: all other columns that are numbers, "
        "or text with few values, which is encoded 0/1]",
    )
    propensity: str | None = option(
        "--propensity",
        metavar="COLUMN",
        help="The density f(t | x) of the logged dose, where the log has it.",
    )
    bounds: tuple[str, ...] = option(
        "--bounds",
        multiple=True,
        metavar="LO,HI",
        help="Between which doses are possible; either may be empty. Once for all treatments, or "
        "once for each.",
    )


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """The policies to evaluate."""

    policy: tuple[str, ...] = policies(required=True)


@dataclass(frozen=True, slots=True)
class MethodOptions:
    """How a value is estimated from the log."""

    estimator: str = option(
        "--estimator",
        type=click.Choice(list(ESTIMATORS)),
        default="dr",
        show_default=True,
        help="; ".join(f"{name}: {choice.help}" for name, choice in ESTIMATORS.items()) + ".",
    )
    propensity_model: str | None = propensity_model()
    outcome_model: str | None = option(
        "--outcome-model",
        type=click.Choice(list(OUTCOME_MODELS)),
        help="; ".join(f"{name}: {what}" for name, what in OUTCOME_MODELS.items()) + ".",
    )
    kernel: str | None = option(
        "--kernel",
        type=click.Choice(list(KERNELS)),
        help="How rows count by the distance of their dose.  [default: epanechnikov]",
    )
    bandwidth: str | None = option(
        "--bandwidth",
        type=BandwidthText(),
        help="In units of the dose: a number, one for each dose (2,0.5), or a selector such as "
        "rule-of-thumb.  [default: auto]",
    )
    clip: float | None = option(
        "--clip",
        type=float,
        metavar="Q",
        help="Floor under the propensity.  [default: 0.01/sd(dose)]",
    )
    edges: str | None = option(
        "--edges",
        type=EdgesText(),
        help="Where the bins of `--estimator discretized` meet.  [default: ten bins over the "
        "logged doses, or midway between them where they are few]",
    )
    seed: int = seed()
    allow_untrusted: bool = allow_untrusted()


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How the result is read and where it goes."""

    maximize: bool = option(
        "--maximize", is_flag=True, help="The outcome is a reward: higher is better."
    )
    level: float = option(
        "--level",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.95,
        show_default=True,
        metavar="P",
        help="Of the confidence intervals.",
    )
    html: str | None = option("--html", metavar="FILE", help="Write a report page.")
    json: str | None = json_file()


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Who works on a log that is larger than memory."""

    in_parts: bool = option(
        "--in-parts",
        is_flag=True,
        help="Read Parquet files part by part, in flat memory, by the threads of this process.",
    )
    workers: int | None = option(
        "--workers",
        type=click.IntRange(1, MOST_WORKERS),
        metavar="N",
        help="The same by N processes on this machine (Dask).",
    )
    dask: str | None = option(
        "--dask",
        metavar="ADDRESS",
        help="The same by a running Dask cluster, such as tcp://10.0.0.5:8786.",
    )


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is repeated, and looked into when it fails."""

    save_config: str | None = option(
        "--save-config", metavar="FILE", help="Write all options of this run as TOML."
    )
    config: str | None = option(
        "--config",
        metavar="FILE",
        is_eager=True,
        callback=config.load,
        help="Take options from a TOML file; those typed here come first.",
    )
    debug: bool = option("--debug", is_flag=True, help="Show the traceback of an error.")


def vocabulary() -> set[str]:
    """Return the names of all options that commands share."""
    groups = (LogOptions, PolicyOptions, MethodOptions, OutputOptions, ClusterOptions)
    return {option.name for group in groups for option in fields(group)}


def takes(*groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the options of these groups."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**given: Any) -> None:  # noqa: ANN401  (click passes options by name)
            filled = [
                group(**{f.name: given.pop(f.name) for f in fields(group)}) for group in groups
            ]
            command(*filled, **given)

        for group in reversed(groups):
            for declared in reversed(fields(group)):
                call = declared.metadata[_DECLARATION](call)
        return call

    return decorate
