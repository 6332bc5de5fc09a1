"""`titrant subgroups` and `titrant outcomes`: for whom a policy changes what, and by what."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
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
    column_names,
    config_text,
    json_file,
    level,
    option,
    policies,
    population,
    save_config,
    settings,
    takes,
)
from titrant.cli.terminal import (
    ESTIMATING,
    FITTING,
    READING,
    REPORTING,
    bad_value,
    bar,
    note,
    show,
)
from titrant.cli.writing import PIPE, check_outputs, note_written, write_json, write_text

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
    population: str | None = population()
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
    files = inputs.files(texts)
    if options.population is not None:
        files.append(("--population", options.population))
    check_outputs(run, [("--json", options.json)], [("LOG", log.log), *files])
    how = inputs.method(method, log)
    with bar(READING, FITTING, ESTIMATING) as steps, ExitStack() as stack:
        opened = stack.enter_context(inputs.opened(log, cluster))
        rules = _pair(options.policy, options.against, opened.log)
        save_config(run.save_config)
        steps.begin(FITTING)
        models = how["estimator"], how["propensity"], opened.executor
        there, ignore = inputs.population(options.population), method.ignore_doubts
        evaluation = Evaluation.of(
            opened.log, rules, *models, ignore_doubts=ignore, weights_to=there
        )
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


@dataclass(frozen=True, slots=True)
class OutcomesOptions:
    """Which policies, how outcomes are read, and where the result goes."""

    policy: tuple[str, ...] = policies(required=True)
    rewards: tuple[str, ...] = column_names("--rewards", "The outcomes of which more is better.")
    level: float = level()
    html: str | None = option(
        "--html", metavar="FILE", help="Write a report page: of the first outcome, with trade-offs."
    )
    json: str | None = json_file()


_OUTCOMES = """\b
Example:
  titrant outcomes log.csv --treatment dose --outcome pain,nausea \\
    --policy constant:35 --policy status-quo
"""


@click.command("outcomes", epilog=_OUTCOMES)
@takes(LogOptions, OutcomesOptions, MethodOptions, ClusterOptions, RunOptions)
def outcomes(
    log: LogOptions,
    options: OutcomesOptions,
    method: MethodOptions,
    cluster: ClusterOptions,
    run: RunOptions,
) -> None:
    """Estimate policies by several outcomes of the rows of LOG, jointly, and their trade-offs.

    LOG is a CSV, Parquet or Arrow file, or a pattern such as 'logs/*.parquet'. `--outcome` names
    the outcomes, separated by commas; none is a context of another.
    """
    from titrant.cli import results  # noqa: PLC0415
    from titrant.evaluation.questions.outcomes import evaluations_of, outcomes_on  # noqa: PLC0415
    from titrant.reporting import gather, render  # noqa: PLC0415

    named, rewards = inputs.columns([log.outcome]), inputs.columns(options.rewards)
    _check_names(named, rewards)
    check_outputs(
        run,
        [("--html", options.html), ("--json", options.json)],
        [("LOG", log.log), *inputs.files(options.policy)],
    )
    how = inputs.method(method, log)
    with ExitStack() as stack:
        with bar(READING, FITTING, ESTIMATING) as steps:
            logs, executor = stack.enter_context(inputs.opened_by_outcome(log, named, cluster))
            rules = inputs.policies(options.policy, logs[named[0]])
            save_config(run.save_config)
            steps.begin(FITTING)
            evaluations = evaluations_of(
                logs,
                rules,
                how["estimator"],
                how["propensity"],
                executor,
                ignore_doubts=method.ignore_doubts,
            )
            steps.begin(ESTIMATING)
            allowed = method.allow_untrusted
            found = outcomes_on(evaluations, how["bandwidth"], allow_untrusted=allowed)
        for name, comparison in found.comparisons.items():
            results.cautions(comparison.estimates)
            for sentence in results.refusals(comparison.refused):
                note(f"{name}: {sentence}")
        if PIPE not in (options.json, options.html):
            show(results.outcomes(found, options.level))
            if len(found.policies) > 1:
                show(results.trade_offs(found, options.level))
            for sentence in found.sentences(options.level, rewards):
                show(f"{sentence}\n")
        write_json(options.json, found.to_dict(options.level, rewards))
        if options.html is not None:
            with bar(REPORTING) as steps:
                report = gather(
                    found[named[0]],
                    evaluations[named[0]],
                    level=options.level,
                    maximize=named[0] in rewards,
                    bandwidth=how["bandwidth"],
                    settings=settings(),
                    config=config_text(),
                    rules=rules,
                    treatments=inputs.columns(log.treatment),
                    outcome=named[0],
                    trade_offs=found.trade_offs(options.level, rewards),
                    progress=steps.advance,
                )
            write_text(options.html, render(report))
            note_written(options.html)


def _check_names(named: Sequence[str], rewards: Sequence[str]) -> None:
    if len(named) == 1:
        raise bad_value(
            "--outcome",
            f"`titrant outcomes` takes several outcomes, such as `pain,nausea`; got `{named[0]}`. "
            "Use `titrant compare` for one.",
        )
    for name in rewards:
        if name not in named:
            raise bad_value("--rewards", f"`{name}` is none of the outcomes {', '.join(named)}.")


def with_outcome(log: LogOptions, name: str, named: Sequence[str]) -> LogOptions:
    """Return the options of the log with one of the outcomes; the others are no contexts."""
    others = [f'"{other}"' for other in named if other != name]
    return replace(log, outcome=name, after=(*log.after, *others))


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
