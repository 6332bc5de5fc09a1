"""`titrant curve`, `subgroups` and `outcomes`: over which doses, for whom, and by what."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import click

import titrant as tt
from titrant.cli import inputs, writing
from titrant.cli.names import STATUS_QUO
from titrant.cli.options import (
    ClusterOptions,
    LogOptions,
    MethodOptions,
    RunOptions,
    choice,
    column_names,
    config_text,
    csv_file,
    explained,
    flag,
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
from titrant.cli.writing import (
    PIPE,
    check_outputs,
    note_written,
    write_json,
    write_rows,
    write_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from titrant.data.source import Source
    from titrant.evaluation.evaluation import Evaluation
    from titrant.policies import Policy


# ── `titrant curve`: value over doses, over changes of every dose, over the strength of a rule ────

OVER = {
    "dose": "the same dose for everyone",
    "shift": "every dose raised by as much",
    "multiply": "every dose times as much",
    "tilt": "larger doses given more often",
    "strength": "how far --policy is followed, from the mean dose (0) to the rule (1)",
}
PICTURES = (".svg", ".png", ".html")
MOST_POINTS = 1000


@dataclass(frozen=True, slots=True)
class CurveOptions:
    """Over what, at which points, and where the curve goes."""

    over: str = choice("--over", OVER, explained(OVER), default="dose")
    at: str | None = option(
        "--at",
        metavar="X,…",
        help="The points: `20,30,40`, or from:to:step as `20:40:5`.  [default: round steps over "
        "what was logged]",
    )
    policy: tuple[str, ...] = policies(required=False)
    maximize: bool = flag("--maximize", "The outcome is a reward: higher is better.")
    level: float = level()
    out: str | None = option(
        "--out", metavar="FILE", help="Draw the curve: .svg, .png, or .html with the table."
    )
    json: str | None = json_file()
    out_csv: str | None = csv_file()


_CURVE = """\b
Examples:
  titrant curve log.csv --treatment dose --outcome loss --at 20:50:5 --out curve.svg
  titrant curve log.csv --treatment dose --outcome loss --over shift
