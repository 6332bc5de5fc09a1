"""`titrant simulate` and `titrant demo`: logs whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import titrant as tt
from titrant.cli import inputs
from titrant.cli.names import DESIGNS, LEARNED, MEAN_DOSE, STATUS_QUO
from titrant.cli.options import (
    MOST_ROWS,
    RunOptions,
    argument,
    flag,
    option,
    policies,
    save_config,
    seed,
    takes,
    whole_number,
)
from titrant.cli.terminal import CHECKING, ESTIMATING, LEARNING, bad_value, bar, note, show, working
from titrant.cli.writing import (
    PIPE,
    check_format,
    check_outputs,
    write_json,
    write_table,
    write_text,
)

if TYPE_CHECKING:
    from titrant.data.simulate import Design
    from titrant.policies import Policy


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """Which log to draw, and where it goes."""

    design: str = argument("design", type=click.Choice(DESIGNS), metavar="DESIGN")
    rows: int = whole_number("-n", "--rows", least=2, most=MOST_ROWS, default=5000)
    seed: int = seed()
    output: str = option(
        "-o",
        "--output",
        default="log.csv",
        metavar="FILE",
        help="CSV, Parquet or Arrow by its ending; - for CSV on standard output, without truth.",
    )
    policy: tuple[str, ...] = policies(required=False)
    no_propensity: bool = flag("--no-propensity", "Leave out the density of the logged dose.")


_TRUTH = "the truth beside --output"
_EXAMPLE = f"""Designs: {", ".join(DESIGNS)}.

\b
Example:
  titrant simulate dosing -n 5000 -o log.csv
