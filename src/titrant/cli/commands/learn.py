"""`titrant learn`: a policy from a log, with its honest value."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

import titrant as tt
from titrant.cli import inputs, names, writing
from titrant.cli.app import REFUSED
from titrant.cli.commands.asking import with_outcome
from titrant.cli.commands.protocol import filled, held_to
from titrant.cli.options import (
    ClusterOptions,
    LogOptions,
    OutputOptions,
    PageOptions,
    RunOptions,
    allow_untrusted,
    choice,
    column_names,
    flag,
    ignore_doubts,
    option,
    propensity_model,
    save_config,
    seed,
    takes,
    typed,
)
from titrant.cli.terminal import LEARNING, READING, bad_value, bar, note, show
from titrant.cli.writing import (
    PIPE,
    check_outputs,
    note_written,
    write_json,
    write_rows,
    write_text,
)

if TYPE_CHECKING:
    from titrant.cli.inputs import Opened
    from titrant.data.source import Source
    from titrant.learn.limits import Limits
    from titrant.policies import Policy

CLASSES = (
    *("linear", "constant", "additive", "tree", "linear-tree"),
    *("products", "rbf", "personal", "auto"),
)
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
        metavar="FILE",
        help="The learned policy, for `titrant recommend`.",
    )
    safe: bool = flag(
        "--safe",
        "Keep the status quo unless the improvement is clear of zero and its verdict is ok.",
    )
    safe_level: str = choice(
        "--safe-level",
        SAFE_LEVELS,
        "The worst verdict with which --safe deploys the learned policy; never with a warning "
        "that bears on confounding.",
        default="ok",
    )
    policy_class: str | None = choice(
        "--policy-class",
        CLASSES,
        "linear in the context; constant: the same dose for all; additive: a curve for each "
        "context; tree: up to 8 groups; products: with squares and products of contexts; rbf: "
        "smooth in the context; personal: each by those most alike; auto: the simplest of the "
        "first five (of several doses: constant, linear, tree) that loses nothing that can be "
        "seen. Unless given: auto; linear with `--procedure cpo`.",
    )
    against: tuple[str, ...] = option(
        "--against",
        multiple=True,
        metavar="[NAME=]POLICY",
        help="A policy to compare with, besides the status quo and the mean dose; written as for "
        "`titrant evaluate --policy`.",
    )
    models: str = choice(
        "--models",
        MODELS,
        "Outcome models: the whole library, or its two ridge models alone, which is faster.",
        default="all",
    )
    procedure: str = choice(
        "--procedure",
        PROCEDURES,
        "stacked: doubly robust, from outcome models, and of a log in parts from a sample of "
        "its rows; cpo: search for the least estimated loss, over all rows, "
        "with 30 effective rows or more.",
        default=STACKED,
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
    ignore_doubts: bool = ignore_doubts()


# Limits of the real world, as they are typed.


class NumbersText(click.ParamType):  # type: ignore[type-arg]  # newer clicks only
    """A number, or several with commas between."""

    name = "X[,X…]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the text as it is, once it can be understood."""
        text = str(value)
        try:
            numbers(text)
        except ValueError:
            self.fail(f"{text!r} is neither a number nor numbers with commas between.", param, ctx)
        return text


