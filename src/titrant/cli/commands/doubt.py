"""`titrant sensitivity` and `titrant stress`: what if we are wrong."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from titrant.cli import inputs
from titrant.cli.names import STATUS_QUO
from titrant.cli.options import (
    ClusterOptions,
    EstimatorOptions,
    LogOptions,
    MethodOptions,
    RunOptions,
    column_names,
    csv_file,
    flag,
    ignore_doubts,
    json_file,
    option,
    policies,
    save_config,
    takes,
    whole_number,
)
from titrant.cli.terminal import (
    DOUBTING,
    ESTIMATING,
    FITTING,
    READING,
    TRYING,
    bad_value,
    bar,
    show,
)
from titrant.cli.writing import PIPE, check_outputs, write_json, write_rows

if TYPE_CHECKING:
    from titrant.cli.inputs import Opened
    from titrant.policies import Policy

MOST_DRAWS = 10_000


@dataclass(frozen=True, slots=True)
class AskedPolicies:
    """Which policy is doubted, against which other one, and where the result goes."""

    policy: tuple[str, ...] = policies(required=True)
    against: str | None = option(
        "--against",
        metavar="[NAME=]POLICY",
        help="Another policy, if the difference to it is what is asked.  [default: the value of "
        "the policy, beside the status quo]",
    )
    level: float = option(
        "--level",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.95,
        metavar="P",
        help="Of the confidence intervals.",
    )
    json: str | None = json_file()
    out_csv: str | None = csv_file()


@dataclass(frozen=True, slots=True)
class SensitivityOptions:
    """At which strengths bounds are shown, and what a hidden cause is compared with."""

    gamma: str | None = option(
        "--gamma",
        metavar="G,…",
        help="Strengths of a hidden cause to show, ≥ 1.  [default: 1, 1.1, 1.25, 1.5, 2, 3, 5]",
    )
    benchmark: tuple[str, ...] = column_names(
        "--benchmark", "Contexts whose strength is found by leaving them out.  [default: all]"
    )
    no_benchmarks: bool = flag("--no-benchmarks", "Leave out none, which takes most of the time.")


_SENSITIVITY = """\b
Example:
  titrant sensitivity log.csv --treatment dose --outcome loss --policy constant:35
"""


@click.command("sensitivity", epilog=_SENSITIVITY)
@takes(LogOptions, AskedPolicies, SensitivityOptions, MethodOptions, ClusterOptions, RunOptions)
def sensitivity(  # noqa: PLR0917  (groups of options)
    log: LogOptions,
    asked: AskedPolicies,
    options: SensitivityOptions,
    method: MethodOptions,
    cluster: ClusterOptions,
    run: RunOptions,
) -> None:
    """Say how strong a cause of the dose that nobody recorded would have to be.

    Bounds on the value of a policy in LOG, or on its difference to another, as the strength Γ of a
    hidden cause grows: it makes logged doses up to Γ times as likely, or as unlikely, as the
    recorded contexts say. The tipping point is the least Γ at which the conclusion goes.
    """
    from titrant.cli import results  # noqa: PLC0415
    from titrant.doubt.sensitivity import SHOWN, left_out_of, sensitivity_of  # noqa: PLC0415
    from titrant.evaluation.evaluation import Evaluation  # noqa: PLC0415

    gammas = SHOWN if options.gamma is None else _strengths(options.gamma)
    how = _checked(log, asked, method, run)
    chosen = () if options.no_benchmarks else inputs.columns(options.benchmark) or None
    with bar(READING, FITTING, ESTIMATING, DOUBTING) as steps, ExitStack() as stack:
        opened = stack.enter_context(inputs.opened(log, cluster))
        pair = _pair(asked, opened)
        save_config(run.save_config)
        steps.begin(FITTING)
        models = how["estimator"], how["propensity"], opened.executor
        evaluation = Evaluation.of(opened.log, pair, *models, ignore_doubts=method.ignore_doubts)
        steps.begin(ESTIMATING)
        allowed = method.allow_untrusted
        comparison = evaluation.compare(how["bandwidth"], allow_untrusted=allowed)
        steps.begin(DOUBTING)
        left_out = left_out_of(evaluation, how["propensity"], chosen, steps.advance)
        given = asked.against is not None
        found = sensitivity_of(evaluation, comparison, left_out, given=given, level=asked.level)
        rows = found.table(gammas)
    results.cautions(comparison.estimates)
    if PIPE not in (asked.json, asked.out_csv):
        show(results.bounds(rows, asked.level))
        if found.benchmarks:
            show(results.benchmarks(found.benchmarks))
        show(found.sentence)
    write_json(asked.json, found.to_dict())
    write_rows(asked.out_csv, rows)


@dataclass(frozen=True, slots=True)
class StressOptions:
    """Which trials an estimate is put to."""

    placebo_outcome: tuple[str, ...] = column_names(
        "--placebo-outcome",
        "Contexts that the treatment cannot have changed, such as last year's outcome.",
    )
    placebo_treatment: tuple[str, ...] = column_names(
        "--placebo-treatment", "Contexts that cannot have changed the outcome."
    )
    leave_out: tuple[str, ...] = column_names(
        "--leave-out",
        "Contexts to leave out, one at a time.  [default: all up to 10, of more those that tell "
        "most about the dose]",
    )
    draws: int = whole_number(
        "--draws",
        least=0,
        most=MOST_DRAWS,
        default=10,
        help="Of simulated outcomes; each takes as long as `titrant evaluate`.",
    )
    rows: int = whole_number(
        "--rows", most=10**7, default=10_000, help="Of a log with more rows, so many are drawn."
    )
    ignore_doubts: bool = ignore_doubts()


_STRESS = """\b
Example:
  titrant stress log.csv --treatment dose --outcome loss --policy constant:35
