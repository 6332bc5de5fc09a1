"""`titrant subgroups`: for whom a policy changes what."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

import titrant as tt
from titrant.cli import inputs
from titrant.cli.names import STATUS_QUO
from titrant.cli.options import (
    ClusterOptions,
    LogOptions,
    MethodOptions,
    RunOptions,
    json_file,
    level,
    option,
    policies,
    save_config,
    takes,
)
from titrant.cli.terminal import ESTIMATING, FITTING, READING, bad_value, bar, note, show
from titrant.cli.writing import PIPE, check_outputs, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant.data.source import Source
    from titrant.policies import Policy


@dataclass(frozen=True, slots=True)
class SubgroupOptions:
    """Which policy, in which parts of the log, and where the result goes."""

    policy: tuple[str, ...] = policies(required=True)
    by: tuple[str, ...] = option(
        "--by",
        multiple=True,
        required=True,
        metavar="COLUMN[:PARTS]",
        help="`sex` value by value, `age:3` in three parts of as many rows, `age:40,60` at cut "
        "points (one: `age:40,`). May be given several times.",
    )
    against: str | None = option(
        "--against",
        metavar="[NAME=]POLICY",
        help="What the policy is compared with.  [default: the status quo]",
    )
    level: float = level()
    json: str | None = json_file()


_SUBGROUPS = """\b
Example:
  titrant subgroups log.csv --treatment dose --outcome loss \\
    --policy constant:35 --by sex --by age:3
"""


@click.command("subgroups", epilog=_SUBGROUPS)
@takes(LogOptions, SubgroupOptions, MethodOptions, ClusterOptions, RunOptions)
def subgroups(
    log: LogOptions,
    options: SubgroupOptions,
    method: MethodOptions,
    cluster: ClusterOptions,
    run: RunOptions,
) -> None:
    """Estimate what a policy changes in parts of LOG, and whether it is as much in all.

    LOG is a CSV, Parquet or Arrow file, a pattern such as 'logs/*.parquet', or - for CSV from a
    pipe. Models and bandwidth are those of the whole log.
    """
    from titrant.cli import results  # noqa: PLC0415
    from titrant.evaluation.evaluation import Evaluation  # noqa: PLC0415
    from titrant.evaluation.questions.subgroups import subgroups_on  # noqa: PLC0415

    if len(options.policy) > 1:
        raise click.UsageError(
            f"`titrant subgroups` takes one policy; got {len(options.policy)}. Give the other by "
            "`--against`."
        )
    by = columns_and_cuts(options.by)
    texts = [*options.policy, *([] if options.against is None else [options.against])]
    check_outputs(run, [("--json", options.json)], [("LOG", log.log), *inputs.files(texts)])
    how = inputs.method(method, log)
    with bar(READING, FITTING, ESTIMATING) as steps, ExitStack() as stack:
        opened = stack.enter_context(inputs.opened(log, cluster))
        rules = _pair(options.policy, options.against, opened.log)
        save_config(run.save_config)
        steps.begin(FITTING)
        models = how["estimator"], how["propensity"], opened.executor
        evaluation = Evaluation.of(opened.log, rules, *models, ignore_doubts=method.ignore_doubts)
        steps.begin(ESTIMATING)
        allowed = method.allow_untrusted
        found = subgroups_on(evaluation, by, how["bandwidth"], allow_untrusted=allowed)
    results.cautions(found.whole.estimates)
    if options.json != PIPE:
        show(results.subgroups(found, options.level))
        for test in found.equality:
            show(f"{test}\n")
    for label, reason in found.refused.items():
        note(f"Refused ({label}): {reason}")
    write_json(options.json, found.to_dict(options.level))


def _pair(texts: Sequence[str], against: str | None, log: Source) -> dict[str, Policy]:
    """Return the policy and what it is compared with, by name."""
    if against is not None:
        return inputs.policies([*texts, against], log)
    found = inputs.policies(texts, log)
    return {**found, STATUS_QUO: tt.StatusQuo()}


def columns_and_cuts(texts: Sequence[str]) -> dict[str, int | list[float] | None]:
    """Return how each column is cut; a name that ends in numbers stands in quotes of the shell.

    >>> columns_and_cuts(["sex", "age:3", "bmi:20,30", "dose:40,"])
    {'sex': None, 'age': 3, 'bmi': [20.0, 30.0], 'dose': [40.0]}
    """
    found: dict[str, int | list[float] | None] = {}
    for text in texts:
        name, colon, parts = text.rpartition(":")
        name, cut = (name, _parts(parts)) if colon and name else (text, None)
        if name in found:
            raise bad_value("--by", f"`{name}` is given twice. Give each column once.")
        found[name] = cut
    return found


def _parts(text: str) -> int | list[float]:
    try:
        if "," not in text:
            return int(text)
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise bad_value(
            "--by",
            f"{text!r} is neither a number of parts (age:3) nor cut points (age:40,60).",
        ) from None
