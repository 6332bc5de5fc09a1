"""`titrant demo`: the main job on a simulated dosing log whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from titrant.cli import config
from titrant.cli.options import MOST_ROWS, RunOptions, option, seed, takes

if TYPE_CHECKING:
    from titrant.data import LoggedData
    from titrant.data.simulate import Design
    from titrant.learning import PolicyLearner
    from titrant.policies import Linear, Policy

LEVEL = 0.95
TREATMENT, OUTCOME = "weekly dose in mg", "days outside the target range"
LEARNED, STATUS_QUO, MEAN_DOSE, BY_WEIGHT = "learned", "status quo", "mean dose", "0.42 mg per kg"
"""The policies; all but the last have the names under which a learner compares."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """How large the demo is, and where its page goes."""

    rows: int = option(
        "-n",
        "--rows",
        type=click.IntRange(200, MOST_ROWS),
        default=3000,
        show_default=True,
        metavar="N",
        help="Of the simulated log.",
    )
    seed: int = seed()
    html: str = option(
        "--html", default="report.html", show_default=True, metavar="FILE", help="The report page."
    )


@click.command("demo")
@takes(DemoOptions, RunOptions)
def command(options: DemoOptions, run: RunOptions) -> None:
    """Evaluate three dosing policies on a simulated log, learn a fourth, beside the truth.

    The report of it all goes to report.html.
    """
    from titrant.cli.terminal import note, show  # noqa: PLC0415
    from titrant.cli.writing import STDOUT, check_outputs  # noqa: PLC0415
    from titrant.data.simulate import DESIGNS  # noqa: PLC0415

    if options.html == STDOUT:
        raise click.BadParameter("The page goes to a file.", param_hint="'--html'")
    check_outputs(
        [("--html", options.html), ("--save-config", run.save_config)], [("--config", run.config)]
    )
    config.save(click.get_current_context(), run.save_config)
    design = DESIGNS["dosing"]
    log = design.draw(options.rows, options.seed, propensity=False)
    show(
        f"A simulated log of {len(log):,} patients: a weekly dose in mg, and the days that "
        "followed outside the target range.\nWhat if doses had followed another rule?\n"
    )
    _evaluate(design, log)
    learner = _learn(design, log, options)
    _write(design, log, learner, options)
    note(f"Wrote {options.html}: open it in a browser.")


def rules(log: LoggedData) -> dict[str, Policy]:
    """Return the three policies of the demo for contexts (weight, age, carrier)."""
    from titrant.policies import Clipped, Constant, Linear, StatusQuo  # noqa: PLC0415

    low, high = float(log.lower.min()), float(log.upper.max())
    by_weight = Linear([0.42, 0.0, 0.0], features=log.names)
    return {
        STATUS_QUO: StatusQuo(),
        MEAN_DOSE: Constant(float(log.treatment.mean())),
        BY_WEIGHT: Clipped(by_weight, low, high),
    }


def best_rule() -> Linear:
    """Return the rule that the design was made with."""
    from titrant.policies import Linear  # noqa: PLC0415

    return Linear([0.35, -0.2, -9.0], 19.0, features=("weight", "age", "carrier"))


def true_value(design: Design, policy: Policy) -> float:
    """Return the value of a policy by the design, without an estimator."""
    from titrant.policies import StatusQuo  # noqa: PLC0415

    return design.logged_value() if isinstance(policy, StatusQuo) else design.value(policy)


def _evaluate(design: Design, log: LoggedData) -> None:
    """Check the log, evaluate the three policies and print both."""
    from titrant import check, compare  # noqa: PLC0415
    from titrant.cli import show  # noqa: PLC0415
    from titrant.cli.terminal import CHECKING, ESTIMATING, bar  # noqa: PLC0415
    from titrant.cli.terminal import show as to_terminal  # noqa: PLC0415

    policies = rules(log)
    with bar(CHECKING, ESTIMATING) as steps:
        steps.begin(CHECKING)
        trust = check(log)
        steps.begin(ESTIMATING)
        comparison = compare(log, policies)
    truth = {name: true_value(design, policy) for name, policy in policies.items()}
    to_terminal("1. Can this log be trusted, and does it speak about three policies?")
    to_terminal(show.checks(trust))
    to_terminal(show.overlap(comparison.estimates))
    to_terminal("2. What would they have done? Estimates from the log alone, beside the truth.")
    to_terminal(show.values(comparison.estimates, LEVEL, truth))
    to_terminal(show.differences(comparison, LEVEL, maximize=False))
    show.cautions(comparison.estimates)


def _learn(design: Design, log: LoggedData, options: DemoOptions) -> PolicyLearner:
    """Learn a policy with every choice left to the library, and print it beside the truth."""
    from titrant.cli import learned, show  # noqa: PLC0415
    from titrant.cli.terminal import LEARNING, bar  # noqa: PLC0415
    from titrant.cli.terminal import show as to_terminal  # noqa: PLC0415
    from titrant.learning import PolicyLearner  # noqa: PLC0415

    to_terminal("3. Which policy does the log teach?")
    against = {name: p for name, p in rules(log).items() if name not in (STATUS_QUO, MEAN_DOSE)}
    with bar(LEARNING) as steps:
        steps.begin(LEARNING)
        learner = PolicyLearner(against=against, seed=options.seed, progress=steps.learning)
        learner.fit(log).set_params(progress=None)
    honest = learned.honest_value(learner)
    to_terminal(show.coefficients(learner.learned_.policy, best_rule()))
    to_terminal("Its value, from rows it was not learned from:")
    to_terminal(show.values(honest.comparison.estimates, LEVEL, _truth(design, log, learner)))
    to_terminal(learned.differences(honest, LEVEL))
    to_terminal(f"{show.reading(maximize=False)} {learner.decision_}")
    show.cautions({LEARNED: honest.comparison[LEARNED]})
    return learner


def _truth(design: Design, log: LoggedData, learner: PolicyLearner) -> dict[str, float]:
    """Return the true value of every policy in the report."""
    known = {**rules(log), LEARNED: learner.learned_.policy}
    return {name: true_value(design, policy) for name, policy in known.items()}


def _write(design: Design, log: LoggedData, learner: PolicyLearner, options: DemoOptions) -> None:
    from titrant.cli.learned import Telling, page  # noqa: PLC0415
    from titrant.cli.terminal import REPORTING, bar  # noqa: PLC0415
    from titrant.cli.writing import write_text  # noqa: PLC0415

    telling = Telling(
        treatments=[TREATMENT],
        outcome=OUTCOME,
        level=LEVEL,
        settings=config.settings(click.get_current_context()),
        config=config.text(click.get_current_context()),
        truth=_truth(design, log, learner),
    )
    with bar(REPORTING) as steps:
        steps.begin(REPORTING)
        write_text(options.html, page(learner, log, telling, steps.advance))
