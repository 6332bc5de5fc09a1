"""`titrant simulate`, `demo` and `reproduce`: logs of known truth, and the paper's experiments."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import titrant as tt
from titrant.cli import inputs
from titrant.cli.app import REFUSED
from titrant.cli.names import DESIGNS, LEARNED, MEAN_DOSE, STATUS_QUO
from titrant.cli.options import (
    MOST_ROWS,
    MOST_RUNS,
    MOST_WORKERS,
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
from titrant.cli.terminal import (
    CHECKING,
    ESTIMATING,
    LEARNING,
    bad_value,
    bar,
    drawn,
    note,
    show,
    working,
)
from titrant.cli.writing import (
    PIPE,
    check_format,
    check_outputs,
    write_json,
    write_table,
    write_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant.data.simulate import Design
    from titrant.paper import Result, Study
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
    from titrant.reporting.written import honest_value  # noqa: PLC0415

    honest = honest_value(learner)
    show(results.coefficients(learner.learned_.policy, best_rule()))
    show("Its value, from rows it was not learned from:")
    show(results.values(honest.comparison.estimates, LEVEL, known))
    show(results.honest_differences(honest, LEVEL))
    show(f"{results.reading(maximize=False)} {learner.decision_}")
    results.cautions({LEARNED: honest.comparison[LEARNED]})


# The paper's experiments, run again.

ALL = "all"
_EXPERIMENTS = """\b
Examples:
  titrant reproduce all --quick
  titrant reproduce figure-1 figure-4 --workers 1
  titrant reproduce table-1 --data iwpc.csv
"""


@dataclass(frozen=True, slots=True)
class ReproduceOptions:
    """Which experiments, how long, and where their files go."""

    names: tuple[str, ...] = argument("names", nargs=-1, required=True, metavar="NAME…|all")
    quick: bool = flag("--quick", "A reduced run, for a first look.")
    replications: int | None = whole_number(
        "--replications",
        "--seeds",
        most=MOST_RUNS,
        help="How many logs, draws or splits.  [default: each experiment has its own number]",
    )
    seed: int = seed()
    workers: int | None = whole_number(
        "--workers",
        most=MOST_WORKERS,
        help="Processes side by side; the numbers do not depend on them.  [default: one a core]",
    )
    data: str | None = option(
        "--data",
        metavar="FILE",
        help="The warfarin table, for figure-6 and table-1.  [default: $TITRANT_WARFARIN]",
    )
    simulated: bool = flag("--simulated", "Made-up patients in place of that table.")
    out: str = option(
        "--out", default="results", metavar="FOLDER", help="For NAME.json, NAME.svg and NAME.png."
    )
    fresh: bool = flag("--fresh", "Begin anew instead of going on where a run was interrupted.")


@click.command("reproduce", epilog=_EXPERIMENTS)
@takes(ReproduceOptions, RunOptions)
def reproduce(options: ReproduceOptions, run: RunOptions) -> None:
    """Run experiments of the paper again: figure-1 … figure-6, table-1, theory, or all.

    Each prints a table with the paper's number, the one found here, what theory or the paper states
    about it, and whether that holds. A quick run prints numbers only. An interrupted run goes on
    where it ended. Exit code 1 means: a statement fails without an explanation.
    """
    from titrant.paper.warfarin import VARIABLE  # noqa: PLC0415

    well, studies = True, _chosen(options)
    check_outputs(
        run,
        (),
        [("--data", options.data or os.environ.get(VARIABLE))],
        made=[("--out", path) for study in studies for path in _files(study, options)],
    )
    save_config(run.save_config)
    for study in studies:
        result = _run(study, options)
        show(result.as_text() + "\n")
        well &= result.ok
    if not well:
        click.get_current_context().exit(REFUSED)


def _chosen(options: ReproduceOptions) -> Sequence[Study]:
    """Return the studies named; of all, those that can be run."""
    from titrant.paper import STUDIES  # noqa: PLC0415
    from titrant.paper.warfarin import find_table  # noqa: PLC0415

    unknown = [name for name in options.names if name not in STUDIES and name != ALL]
    if unknown:
        known = ", ".join([*STUDIES, ALL])
        raise bad_value("NAME", f"There is no experiment `{unknown[0]}`. Choose from {known}.")
    chosen = STUDIES if ALL in options.names else dict.fromkeys(options.names)
    studies = [STUDIES[name] for name in chosen]
    if options.simulated or not any(study.patients for study in studies):
        return studies
    try:
        find_table(options.data)
    except tt.DataError as missing:
        if ALL not in options.names:
            raise
        left_out = ", ".join(study.name for study in studies if study.patients)
        note(f"Left out: {left_out}. {missing}")
        return [study for study in studies if not study.patients]
    return studies


def _files(study: Study, options: ReproduceOptions) -> list[str]:
    """Return the files that a study writes."""
    made_up = "-simulated" if options.simulated and study.patients else ""
    stem = os.path.join(options.out, f"{study.name}{made_up}")  # noqa: PTH118
    return [stem + ending for ending in (".json", ".svg", ".png", ".partial.jsonl")]


def _run(study: Study, options: ReproduceOptions) -> Result:
    with drawn() as draw:

        def progress(done: int, total: int) -> None:
            if draw is not None:
                draw(f"{study.name}: {done:,} of {total:,}", done / total)

        if draw is not None:
            draw(study.name, 0.0)
        return study.run(
            quick=options.quick,
            replications=options.replications,
            seed=options.seed,
            workers=options.workers or os.cpu_count() or 1,
            folder=options.out,
            data=options.data,
            simulated=options.simulated,
            fresh=options.fresh,
            progress=progress,
        )