"""


@click.command("curve", epilog=_CURVE)
@takes(LogOptions, CurveOptions, MethodOptions, ClusterOptions, RunOptions)
def curve(
    log: LogOptions,
    options: CurveOptions,
    method: MethodOptions,
    cluster: ClusterOptions,
    run: RunOptions,
) -> None:
    """Estimate the value of every dose in LOG, of a change of doses, or of a rule applied in part.

    LOG is a CSV, Excel, Parquet or Arrow file, a pattern such as 'logs/*.parquet', or - for CSV
    from a pipe. The interval holds at each point, the band at all of them at once. Points that the
    log cannot answer are refused, with the reason in the JSON and the CSV.
    """
    from titrant.cli import results  # noqa: PLC0415
    from titrant.evaluation.curves import curve_on  # noqa: PLC0415
    from titrant.evaluation.evaluation import Evaluation  # noqa: PLC0415
    from titrant.evaluation.trust import doubts_report  # noqa: PLC0415

    _check_curve(log, options)
    check_outputs(
        run,
        [("--out", options.out), ("--json", options.json), ("--out-csv", options.out_csv)],
        [("LOG", log.log), *inputs.files(options.policy)],
    )
    how, points = inputs.method(method, log), _points(options.at)
    with bar(READING, FITTING, ESTIMATING) as steps, ExitStack() as stack:
        opened = stack.enter_context(inputs.opened(log, cluster))
        base = inputs.policies(options.policy, opened.log) or {STATUS_QUO: tt.StatusQuo()}
        _check_rule(options.over, base)
        save_config(run.save_config)
        steps.begin(FITTING)
        models = how["estimator"], how["propensity"], opened.executor
        evaluation = Evaluation.of(opened.log, base, *models, ignore_doubts=method.ignore_doubts)
        steps.begin(ESTIMATING)
        found = curve_on(
            evaluation,
            _family(options.over, evaluation),
            _usual_points(options.over, evaluation) if points is None else points,
            bandwidth=how["bandwidth"],
            allow_untrusted=method.allow_untrusted,
        )
    names = [inputs.columns(log.treatment)[0] if options.over == "dose" else options.over]
    results.doubts(doubts_report(evaluation.survey, ignore_doubts=method.ignore_doubts))
    sentence = results.best_point(found, names[0], options.level, maximize=options.maximize)
    if PIPE not in (options.json, options.out_csv):
        show(results.curve(found, names[0], options.level))
        show(sentence)
    if warned := results.warned_points(found):
        first = warned.partition(",")[0]
        asked = first if options.over == "dose" else f"{options.over}:{first}"
        note(f"Verdict warn at {warned}: `titrant evaluate … --policy {asked}` says why.")
    for reason, refused in results.refused_points(found).items():
        note(f"Refused ({refused}): {reason}")
    write_json(options.json, found.to_dict(options.level))
    write_rows(options.out_csv, writing.curve_rows(found, names[0], options.level))
    if options.out is not None:
        writing.draw_curve(options.out, found, (names[0], log.outcome, sentence), options.level)
        note_written(options.out)


def _check_curve(log: LogOptions, options: CurveOptions) -> None:
    """Refuse what no curve can be drawn of."""
    if len(inputs.columns(log.treatment)) > 1:
        raise bad_value(
            "--treatment",
            "A curve is over one dose. `titrant evaluate … --html` draws one for each of several, "
            "with the others at their means.",
        )
    if (options.over == "strength") != (len(options.policy) == 1):
        raise bad_value(
            "--policy", "`--over strength` takes one policy, which is then followed in part; the "
            "other curves take none."
        )  # fmt: skip
    if options.out is not None and not options.out.lower().endswith(PICTURES):
        raise bad_value("--out", f"`{options.out}` must end in {', '.join(PICTURES)}.")


def _check_rule(over: str, base: Mapping[str, Policy]) -> None:
    """Refuse to follow in part what is no rule of the contexts."""
    from titrant.policies import Move  # noqa: PLC0415

    if over == "strength" and any(isinstance(p, (tt.StatusQuo, Move)) for p in base.values()):
        sentence = "`--over strength` follows a rule of the contexts in part; this one changes the "
        raise bad_value("--policy", f"{sentence}logged dose. Use `--over shift` or `multiply`.")


def _points(text: str | None) -> list[float] | None:
    """Return the points that are typed, one by one or as from:to:step.

    >>> _points("20,30"), _points("0:1:0.25"), _points(None)
    ([20.0, 30.0], [0.0, 0.25, 0.5, 0.75, 1.0], None)
    """
    if text is None:
        return None
    try:
        if ":" not in text:
            return [float(part) for part in text.split(",")]
        low, high, step = (Decimal(part.strip()) for part in text.split(":"))
        count = int((high - low) / step) + 1
        if 1 <= count <= MOST_POINTS:
            return [float(low + k * step) for k in range(count)]
    except (ValueError, ArithmeticError):
        pass
    raise bad_value(
        "--at",
        f"{text!r} is neither numbers such as 20,30,40 nor from:to:step such as 20:40:5, of "
        f"{MOST_POINTS:,} points at most.",
    )


def _family(over: str, evaluation: Evaluation) -> Callable[[float], Policy]:
    """Return the policy at each point of a curve."""
    from titrant.reporting.estimates import partly  # noqa: PLC0415

    known: dict[str, Callable[[float], Policy]] = {
        "dose": tt.Constant,
        "shift": tt.Shift,
        "multiply": tt.Multiply,
        "tilt": tt.Tilt,
    }
    return known[over] if over in known else partly(evaluation, evaluation.policies[0])


def _usual_points(over: str, evaluation: Evaluation) -> ArrayLike:
    """Return points over what was logged: of doses those of a report page, else round steps."""
    from titrant.reporting import estimates as page  # noqa: PLC0415

    doses = evaluation.log.doses[:, 0]
    sd = float(doses.std())
    if over == "dose":
        return page.dose_grid(doses, evaluation.nuisances.masses)
    if over == "strength":
        return [strength for strength in page.STRENGTHS if strength <= 1.0]
    ends = {"shift": (-sd, sd), "multiply": (0.5, 1.5), "tilt": (-1.0 / sd, 1.0 / sd)}[over]
    return page.round_steps(*ends, page.SHIFTS + 1)


# ── `titrant subgroups`: for whom ─────────────────────────────────────────────────────────────────


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
    out_csv: str | None = csv_file()


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

    LOG is a CSV, Excel, Parquet or Arrow file, a pattern such as 'logs/*.parquet', or - for CSV
    from a pipe. Models and bandwidth are those of the whole log.
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
    check_outputs(
        run, [("--json", options.json), ("--out-csv", options.out_csv)], [("LOG", log.log), *files]
    )
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
    if PIPE not in (options.json, options.out_csv):
        show(results.subgroups(found, options.level))
        for test in found.equality:
            show(f"{test}\n")
    for label, reason in found.refused.items():
        note(f"Refused ({label}): {reason}")
    write_json(options.json, found.to_dict(options.level))
    write_rows(options.out_csv, writing.subgroup_rows(found, options.level))


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
    out_csv: str | None = csv_file()


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

    LOG is a CSV, Excel, Parquet or Arrow file, or a pattern such as 'logs/*.parquet'. `--outcome`
    names the outcomes, separated by commas; none is a context of another.
    """
    from titrant.cli import results  # noqa: PLC0415
    from titrant.evaluation.questions.outcomes import evaluations_of, outcomes_on  # noqa: PLC0415
    from titrant.reporting import gather, render  # noqa: PLC0415

    named, rewards = inputs.columns([log.outcome]), inputs.columns(options.rewards)
    _check_names(named, rewards)
    check_outputs(
        run,
        [("--html", options.html), ("--json", options.json), ("--out-csv", options.out_csv)],
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
        if PIPE not in (options.json, options.html, options.out_csv):
            show(results.outcomes(found, options.level))
            if len(found.policies) > 1:
                show(results.trade_offs(found, options.level))
            for sentence in found.sentences(options.level, rewards):
                show(f"{sentence}\n")
        write_json(options.json, found.to_dict(options.level, rewards))
        rows = writing.outcome_rows(found, options.level)
        write_rows(options.out_csv, rows)
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
