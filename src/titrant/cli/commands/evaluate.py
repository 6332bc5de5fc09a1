"""`titrant evaluate`, `compare`, `check` and `describe`: a log, and policies on it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

import titrant as tt
from titrant.cli import inputs, writing
from titrant.cli.app import REFUSED
from titrant.cli.commands.protocol import filled, held_to
from titrant.cli.options import (
    ClusterOptions,
    DoubtOptions,
    LogOptions,
    MethodOptions,
    OutputOptions,
    PageOptions,
    PolicyOptions,
    QuestionOptions,
    RunOptions,
    config_text,
    csv_file,
    json_file,
    policies,
    save_config,
    settings,
    takes,
)
from titrant.cli.terminal import (
    CHECKING,
    ESTIMATING,
    FITTING,
    READING,
    REPORTING,
    bad_value,
    bar,
    note,
    show,
)
from titrant.cli.writing import (
    PIPE,
    check_outputs,
    note_written,
    write_json,
    write_rows,
    write_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant.data.columns import Flow
    from titrant.evaluation.evaluation import Comparison, Evaluation
    from titrant.evaluation.questions.functionals import Functional
    from titrant.policies import Policy


@dataclass(frozen=True, slots=True)
class Request:
    """The options of `evaluate` and `compare`, group by group."""

    log: LogOptions
    policies: PolicyOptions
    method: MethodOptions
    question: QuestionOptions
    output: OutputOptions
    page: PageOptions
    doubt: DoubtOptions
    cluster: ClusterOptions
    run: RunOptions


_takes_request = takes(
    LogOptions,
    PolicyOptions,
    MethodOptions,
    QuestionOptions,
    OutputOptions,
    PageOptions,
    DoubtOptions,
    ClusterOptions,
    RunOptions,
)

_EVALUATE = """\b
Example:
  titrant evaluate log.csv --treatment dose --outcome loss --policy constant:35
"""


@click.command("evaluate", epilog=_EVALUATE)
@_takes_request
def evaluate(*groups: Any) -> None:  # noqa: ANN401  (those of a request)
    """Estimate how good one policy would have been on the contexts of LOG.

    LOG is a CSV, Excel, Parquet or Arrow file, a pattern such as 'logs/*.parquet', or - for CSV
    from a pipe.
    """
    asked = Request(*groups)
    if len(asked.policies.policy) > 1:
        raise click.UsageError(
            f"`titrant evaluate` takes one policy; got {len(asked.policies.policy)}. "
            "Use `titrant compare` for several."
        )
    _answer(asked, lambda found: next(iter(found.estimates.values())).to_dict(asked.output.level))


_COMPARE = """\b
Example:
  titrant compare log.csv --treatment dose --outcome loss \\
    --policy new=policy.json --policy logged-mean