"""


@click.command("stress", epilog=_STRESS)
@takes(LogOptions, AskedPolicies, StressOptions, EstimatorOptions, ClusterOptions, RunOptions)
def stress(  # noqa: PLR0917  (groups of options)
    log: LogOptions,
    asked: AskedPolicies,
    options: StressOptions,
    method: EstimatorOptions,
    cluster: ClusterOptions,
    run: RunOptions,
) -> None:
    """Put the estimate of a policy in LOG to the test, one change at a time.

    Doses are permuted, outcomes simulated with a known truth, contexts and groups left out, folds
    and models exchanged. Everything is estimated anew for each, so that it takes some twenty times
    as long as `titrant evaluate`.
    """
    from titrant.cli import results  # noqa: PLC0415
    from titrant.doubt.stress import stressed  # noqa: PLC0415

    how = _checked(log, asked, method, run)
    with bar(READING, TRYING) as steps, ExitStack() as stack:
        opened = stack.enter_context(inputs.opened(log, cluster))
        pair = _pair(asked, opened)
        save_config(run.save_config)
        steps.begin(TRYING)
        found = stressed(
            opened.log,
            pair,
            given=asked.against is not None,
            **how,
            placebo_outcomes=inputs.columns(options.placebo_outcome),
            placebo_treatments=inputs.columns(options.placebo_treatment),
            contexts=inputs.columns(options.leave_out) or None,
            draws=options.draws,
            rows=options.rows,
            seed=method.seed,
            ignore_doubts=options.ignore_doubts,
            executor=opened.executor,
            progress=steps.advance,
        )
    results.doubts(found.doubts)
    if PIPE not in (asked.json, asked.out_csv):
        show(results.trials(found, asked.level))
        show(found.sentence)
    write_json(asked.json, found.to_dict(asked.level))
    write_rows(asked.out_csv, found.to_dict(asked.level)["trials"])


def _checked(
    log: LogOptions, asked: AskedPolicies, method: EstimatorOptions, run: RunOptions
) -> dict[str, Any]:
    """Refuse what cannot be asked, and return how it is estimated."""
    if len(asked.policy) > 1:
        raise click.UsageError(
            f"One policy is doubted at a time; got {len(asked.policy)}. Name the other one by "
            "`--against`."
        )
    others = [] if asked.against is None else [asked.against]
    read = [
        ("LOG", log.log),
        *inputs.files(asked.policy),
        *inputs.files(others, "--against"),
    ]
    check_outputs(run, [("--json", asked.json), ("--out-csv", asked.out_csv)], read)
    return inputs.method(method, log)


def _pair(asked: AskedPolicies, opened: Opened) -> dict[str, Policy]:
    """Return the policy and what it is held against, by name."""
    other = f"{STATUS_QUO}=status-quo" if asked.against is None else asked.against
    return inputs.policies([*asked.policy, other], opened.log)


def _strengths(text: str) -> list[float]:
    """Return the strengths in a comma list."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(1.0 <= g <= 1e6 for g in found):  # noqa: PLR2004
        raise bad_value("--gamma", f"{text!r} is no list of numbers ≥ 1, such as 1.2,1.5,2.")
    return found
