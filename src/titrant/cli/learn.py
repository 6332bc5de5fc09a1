"""`titrant learn`: a policy from a log, with its honest value."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from titrant.cli.options import (
    ClusterOptions,
    LogOptions,
    OutputOptions,
    RunOptions,
    allow_untrusted,
    option,
    propensity_model,
    seed,
    takes,
)

if TYPE_CHECKING:
    from titrant.cli.inputs import Opened
    from titrant.data.source import Source
    from titrant.learning import PolicyLearner
    from titrant.policies import Policy

CLASSES = ("linear", "constant", "rbf")
MODELS = ("all", "ridge")
STACKED, SEARCH = PROCEDURES = ("stacked", "cpo")
SAFE_LEVELS = ("ok", "warn")
"""Static, so that help needs no import; a test holds them to those of the library."""
LEAST_ESS = 30.0
"""Effective rows that a searched policy must keep: an estimate of few rows is small by chance."""


@dataclass(frozen=True, slots=True)
class LearnOptions:
    """What to learn, how, and where it goes."""

    output: str = option(
        "-o",
        "--output",
        default="policy.json",
        show_default=True,
        metavar="FILE",
        help="The learned policy, for `titrant recommend`.",
    )
    safe: bool = option(
        "--safe",
        is_flag=True,
        help="Keep the status quo unless the improvement is clear of zero and its verdict is ok.",
    )
    safe_level: str = option(
        "--safe-level",
        type=click.Choice(SAFE_LEVELS),
        default="ok",
        show_default=True,
        help="The worst verdict with which --safe deploys the learned policy; never with a warning "
        "that bears on confounding.",
    )
    policy_class: str = option(
        "--policy-class",
        type=click.Choice(CLASSES),
        default="linear",
        show_default=True,
        help="linear in the context; the same dose for all; rbf: smooth in the context.",
    )
    against: tuple[str, ...] = option(
        "--against",
        multiple=True,
        metavar="[NAME=]POLICY",
        help="A policy to compare with, besides the status quo and the mean dose; written as for "
        "`titrant evaluate --policy`.",
    )
    models: str = option(
        "--models",
        type=click.Choice(MODELS),
        default="all",
        show_default=True,
        help="Outcome models: the whole library, or its two ridge models alone, which is faster.",
    )
    procedure: str = option(
        "--procedure",
        type=click.Choice(PROCEDURES),
        default=STACKED,
        show_default=True,
        help="stacked: doubly robust, from outcome models, and of a log in parts from a sample of "
        "its rows; cpo: search for the least estimated loss, over all rows, "
        "with 30 effective rows or more.",
    )
    checkpoint: str | None = option(
        "--checkpoint",
        metavar="FOLDER",
        help="Keep the state of a search over a log in parts, so that the same command, called "
        "again, goes on where it was stopped.",
    )
    propensity_model: str | None = propensity_model()
    seed: int = seed()
    allow_untrusted: bool = allow_untrusted()


_EXAMPLE = """\b
Example:
  titrant learn log.csv --treatment dose --outcome loss -o policy.json --html report.html
  titrant recommend policy.json patients.csv -o doses.csv