def numbers(text: str) -> float | list[float]:
    """Return a number, or several with commas between."""
    found = [float(part) for part in text.split(",") if part.strip()]
    return found if "," in text else float(text)


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """What the learned rule must keep to."""

    steps: str | None = option(
        "--steps",
        type=NumbersText(),
        help="The doses there are: multiples of `2.5`, or the strengths `1,2,5`.",
    )
    at_least: str | None = option(
        "--at-least", metavar="X|COLUMN", help="The smallest dose: a number, or each row's own."
    )
    at_most: str | None = option(
        "--at-most", metavar="X|COLUMN", help="The largest dose: a number, or each row's own."
    )
    current: str | None = option(
        "--current", metavar="COLUMN", help="Each row's dose so far, for --largest-change."
    )
    largest_change: float | None = option(
        "--largest-change", type=float, metavar="X", help="How far the dose may be from --current."
    )
    increasing: tuple[str, ...] = column_names(
        "--increasing", "Contexts with which the dose must not fall."
    )
    decreasing: tuple[str, ...] = column_names(
        "--decreasing", "Contexts with which the dose must not rise."
    )
    mean_dose: float | None = option(
        "--mean-dose", type=float, metavar="X", help="The budget: the mean dose is at most this."
    )
    equal_across: str | None = option(
        "--equal-across",
        metavar="COLUMN:MARGIN",
        help="The mean doses of the groups of a column differ by at most a margin: `sex:0.5`.",
    )
    alike_across: str | None = option(
        "--alike-across",
        metavar="COLUMN:MARGIN",
        help="The mean outcomes of the groups of a column under the rule differ by at most a "
        "margin: `sex:0.5`.",
    )
    cap: str | None = option(
        "--cap",
        metavar="COLUMN:MOST",
        help="The mean of a second outcome under the rule is at most this: `nausea:0.3`. The "
        "column is no context.",
    )


def named_number(text: str | None, name: str) -> tuple[str, float] | None:
    """Return a column and the number behind its colon."""
    if text is None:
        return None
    column, colon, value = text.rpartition(":")
    try:
        if colon and column:
            return column, float(value)
    except ValueError:
        pass
    raise bad_value(name, f"{text!r} is not a column, a colon and a number.")


def limits(options: LimitOptions, second: Source | None) -> Limits | None:
    """Return the limits that were typed; None if there are none.

    ``second`` is the log with the outcome that has a cap.
    """
    if (options.current is None) != (options.largest_change is None):
        raise bad_value("--largest-change", "It is from --current: give both, or neither.")
    equal = named_number(options.equal_across, "--equal-across")
    alike = named_number(options.alike_across, "--alike-across")
    cap = named_number(options.cap, "--cap")
    made = tt.Limits(
        steps=None if options.steps is None else numbers(options.steps),
        at_least=_end(options.at_least),
        at_most=_end(options.at_most),
        current=options.current,
        largest_change=options.largest_change,
        increasing=tuple(inputs.columns(options.increasing)),
        decreasing=tuple(inputs.columns(options.decreasing)),
        mean_dose=options.mean_dose,
        equal_across=None if equal is None else equal[0],
        margin=None if equal is None else equal[1],
        alike_across=None if alike is None else alike[0],
        value_margin=None if alike is None else alike[1],
        cap=None if cap is None else tt.Cap(log=second, at_most=cap[1], name=cap[0]),  # type: ignore[arg-type]  # refused there if it is in files
    )
    return made if made.parts else None


def _end(text: str | None) -> float | str | None:
    """Return a number, or the name of a column."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


_EXAMPLE = """\b
Example:
  titrant learn log.csv --treatment dose --outcome loss -o policy.json --html report.html
  titrant recommend policy.json patients.csv -o doses.csv
