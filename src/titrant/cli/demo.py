"""`titrant demo`: the main job on a simulated dosing log whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from titrant.cli.options import option, seed, takes

if TYPE_CHECKING:
    from titrant.data import LoggedData
    from titrant.data.simulate import Design
    from titrant.evaluation import Comparison, Evaluation
    from titrant.policies import Policy

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """How large the demo is, and where its page goes."""

    rows: int = option(
        "-n", "--rows", type=click.IntRange(min=200), default=4000, show_default=True, metavar="N"
    )
    seed: int = seed()
    html: str = option(
        "--html", default="report.html", show_default=True, metavar="FILE", help="The report page."
    )
    debug: bool = option("--debug", is_flag=True, help="Show the traceback of an error.")


@click.command("demo")
@takes(DemoOptions)
def command(options: DemoOptions) -> None:
    """Evaluate three dosing policies on a simulated log, beside the truth; write report.html."""
    from titrant import check  # noqa: PLC0415
    from titrant.cli import show  # noqa: PLC0415
    from titrant.cli.terminal import note, working  # noqa: PLC0415
    from titrant.cli.terminal import show as to_terminal  # noqa: PLC0415
    from titrant.cli.writing import check_writable  # noqa: PLC0415
    from titrant.data.simulate import DESIGNS  # noqa: PLC0415
    from titrant.evaluation import Evaluation  # noqa: PLC0415

    check_writable("--html", options.html)
    design = DESIGNS["dosing"]
    log = design.draw(options.rows, options.seed, propensity=False)
    policies = rules(log)
    to_terminal(
        f"A simulated log of {len(log):,} patients: a weekly dose in mg, and the days that "
        "followed outside the target range.\nWhat if doses had followed another rule?\n"
    )
    with working(f"Checking and evaluating {len(policies)} policies on {len(log):,} rows"):
        trust = check(log)
        evaluation = Evaluation.of(log, policies, None, None)
        comparison = evaluation.compare()
    truth = {name: true_value(design, policy) for name, policy in policies.items()}
    to_terminal(show.checks(trust))
    to_terminal(show.overlap(comparison.estimates))
    to_terminal(show.values(comparison.estimates, LEVEL, truth))
    to_terminal(show.differences(comparison, LEVEL, maximize=False))
    to_terminal(show.reading(maximize=False))
    show.cautions(comparison.estimates)
    _write(options, comparison, evaluation, truth)
    note(f"Wrote {options.html}: open it in a browser.")


def rules(log: LoggedData) -> dict[str, Policy]:
    """Return the three policies of the demo for contexts (weight, age, carrier)."""
    from titrant.policies import Clipped, Constant, Linear, StatusQuo  # noqa: PLC0415

    low, high = float(log.lower.min()), float(log.upper.max())
    rule = Linear([0.35, -0.2, -9.0], 19.0, features=log.names)
    return {
        "status quo": StatusQuo(),
        "same dose for all": Constant(float(log.treatment.mean())),
        "by weight, age, gene": Clipped(rule, low, high),
    }


def true_value(design: Design, policy: Policy) -> float:
    """Return the value of a policy by the design, without an estimator."""
    from titrant.policies import StatusQuo  # noqa: PLC0415

    return design.logged_value() if isinstance(policy, StatusQuo) else design.value(policy)


def _write(
    options: DemoOptions,
    comparison: Comparison,
    evaluation: Evaluation,
    truth: dict[str, float],
) -> None:
    from titrant.cli.terminal import working  # noqa: PLC0415
    from titrant.cli.writing import write_text  # noqa: PLC0415
    from titrant.report import gather, render  # noqa: PLC0415

    with working("Writing the report"):
        report = gather(
            comparison,
            evaluation,
            level=LEVEL,
            settings={"rows": options.rows, "seed": options.seed},
            truth=truth,
            treatments=["weekly dose in mg"],
            outcome="days outside the target range",
            seed=options.seed,
        )
        write_text(options.html, render(report))