"""


@click.command("learn", epilog=_EXAMPLE)
@takes(LogOptions, LearnOptions, OutputOptions, ClusterOptions, RunOptions)
def command(
    log: LogOptions,
    options: LearnOptions,
    output: OutputOptions,
    workers: ClusterOptions,
    run: RunOptions,
) -> None:
    """Learn a dosing policy from LOG and grade it on rows it was not learned from.

    LOG is a CSV, Parquet or Arrow file, a pattern such as 'logs/*.parquet', or - for CSV from a
    pipe. The policy is learned on all rows; its value comes from learning on each half and grading
    on the other. Exit code 1 means that this value is not to be trusted, and no policy is written,
    also with --safe. Where --safe keeps the status quo, FILE says so and doses nobody.
    """
    from titrant.cli import config, inputs  # noqa: PLC0415
    from titrant.cli.evaluating import note_written  # noqa: PLC0415
    from titrant.cli.learned import Telling, finish  # noqa: PLC0415
    from titrant.cli.terminal import LEARNING, READING, bar  # noqa: PLC0415

    _check_files(log, options, output, run)
    _check_checkpoint(options, parts=inputs.in_parts(workers))
    inputs.check_one_propensity(options.propensity_model, log)
    context = click.get_current_context()
    with ExitStack() as stack:
        with bar(READING, LEARNING) as steps:
            steps.begin(READING)
            opened = stack.enter_context(inputs.opened(log, workers))
            against = inputs.policies(options.against, opened.log)
            config.save(context, run.save_config)
            steps.begin(LEARNING)
            learner = _learner(options, output, opened, against)
            learner.set_params(progress=steps.learning).fit(opened.log).set_params(progress=None)
        telling = Telling(
            treatments=inputs.columns(log.treatment),
            outcome=log.outcome,
            level=output.level,
            maximize=output.maximize,
            settings=config.settings(context),
            config=config.text(context),
        )
        trusted = finish(learner, opened.log, output, telling)
    if output.html is not None:
        note_written(output.html)
    _say_sample(learner)
    _keep(learner, options, opened, trusted=trusted)


_LEVEL = "'--safe-level'"


def _check_files(
    log: LogOptions, options: LearnOptions, output: OutputOptions, run: RunOptions
) -> None:
    """Refuse files that cannot be written, or that are read too."""
    from titrant.cli.inputs import files  # noqa: PLC0415
    from titrant.cli.writing import check_outputs  # noqa: PLC0415

    policy = ("--output", options.output)
    page, result = ("--html", output.html), ("--json", output.json)
    check_outputs(
        [policy, page, result, ("--save-config", run.save_config)],
        [("LOG", log.log), *files(options.against, "--against"), ("--config", run.config)],
        made=[("--checkpoint", options.checkpoint)],
    )
    if options.safe_level != "ok" and not options.safe:
        raise click.BadParameter("It says when --safe deploys: add --safe.", param_hint=_LEVEL)
    if options.output == "-":
        raise click.BadParameter("The policy goes to a file.", param_hint="'--output'")


def _check_checkpoint(options: LearnOptions, *, parts: bool) -> None:
    """Refuse to keep the state of anything but a search over a log in parts."""
    if options.checkpoint is not None and not (parts and options.procedure == SEARCH):
        raise click.BadParameter(
            "Only a search over a log in parts has a state to keep. Add `--procedure cpo` and "
            "`--in-parts`, `--workers` or `--dask`, or leave it out.",
            param_hint="'--checkpoint'",
        )


def _say_sample(learner: PolicyLearner) -> None:
    """Say from how many rows the policy was learned, if not from all."""
    from titrant.cli.terminal import note  # noqa: PLC0415

    report = learner.learned_.report
    some, every = report.get("learned_on"), report.get("rows")
    if some is not None and some < every:
        note(
            f"Learned from a sample of {some:,} of {every:,} rows and "
            "graded on all; `--procedure cpo` learns from all."
        )


def _keep(learner: PolicyLearner, options: LearnOptions, opened: Opened, *, trusted: bool) -> None:
    """Write the policy, or the status quo if it was kept, unless the value cannot be trusted."""
    from titrant.cli.app import REFUSED  # noqa: PLC0415
    from titrant.cli.terminal import note  # noqa: PLC0415
    from titrant.policies import save_learned  # noqa: PLC0415

    if trusted or options.allow_untrusted:
        levels = {**learner.range_.levels, **opened.levels}
        save_learned(learner.policy_, learner.range_.with_levels(levels), options.output)
        note(f"Wrote {options.output}{_use(learner, options)}")
        return
    note(
        f"Refused: {options.output} was not written, because the value of the policy cannot be "
        "trusted. Mend what is objected to above, or pass `--allow-untrusted`."
    )
    click.get_current_context().exit(REFUSED)


def _use(learner: PolicyLearner, options: LearnOptions) -> str:
    """Return what to do with the file of a policy."""
    if learner.deployed_:
        return f". Apply it with `titrant recommend {options.output} TABLE`."
    return ", which keeps the status quo: dose as before; there is nothing to apply."


def _learner(
    options: LearnOptions, output: OutputOptions, opened: Opened, against: dict[str, Policy]
) -> PolicyLearner:
    """Return the learner that the options ask for."""
    from titrant.cli.names import propensity_model  # noqa: PLC0415
    from titrant.estimators import DoublyRobust  # noqa: PLC0415
    from titrant.learning import PolicyLearner  # noqa: PLC0415
    from titrant.outcome import ridge_pair  # noqa: PLC0415

    models = ridge_pair() if options.models == "ridge" else None
    return PolicyLearner(
        policy=_policy_class(options),
        procedure=_procedure(options, opened.log, models),
        propensity=propensity_model(options.propensity_model, options.seed),
        maximize=output.maximize,
        safe=options.safe,
        safe_level=options.safe_level,
        against=against,
        grade=DoublyRobust(seed=options.seed),
        seed=options.seed,
        executor=opened.executor,
        checkpoint=options.checkpoint,
    )


def _procedure(options: LearnOptions, log: Source, models: Any) -> Any:  # noqa: ANN401
    """Return the procedure with models and seed; stacked, the library's own for vector doses."""
    from titrant.learn.cpo import CPO  # noqa: PLC0415
    from titrant.learn.stacked import StackedDR  # noqa: PLC0415

    if options.procedure == STACKED and log.dimension == 1:
        return StackedDR(models=models, seed=options.seed)
    if models is not None:
        raise click.BadParameter(
            "Only `--procedure stacked` with one dose takes a library of models. Leave it out.",
            param_hint="'--models'",
        )
    return CPO(ess_floor=LEAST_ESS, seed=options.seed) if options.procedure == SEARCH else None


def _policy_class(options: LearnOptions) -> Any:  # noqa: ANN401
    """Return the class called by its name."""
    from titrant.learn.classes import ConstantClass, LinearClass, RBFClass  # noqa: PLC0415

    made = (LinearClass(), ConstantClass(), RBFClass(seed=options.seed))
    return dict(zip(CLASSES, made, strict=True))[options.policy_class]
