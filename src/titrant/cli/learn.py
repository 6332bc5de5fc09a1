"""`titrant learn`: a policy from a log, with its honest value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from titrant.cli.options import (
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
    from titrant.data import LoggedData
    from titrant.learning import PolicyLearner
    from titrant.policies import Policy

CLASSES = ("linear", "constant", "rbf")
MODELS = ("all", "ridge")


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
        help="Keep the status quo unless the improvement is clear of zero.",
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
    propensity_model: str | None = propensity_model()
    seed: int = seed()
    allow_untrusted: bool = allow_untrusted()


_EXAMPLE = """\b
Example:
  titrant learn log.csv --treatment dose --outcome loss -o policy.json --html report.html
  titrant recommend policy.json patients.csv -o doses.csv
"""


@click.command("learn", epilog=_EXAMPLE)
@takes(LogOptions, LearnOptions, OutputOptions, RunOptions)
def command(log: LogOptions, options: LearnOptions, output: OutputOptions, run: RunOptions) -> None:
    """Learn a dosing policy from LOG and grade it on rows it was not learned from.

    LOG is a CSV, Parquet or Arrow file, a pattern such as 'logs/*.parquet', or - for CSV from a
    pipe. The policy is learned on all rows; its value comes from learning on each half and grading
    on the other. Exit code 1 means that this value is not to be trusted, and no policy is written.
    """
    from titrant.cli import config, inputs, specs  # noqa: PLC0415
    from titrant.cli.failures import REFUSED  # noqa: PLC0415
    from titrant.cli.learned import Telling, finish  # noqa: PLC0415
    from titrant.cli.progress import LEARNING, READING, bar  # noqa: PLC0415
    from titrant.cli.terminal import note  # noqa: PLC0415
    from titrant.cli.writing import check_writable  # noqa: PLC0415
    from titrant.policies import save_learned  # noqa: PLC0415

    files = {"--output": options.output, "--html": output.html, "--json": output.json}
    for name, path in {**files, "--save-config": run.save_config}.items():
        check_writable(name, path)
    if options.output == "-":
        raise click.BadParameter("The policy goes to a file.", param_hint="'--output'")
    context = click.get_current_context()
    with bar(READING, LEARNING) as steps:
        steps.begin(READING)
        encoded = inputs.read_encoded(log)
        rows = inputs.logged(log, encoded)
        against = specs.policies(options.against, rows)
        config.save(context, run.save_config)
        steps.begin(LEARNING)
        learner = _learner(options, output, rows, against)
        learner.set_params(progress=steps.learning).fit(rows).set_params(progress=None)
    telling = Telling(
        treatments=inputs.columns(log.treatment),
        outcome=log.outcome,
        level=output.level,
        maximize=output.maximize,
        settings=config.settings(context),
        config=config.text(context),
    )
    trusted = finish(learner, rows, output, telling)
    if output.html is not None:
        note(f"Wrote {output.html}.")
    if trusted or options.safe or options.allow_untrusted:
        save_learned(learner.policy_, learner.range_.with_levels(encoded.levels), options.output)
        note(f"Wrote {options.output}. Apply it with `titrant recommend {options.output} TABLE`.")
        return
    note(
        f"Refused: {options.output} was not written, because the value of the policy cannot be "
        "trusted. Mend what is objected to above, or pass `--allow-untrusted`."
    )
    context.exit(REFUSED)


def _learner(
    options: LearnOptions, output: OutputOptions, log: LoggedData, against: dict[str, Policy]
) -> PolicyLearner:
    """Return the learner that the options ask for."""
    from titrant.cli.names import propensity_model  # noqa: PLC0415
    from titrant.estimators import DoublyRobust  # noqa: PLC0415
    from titrant.learning import PolicyLearner  # noqa: PLC0415
    from titrant.outcome import ridge_pair  # noqa: PLC0415

    models = ridge_pair() if options.models == "ridge" else None
    return PolicyLearner(
        policy=_policy_class(options),
        procedure=_procedure(options, log, models),
        propensity=propensity_model(options.propensity_model, options.seed),
        maximize=output.maximize,
        safe=options.safe,
        against=against,
        grade=DoublyRobust(seed=options.seed),
        seed=options.seed,
    )


def _procedure(options: LearnOptions, log: LoggedData, models: Any) -> Any:  # noqa: ANN401
    """Return stacked DR with the models and the seed; the library's own choice for vector doses."""
    from titrant.learn.stacked import StackedDR  # noqa: PLC0415

    return None if log.dimension > 1 else StackedDR(models=models, seed=options.seed)


def _policy_class(options: LearnOptions) -> Any:  # noqa: ANN401
    """Return the class called by its name."""
    from titrant.learn.classes import ConstantClass, LinearClass, RBFClass  # noqa: PLC0415

    made = (LinearClass(), ConstantClass(), RBFClass(seed=options.seed))
    return dict(zip(CLASSES, made, strict=True))[options.policy_class]