"""


@click.command("simulate", epilog=_EXAMPLE)
@takes(SimulateOptions, RunOptions)
def simulate(options: SimulateOptions, run: RunOptions) -> None:
    """Write a log drawn from a built-in DESIGN, and the truth beside it.

    The columns are the contexts, `dose`, `loss` and `propensity`. The true values of the best
    policy and of every --policy go to log.truth.json beside log.csv.
    """
    import pyarrow as pa  # noqa: PLC0415

    beside = Path(options.output).with_suffix(".truth.json")
    truth_file = None if options.output == PIPE else str(beside)
    written = [("--output", options.output), (_TRUTH, truth_file)]
    check_outputs(run, written, inputs.files(options.policy))
    check_format("--output", options.output)
    design = _design(options.design)
    with working(f"Drawing {options.rows:,} rows"):
        log = design.draw(options.rows, options.seed, propensity=not options.no_propensity)
        known = truth(design, inputs.policies(options.policy, log))
    save_config(run.save_config)
    write_table(options.output, pa.table(log.to_columns(treatment="dose", outcome="loss")))
    if truth_file is not None:
        facts = {"design": options.design, "rows": len(log), "seed": options.seed, **known}
        write_json(truth_file, facts)
        note(f"Wrote {len(log):,} rows to {options.output} and the truth to {truth_file}.")


def _design(name: str) -> Design:
    from titrant.data.simulate import DESIGNS as KNOWN  # noqa: PLC0415  (loads scipy)

    return KNOWN[name]


def truth(design: Design, asked: dict[str, Policy]) -> dict[str, Any]:
    """Return what is known of a design: in words, the bounds, and the values of policies."""
    bounds = (design.law.lower, design.law.upper)
    return {
        "description": " ".join((type(design).__doc__ or "").split()),
        "bounds": [bound if abs(bound) < float("inf") else None for bound in bounds],
        "best_value": design.value(design.best),
        "logged_value": design.logged_value(),
        "values": true_values(design, asked),
    }


def true_values(design: Design, asked: dict[str, Policy]) -> dict[str, float]:
    """Return the values of policies by the design, without an estimator."""
    return {
        name: design.logged_value() if isinstance(policy, tt.StatusQuo) else design.value(policy)
        for name, policy in asked.items()
    }


# The demo: three policies and a learned one beside their truth, and a page.

LEVEL = 0.95
TITLE = "Which weekly dose keeps patients in range?"
TREATMENT, OUTCOME = "weekly dose", "days outside the target range"
UNITS = {TREATMENT: "mg", OUTCOME: "days", "weight": "kg", "age": "years"}
LABELS = {"carrier": "slow metabolizer"}
BY_WEIGHT = "0.42 mg per kg"


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """How large the demo is, and where its page goes."""

    rows: int = whole_number(
        "-n", "--rows", least=200, most=MOST_ROWS, default=3000, help="Of the simulated log."
    )
    seed: int = seed()
    html: str = option("--html", default="report.html", metavar="FILE", help="The report page.")


@click.command("demo")
@takes(DemoOptions, RunOptions)
def demo(options: DemoOptions, run: RunOptions) -> None:
    """Evaluate three dosing policies on a simulated log, learn a fourth, beside the truth.

    The report of it all goes to report.html.
    """
    from titrant.cli.results import learned_page  # noqa: PLC0415

    if options.html == PIPE:
        raise bad_value("--html", "The page goes to a file.")
    check_outputs(run, [("--html", options.html)])
    save_config(run.save_config)
    design = _design("dosing")
    log = design.draw(options.rows, options.seed, propensity=False)
    show(
        f"A simulated log of {len(log):,} patients: a weekly dose in mg, and the days that "
        "followed outside the target range.\nWhat if doses had followed another rule?\n"
    )
    known = true_values(design, rules(log))
    _evaluate(log, known)
    learner = _learned(log, options.seed)
    known |= true_values(design, {LEARNED: learner.learned_.policy})
    _show_learned(learner, known)
    page = learned_page(
        learner,
        log,
        treatments=[TREATMENT],
        outcome=OUTCOME,
        level=LEVEL,
        truth=known,
        title=TITLE,
        labels=LABELS,
        units=UNITS,
    )
    write_text(options.html, page)
    note(f"Wrote {options.html}: open it in a browser.")


def rules(log: tt.LoggedData) -> dict[str, Policy]:
    """Return the three policies of the demo for contexts (weight, age, carrier)."""
    low, high = float(log.lower.min()), float(log.upper.max())
    by_weight = tt.Linear([0.42, 0.0, 0.0], features=log.names)
    return {
        STATUS_QUO: tt.StatusQuo(),
        MEAN_DOSE: tt.Constant(float(log.treatment.mean())),
        BY_WEIGHT: tt.Clipped(by_weight, low, high),
    }


def best_rule() -> tt.Linear:
    """Return the rule that the design was made with."""
    return tt.Linear([0.35, -0.2, -9.0], 19.0, features=("weight", "age", "carrier"))


def _evaluate(log: tt.LoggedData, known: dict[str, float]) -> None:
    """Check the log, evaluate the three policies and print both beside the truth."""
    from titrant.cli import results  # noqa: PLC0415

    with bar(CHECKING, ESTIMATING) as steps:
        trust = tt.check(log)
        steps.begin(ESTIMATING)
        comparison = tt.compare(log, rules(log))
    show("1. Can this log be trusted, and does it speak about three policies?")
    show(results.checks(trust))
    show(results.overlap(comparison.estimates))
    show("2. What would they have done? Estimates from the log alone, beside the truth.")
    show(results.values(comparison.estimates, LEVEL, known))
    show(results.differences(comparison, LEVEL, maximize=False))
    results.cautions(comparison.estimates)


def _learned(log: tt.LoggedData, seed: int) -> tt.PolicyLearner:
    """Learn a policy with every choice left to the library."""
    show("3. Which policy does the log teach?")
    against = {BY_WEIGHT: rules(log)[BY_WEIGHT]}
    with bar(LEARNING) as steps:
        learner = tt.PolicyLearner(against=against, seed=seed, progress=steps.learning)
        learner.fit(log).set_params(progress=None)
    return learner


def _show_learned(learner: tt.PolicyLearner, known: dict[str, float]) -> None:
    """Print what was learned beside the truth."""
    from titrant.cli import results  # noqa: PLC0415
    from titrant.reporting.learned import honest_value  # noqa: PLC0415

    honest = honest_value(learner)
    show(results.coefficients(learner.learned_.policy, best_rule()))
    show("Its value, from rows it was not learned from:")
    show(results.values(honest.comparison.estimates, LEVEL, known))
    show(results.honest_differences(honest, LEVEL))
    show(f"{results.reading(maximize=False)} {learner.decision_}")
    results.cautions({LEARNED: honest.comparison[LEARNED]})