"""


@click.command("compare", epilog=_COMPARE)
@_takes_request
def compare(*groups: Any) -> None:  # noqa: ANN401
    """Estimate several policies on the same rows of LOG, and their paired differences.

    LOG is a CSV, Excel, Parquet or Arrow file, a pattern such as 'logs/*.parquet', or - for CSV
    from a pipe.
    """
    asked = Request(*groups)
    if len(asked.policies.policy) == 1:
        raise click.UsageError(
            "`titrant compare` takes at least two policies; got one. "
            "Use `titrant evaluate` for one."
        )
    margin, maximize = asked.question.margin, asked.output.maximize
    _answer(asked, lambda f: f.to_dict(asked.output.level, margin=margin, maximize=maximize))


def _answer(asked: Request, result: Callable[[Comparison], dict[str, Any]]) -> None:
    """Read the log, call the library, print and write; ``result`` is what programs get."""
    from titrant.evaluation.evaluation import Evaluation  # noqa: PLC0415

    output = asked.output
    check_outputs(
        asked.run,
        [("--html", output.html), ("--json", output.json), ("--out-csv", output.out_csv)],
        [
            ("LOG", asked.log.log),
            ("--protocol", output.protocol),
            ("--population", asked.question.population),
            *inputs.files(asked.policies.policy),
        ],
    )
    if output.html is None and (asked.doubt.sensitivity or asked.doubt.stress):
        raise click.UsageError(
            "`--sensitivity` and `--stress` are parts of a page: name it by `--html FILE`, or call "
            "`titrant sensitivity` and `titrant stress`."
        )
    held = held_to(output.protocol)
    how = inputs.method(asked.method, asked.log)
    functional = inputs.functional(asked.question.functional)
    if functional is not None and output.html is not None:
        raise bad_value("--functional", "The report page is of mean outcomes. Leave `--html` out.")
    with ExitStack() as stack:
        with bar(READING, FITTING, ESTIMATING) as steps:
            opened = stack.enter_context(inputs.opened(asked.log, asked.cluster))
            rules = inputs.policies(asked.policies.policy, opened.log)
            save_config(asked.run.save_config)
            steps.begin(FITTING)
            models = how["estimator"], how["propensity"], opened.executor
            ignore, allowed = asked.method.ignore_doubts, asked.method.allow_untrusted
            there = inputs.population(asked.question.population)
            if functional is None:
                evaluation = Evaluation.of(
                    opened.log, rules, *models, ignore_doubts=ignore, weights_to=there
                )
                steps.begin(ESTIMATING)
                comparison = evaluation.compare(how["bandwidth"], allow_untrusted=allowed)
            else:
                comparison = tt.compare(
                    opened.log,
                    rules,
                    **how,
                    weights_to=there,
                    functional=functional,
                    allow_untrusted=allowed,
                    ignore_doubts=ignore,
                    executor=opened.executor,
                )
        _print(comparison, output, asked.question.margin, functional)
        told = filled(held, _flow(comparison), asdict(asked.doubt))
        write_json(output.json, {**result(comparison), **({"protocol": told} if told else {})})
        write_rows(output.out_csv, writing.rows(comparison, output.level))
        if output.html is not None:
            page = _page(comparison, evaluation, asked, how, rules, told)
            write_text(output.html, page)
            note_written(output.html)


def _flow(comparison: Comparison) -> Flow | None:
    """Return what was done to the rows."""
    return next((estimate.flow for estimate in comparison.estimates.values()), None)


def _print(
    comparison: Comparison,
    output: OutputOptions,
    margin: float | None,
    functional: Functional | None,
) -> None:
    """Print the tables unless standard output is for a file."""
    from titrant.cli import results  # noqa: PLC0415
    from titrant.reporting.words import beyond_shares  # noqa: PLC0415

    results.cautions(comparison.estimates)
    refusals = results.refusals(comparison.refused)
    if PIPE in (output.json, output.html, output.out_csv):
        for sentence in refusals:
            note(sentence)
        return
    show(results.values(comparison.estimates, output.level, refused=comparison.refused))
    for sentence in refusals:
        show(f"{sentence}\n")
    if isinstance(functional, tt.Exceeds):
        ends = {name: e.interval(output.level) for name, e in comparison.estimates.items()}
        if beyond := beyond_shares(ends):
            show(f"{beyond}\n")
    if len(comparison.estimates) > 1:
        show(results.differences(comparison, output.level, maximize=output.maximize))
    if margin is not None:
        for sentence in results.margins(comparison, margin, output.level, output.maximize):
            show(f"{sentence}\n")
    show(results.reading(maximize=output.maximize))


def _page(  # noqa: PLR0917
    comparison: Comparison,
    evaluation: Evaluation,
    asked: Request,
    how: dict[str, Any],
    rules: dict[str, Policy],
    told: dict[str, Any] | None,
) -> str:
    """Return the report page."""
    from titrant.reporting import gather, render  # noqa: PLC0415
    from titrant.reporting.written import doubts_of  # noqa: PLC0415

    with bar(REPORTING) as steps:
        report = gather(
            comparison,
            evaluation,
            level=asked.output.level,
            maximize=asked.output.maximize,
            bandwidth=how["bandwidth"],
            settings=settings(),
            config=config_text(),
            rules=rules,
            treatments=inputs.columns(asked.log.treatment),
            outcome=asked.log.outcome,
            **inputs.page(asked.page, asked.log, evaluation.source),
            protocol=told,
            doubts=doubts_of(
                how,
                sensitivity=asked.doubt.sensitivity,
                stress=asked.doubt.stress,
                seed=asked.method.seed,
                level=asked.output.level,
            ),
            progress=steps.advance,
        )
        return render(report)


_CHECK = """\b
Example:
  titrant check log.csv --treatment dose --outcome loss --policy constant:35