"""


@click.command("learn", epilog=_EXAMPLE)
@takes(
    LogOptions,
    LearnOptions,
    LimitOptions,
    OutputOptions,
    PageOptions,
    ClusterOptions,
    RunOptions,
)
def learn(  # noqa: PLR0917  (a group of options each)
    log: LogOptions,
    options: LearnOptions,
    kept: LimitOptions,
    output: OutputOptions,
    page: PageOptions,
    workers: ClusterOptions,
    run: RunOptions,
) -> None:
    """Learn a dosing policy from LOG and grade it on rows it was not learned from.

    LOG is a CSV, Excel, Parquet or Arrow file, a pattern such as 'logs/*.parquet', or - for CSV
    from a pipe. The policy is learned on all rows; its value comes from learning on each half and
    grading on the other. Exit code 1 means that this value is not to be trusted, and no policy is
    written, also with --safe. Where --safe keeps the status quo, FILE says so and doses nobody.
    """
    _check_files(log, options, output, run)
    _check_checkpoint(options, parts=inputs.in_parts(workers))
    inputs.check_one_propensity(options.propensity_model, log)
    held = held_to(output.protocol)
    with ExitStack() as stack:
        with bar(READING, LEARNING) as steps:
            second = named_number(kept.cap, "--cap")
            named = [log.outcome, *([] if second is None else [second[0]])]
            opened, *others = (
                stack.enter_context(inputs.opened(with_outcome(log, name, named), workers))
                for name in named
            )
            against = inputs.policies(options.against, opened.log)
            save_config(run.save_config)
            steps.begin(LEARNING)
            learner = _learner(options, output, opened, against)
            learner.set_params(limits=limits(kept, others[0].log if others else None))
            learner.set_params(progress=steps.learning).fit(opened.log).set_params(progress=None)
        told = filled(held, learner.survey_.sample.log.flow)
        trusted = _tell(learner, opened.log, log, output, page, told)
    note_written(output.html)
    _say_how(learner)
    written = _keep(learner, options, trusted=trusted)
    say_next(log, options, output, apply=written and learner.deployed_)
    if not written:
        click.get_current_context().exit(REFUSED)


def _check_files(
    log: LogOptions, options: LearnOptions, output: OutputOptions, run: RunOptions
) -> None:
    """Refuse files that cannot be written, or that are read too."""
    check_outputs(
        run,
        [
            ("--output", options.output),
            ("--html", output.html),
            ("--json", output.json),
            ("--out-csv", output.out_csv),
        ],
        [
            ("LOG", log.log),
            ("--protocol", output.protocol),
            *inputs.files(options.against, "--against"),
        ],
        made=[("--checkpoint", options.checkpoint)],
    )
    if options.safe_level != "ok" and not options.safe:
        raise bad_value("--safe-level", "It says when --safe deploys: add --safe.")
    if options.output == PIPE:
        raise bad_value("--output", "The policy goes to a file.")


def _check_checkpoint(options: LearnOptions, *, parts: bool) -> None:
    """Refuse to keep the state of anything but a search over a log in parts."""
    if options.checkpoint is not None and not (parts and options.procedure == SEARCH):
        raise bad_value(
            "--checkpoint",
            "Only a search over a log in parts has a state to keep. Add `--procedure cpo` and "
            "`--in-parts`, `--workers` or `--dask`, or leave it out.",
        )


def _tell(  # noqa: PLR0917  (groups of options)
    learner: tt.PolicyLearner,
    log: Source,
    columns: LogOptions,
    output: OutputOptions,
    called: PageOptions,
    told: dict[str, Any] | None,
) -> bool:
    """Print and write what was learned; return whether its honest value can be trusted."""
    from titrant.cli import results  # noqa: PLC0415
    from titrant.reporting.written import described, honest_value  # noqa: PLC0415

    honest, maximize = honest_value(learner), output.maximize
    treatments = inputs.columns(columns.treatment)
    results.cautions({names.LEARNED: honest.comparison[names.LEARNED]})
    if PIPE not in (output.json, output.html, output.out_csv):
        show(results.formulas(learner, treatments))
        show(results.values(honest.comparison.estimates, output.level))
        show(results.honest_differences(honest, output.level, maximize=maximize))
        if found := described(learner)["candidates"]:
            show(results.candidates(found))
        if (choice := learner.choice_) is not None:
            if len(choice.classes) > 1:
                show(results.classes(choice))
            show(choice.finding)
        if learner.limits_ is not None:
            for table in results.limits(learner.limits_):
                show(table)
            show(learner.limits_.finding)
        show(results.reading(maximize=maximize))
        show(learner.decision_)
    result = results.learned_result(learner, output.level)
    write_json(output.json, {**result, **({"protocol": told} if told else {})})
    pairs = [(names.LEARNED, name) for name in honest.names]
    write_rows(output.out_csv, writing.rows(honest.comparison, output.level, pairs))
    if output.html is not None:
        page = results.learned_page(
            learner,
            log,
            treatments=treatments,
            outcome=columns.outcome,
            level=output.level,
            maximize=maximize,
            protocol=told,
            **inputs.page(called, columns, log),
        )
        write_text(output.html, page)
    return honest.trusted


def _say_how(learner: tt.PolicyLearner) -> None:
    """Say from how many rows the policy was learned, if not from all, and what was chosen."""
    report = learner.learned_.report
    some, every = report.get("learned_on"), report.get("rows")
    if some is not None and some < every:
        note(
            f"Learned from a sample of {some:,} of {every:,} rows and "
            "graded on all; `--procedure cpo` learns from all."
        )
    for remark in learner.notes_:
        note(remark)


def _keep(learner: tt.PolicyLearner, options: LearnOptions, *, trusted: bool) -> bool:
    """Write the policy, or the status quo if it was kept, unless the value cannot be trusted."""
    if trusted or options.allow_untrusted:
        learner.save(options.output)
        kept = ", which keeps the status quo: dose as before; there is nothing to apply."
        use = "." if learner.deployed_ else kept
        note(f"Wrote {options.output}{use}")
        return True
    note(
        f"Refused: {options.output} was not written, because the value of the policy cannot be "
        "trusted. Mend what is objected to above, or pass `--allow-untrusted`."
    )
    return False


def say_next(log: LogOptions, options: LearnOptions, output: OutputOptions, *, apply: bool) -> None:
    """Say what to do next, in commands with the files and columns of this run."""
    same, more = shlex.join(typed(log)), " --maximize" if output.maximize else ""
    steps = {
        f"titrant check {same}": "can this log be trusted?",
        f"titrant curve {same}{more}": "the same dose for everyone, dose by dose",
    }
    if apply:
        policy = shlex.quote(options.output)
        asked = f"{same} --policy {policy}"
        steps = {
            f"titrant recommend {policy} NEW.csv -o doses.csv --explain": "doses for new rows",
            f"titrant subgroups {asked} --by COLUMN": "for whom it is better",
            f"titrant sensitivity {asked}": "how strong a hidden cause would undo it",
        }
        if output.html is None:
            page = f"titrant evaluate {asked}{more} --html report.html"
            steps |= {page: "a page to decide on and to show"}
    note("Next:")
    for command, what in steps.items():
        note(f"  {command}   # {what}")


def _learner(
    options: LearnOptions, output: OutputOptions, opened: Opened, against: dict[str, Policy]
) -> tt.PolicyLearner:
    """Return the learner that the options ask for."""
    made = (
        *(tt.LinearClass(), tt.ConstantClass(), tt.AdditiveClass(), tt.TreeClass()),
        *(
            tt.LinearTreeClass(),
            tt.ProductsClass(),
            tt.RBFClass(seed=options.seed),
            tt.PersonalClass(),
            tt.Automatic(),
        ),
    )
    return tt.PolicyLearner(
        policy=dict(zip(CLASSES, made, strict=True)).get(options.policy_class or ""),
        procedure=_procedure(options, opened.log),
        propensity=names.propensity_model(options.propensity_model, options.seed),
        maximize=output.maximize,
        safe=options.safe,
        safe_level=options.safe_level,
        against=against,
        grade=tt.DoublyRobust(seed=options.seed),
        seed=options.seed,
        ignore_doubts=options.ignore_doubts,
        executor=opened.executor,
        checkpoint=options.checkpoint,
    )


def _procedure(options: LearnOptions, log: Source) -> Any:  # noqa: ANN401
    """Return the procedure with models and seed; stacked, the library's own for vector doses."""
    from titrant.outcome import ridge_pair  # noqa: PLC0415

    models = ridge_pair() if options.models == "ridge" else None
    if options.procedure == STACKED and log.dimension == 1:
        return tt.StackedDR(models=models, seed=options.seed)
    if models is not None:
        raise bad_value(
            "--models",
            "Only `--procedure stacked` with one dose takes a library of models. Leave it out.",
        )
    return tt.CPO(ess_floor=LEAST_ESS, seed=options.seed) if options.procedure == SEARCH else None