"""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """About which policy, and where the report goes."""

    policy: tuple[str, ...] = policies(required=False)
    json: str | None = json_file()
    out_csv: str | None = csv_file()


@click.command("check", epilog=_CHECK)
@takes(LogOptions, CheckOptions, MethodOptions, ClusterOptions, RunOptions)
def check(
    log: LogOptions,
    options: CheckOptions,
    method: MethodOptions,
    cluster: ClusterOptions,
    run: RunOptions,
) -> None:
    """Check whether LOG can be trusted, and a policy on it: propensities, overlap, bandwidth.

    LOG is a CSV, Excel, Parquet or Arrow file, a pattern such as 'logs/*.parquet', or - for CSV
    from a pipe. Without a policy only the propensities are checked. Exit code 1 means: not to be
    trusted.
    """
    from titrant.cli import results  # noqa: PLC0415
    from titrant.inference import Verdict  # noqa: PLC0415

    if len(options.policy) > 1:
        raise click.UsageError(
            f"`titrant check` takes one policy at a time; got {len(options.policy)}. "
            "Call it once for each, or use `titrant compare`."
        )
    read = [("LOG", log.log), *inputs.files(options.policy)]
    check_outputs(run, [("--json", options.json), ("--out-csv", options.out_csv)], read)
    how = inputs.method(method, log)
    with bar(READING, CHECKING) as steps, ExitStack() as stack:
        opened = stack.enter_context(inputs.opened(log, cluster))
        policy = next(iter(inputs.policies(options.policy, opened.log).values()), None)
        save_config(run.save_config)
        steps.begin(CHECKING)
        found = tt.check(
            opened.log,
            policy,
            **how,
            seed=method.seed,
            ignore_doubts=method.ignore_doubts,
            executor=opened.executor,
        )
    if PIPE not in (options.json, options.out_csv):
        show(results.checks(found))
    for remark in found.notes:
        note(f"Note: {remark}")
    write_json(options.json, found.to_dict())
    write_rows(options.out_csv, writing.check_rows(found))
    if found.verdict is Verdict.REFUSE and not method.allow_untrusted:
        click.get_current_context().exit(REFUSED)


# ── `titrant describe`: what is in a log ──────────────────────────────────────────────────────────

_DESCRIBE = """\b
Example:
  titrant describe log.csv --treatment dose --outcome loss
"""


@dataclass(frozen=True, slots=True)
class DescribeOptions:
    """Where the description goes."""

    json: str | None = json_file()
    out_csv: str | None = csv_file()


@click.command("describe", epilog=_DESCRIBE)
@takes(LogOptions, DescribeOptions, ClusterOptions, RunOptions)
def describe(
    log: LogOptions, options: DescribeOptions, cluster: ClusterOptions, run: RunOptions
) -> None:
    """Show what is in LOG: its rows, doses, outcomes and contexts, and which columns are doubtful.

    LOG is a CSV, Excel, Parquet or Arrow file, a pattern such as 'logs/*.parquet', or - for CSV
    from a pipe. Nothing is estimated.
    """
    from titrant.cli import results  # noqa: PLC0415

    check_outputs(
        run, [("--json", options.json), ("--out-csv", options.out_csv)], [("LOG", log.log)]
    )
    with bar(READING), ExitStack() as stack:
        opened = stack.enter_context(inputs.opened(log, cluster))
        save_config(run.save_config)
        found = tt.describe(opened.log, executor=opened.executor)
    if PIPE not in (options.json, options.out_csv):
        treatments = inputs.columns(log.treatment)
        for part in results.description(found, treatments, log.outcome):
            show(part)
    results.doubts(found.doubts)
    write_json(options.json, found.to_dict())
    write_rows(options.out_csv, writing.column_rows(found))
