"""Results as people read them: tables on the terminal, and the page of a learned policy."""

from __future__ import annotations

import math
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from titrant._text import between, brief, digits
from titrant.cli.app import as_typed
from titrant.cli.names import LEARNED
from titrant.cli.options import config_text, settings
from titrant.cli.terminal import REPORTING, bar, note, visible
from titrant.evaluation.evaluation import Evaluation
from titrant.inference import Verdict
from titrant.reporting import gather, render
from titrant.reporting.numbers import percent
from titrant.reporting.rules import linear_part, rule
from titrant.reporting.words import better
from titrant.reporting.written import described, honest_value, learned_policies

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from titrant.data.source import Source
    from titrant.doubt.stress import Stress
    from titrant.evaluation.curves import Curve
    from titrant.evaluation.description import Description
    from titrant.evaluation.evaluation import Comparison, Estimate
    from titrant.evaluation.questions.outcomes import Outcomes
    from titrant.evaluation.questions.subgroups import Subgroups
    from titrant.inference import Diagnostics
    from titrant.learn.choice import ClassChoice
    from titrant.learn.honest import HonestValue
    from titrant.learn.limits import LimitsFound
    from titrant.learning import PolicyLearner
    from titrant.policies import Linear, Policy

_COLORS = {"ok": "green", "warn": "yellow", "refuse": "red"}


_SMALL, _LARGE = 1e-3, 1e9
"""Within these sizes a number is written out; beyond them with a power of ten."""
_EXACT = 15
"""Digits that a number can hold."""


def number(value: float, width: float = 0.0) -> str:
    """Return a number to four significant digits, or to two of the width of its interval.

    >>> number(3.0), number(-0.012346), number(98765.4), number(1.5e-9)
    ('3.000', '-0.01235', '98,765', '1.500e-09')
    >>> number(1_000_003.3351, 0.398), number(5e9, 2e8), number(5e9, 2.0)
    ('1,000,003.34', '5.000e+09', '5,000,000,000.0')
    """
    size = abs(value)
    if size == 0 or not math.isfinite(size):
        return f"{value:g}"
    written = min(_EXACT, digits(value, width))
    places = written - 1 - math.floor(math.log10(size))
    if size < _SMALL or (size >= _LARGE and places < 0):
        return f"{value:.{written - 1}e}"
    return f"{value:,.{max(0, places)}f}"


def value_and_interval(value: float, ends: tuple[float, float]) -> tuple[str, str]:
    """Return a value and its interval, in as many digits as the interval gives meaning to."""
    width = ends[1] - ends[0]
    return number(value, width), " … ".join(number(end, width) for end in ends)


def values(
    estimates: Mapping[str, Estimate],
    level: float,
    truth: Mapping[str, float] | None = None,
    refused: Iterable[str] = (),
) -> Table:
    """Return the values of policies with their intervals, bandwidths and verdicts.

    Policies that are refused have a row, but no number in it.
    """
    units = next(iter(estimates.values())).units
    headings = ["policy", "value", f"{percent(level)} CI", "h", f"ESS of {units}", "verdict"]
    table = _table([*headings, *(["truth"] if truth else [])])
    for name, estimate in estimates.items():
        written = value_and_interval(estimate.value, estimate.interval(level))
        effective, verdict = f"{estimate.ess:,.0f}", estimate.diagnostics.verdict.value
        known = [number(truth[name])] if truth else []
        _add(table, name, *written, bandwidth(estimate), effective, verdict, *known)
    for name in refused:
        _add(table, name, *["–"] * 4, Verdict.REFUSE.value)
    return table


def refusals(refused: Mapping[str, str]) -> list[str]:
    """Return a sentence about each policy that has no estimate."""
    return [
        f"Refused ({name}, and every difference to it): {as_typed(reason)}"
        for name, reason in refused.items()
    ]


def differences(
    comparison: Comparison,
    level: float,
    *,
    maximize: bool,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> Table:
    """Return the paired difference of each pair of policies, and which is better if it is clear."""
    table = _table(["difference", "value", f"{percent(level)} CI", "better"])
    for a, b in combinations(comparison.estimates, 2) if pairs is None else pairs:
        contrast = comparison.contrast(a, b)
        winner = better(contrast, level, maximize=maximize)
        _add(
            table,
            f"{a} − {b}",
            *value_and_interval(contrast.difference, contrast.interval(level)),
            winner,
        )
    return table


def margins(
    comparison: Comparison,
    margin: float,
    level: float,
    maximize: bool,  # noqa: FBT001
) -> Iterator[str]:
    """Yield for each pair whether the first is shown to be not worse by more than a margin."""
    for a, b in combinations(comparison.estimates, 2):
        contrast = comparison.contrast(a, b, margin=margin, maximize=maximize)
        shown = "is not worse" if contrast.not_worse(level) else "is not shown to be not worse"
        yield (
            f"{a} {shown} than {b} by more than {margin:g}: by {number(contrast.bound(level))} at "
            f"most (one-sided {percent(level)})."
        )


def subgroups(found: Subgroups, level: float) -> Table:
    """Return what a policy changes in all rows and in each part."""
    headings = list(found.headings(level))
    table = _table(headings)
    for name, *cells in found.table(level):
        _add(table, name, *cells)
    return table


def outcomes(found: Outcomes, level: float) -> Table:
    """Return the value of each policy by each outcome."""
    table = _table(found.headings(level))
    for name, *cells in found.table(level):
        _add(table, name, *cells)
    return table


def trade_offs(found: Outcomes, level: float) -> Table:
    """Return the differences of policies by each outcome; their intervals hold all at once."""
    headings, *rows = found.difference_table(level)
    table = _table(headings)
    for name, *cells in rows:
        _add(table, name, *cells)
    return table


def coefficients(learned: Policy, truth: Linear) -> Table:
    """Return the coefficients of a learned linear rule beside those of the best one."""
    found = linear_part(learned)
    table = _table(["rule: dose =", "learned", "truth"])
    if found is None or found.coef is None or truth.coef is None:
        return table
    _add(table, "intercept", number(float(found.intercept)), number(float(truth.intercept)))
    for name, ours, theirs in zip(truth.features or (), found.coef, truth.coef, strict=True):
        _add(table, f"per unit of {name}", number(float(ours)), number(float(theirs)))
    return table


def candidates(found: Sequence[Mapping[str, Any]]) -> Table:
    """Return what a learned policy was chosen from.

    Scores on rows held out are told less the chosen one's: a score alone is no value.
    """
    table = _table(["candidate", "behind the chosen", "SE", "weight"])
    for c in found:
        behind = f"{c['behind']:+.3g}".replace("-", "−"), f"{c['behind_se']:.2g}"
        name, cells = (f"{c['name']}, chosen", ("–", "–")) if c["chosen"] else (c["name"], behind)
        weight = "–" if c["weight"] is None else f"{c['weight']:.1%}"
        _add(table, name, *cells, weight)
    return table


def classes(choice: ClassChoice) -> Table:
    """Return the classes of rules that were compared on rows held out."""
    return _of_rows(choice.table())


def limits(found: LimitsFound) -> list[Table]:
    """Return where limits of a rule bind and what they cost, and the trade-off of a cap."""
    traded = [] if found.cap is None else [_of_rows(found.cap.table())]
    return [_of_rows(found.table()), *traded]


def _of_rows(rows: Sequence[Sequence[str]]) -> Table:
    """Return a table of its headings and rows."""
    headings, *others = rows
    table = _table(list(headings))
    for name, *cells in others:
        _add(table, name, *cells)
    return table


def checks(report: Diagnostics) -> Table:
    """Return the checks of a trust report, each with its verdict and its sentence."""
    table = _table(["check", "verdict", "finding"])
    for check in report.checks:
        _add(table, check.name.replace("_", " "), check.verdict.value, as_typed(check.message))
    return table


def bounds(rows: Sequence[Mapping[str, float]], level: float) -> Table:
    """Return bounds at each strength of a hidden cause, with their intervals."""
    table = _table(["Γ", "lower bound", "upper bound", f"{percent(level)} interval"])
    for row in rows:
        width = row["high"] - row["low"]
        lower, upper = (brief(row[end], width) for end in ("lower", "upper"))
        _add(table, f"{row['gamma']:g}", lower, upper, between(row["low"], row["high"]))
    return table


def benchmarks(found: Mapping[str, float]) -> Table:
    """Return how strong each recorded context would be as a hidden cause."""
    table = _table(["a hidden cause as strong as", "Γ"])
    for name, strength in found.items():
        _add(table, name, f"{strength:.2f}")
    return table


def trials(found: Stress, level: float) -> Table:
    """Return what became of an estimate in each trial."""
    table = _table(["trial", "value", f"{percent(level)} CI", "shift in SE", "verdict"])
    for row in found.cells(level):
        _add(table, *row)
    return table


def curve(found: Curve, over: str, level: float) -> Table:
    """Return the points of a curve with both bands; those that the log cannot answer have none."""
    headings = [over, "value", f"{percent(level)} CI", "all at once", "ESS", "verdict"]
    table = _table(headings)
    estimates = found.comparison.estimates.values()
    told = {
        parameter: (
            *value_and_interval(e.value, e.interval(level)),
            value_and_interval(e.value, (low, high))[1],
            f"{e.ess:,.0f}",
            e.diagnostics.verdict.value,
        )
        for parameter, e, (low, high) in zip(
            found.parameters.tolist(), estimates, found.band(level).tolist(), strict=True
        )
    }
    refused = (*["–"] * 4, Verdict.REFUSE.value)
    for parameter in sorted([*told, *found.refused]):
        _add(table, f"{parameter:g}", *told.get(parameter, refused))
    return table


def best_point(found: Curve, over: str, level: float, *, maximize: bool) -> str:
    """Return where a curve is best, what that is worth, and which points are about as good."""
    best = int((np.argmax if maximize else np.argmin)(found.values))
    ends = found.band(level)[best]
    value, interval = value_and_interval(float(found.values[best]), (ends[0], ends[1]))
    return (
        f"{reading(maximize=maximize)} Best at {over} {found.parameters[best]:g}: {value} "
        f"({percent(level)} of all points at once: {interval}). "
        f"{_ties(found, level, maximize=maximize)}"
    ).rstrip()


def _ties(found: Curve, level: float, *, maximize: bool) -> str:
    """Return which points of a curve are not clearly worse than the best one, in a sentence."""
    tied, others = found.about_as_good(level, maximize=maximize), len(found.parameters) - 1
    if not others:
        return ""
    if not tied:
        return "Every other point is clearly worse."
    if len(tied) == others:
        return "No other point is clearly worse."
    runs = _runs(sorted(found.parameters.tolist()), set(tied))
    verb = "is" if len(tied) == 1 else "are"
    listed = " and ".join([", ".join(runs[:-1]), runs[-1]] if len(runs) > 1 else runs)
    return f"{listed} {verb} not clearly worse."


def _runs(points: Sequence[float], chosen: set[float]) -> list[str]:
    """Return chosen points in words, neighbors as one run.

    >>> _runs([20, 25, 30, 35, 40, 45], {20, 30, 35, 40})
    ['20', '30 … 40']
    """
    runs = [list(run) for is_in, run in groupby(points, chosen.__contains__) if is_in]
    return [f"{run[0]:g}" if len(run) == 1 else f"{run[0]:g} … {run[-1]:g}" for run in runs]


def warned_points(found: Curve) -> str:
    """Return the points at which the trust checks warn."""
    each = zip(found.parameters, found.comparison.estimates.values(), strict=True)
    return ", ".join(f"{p:g}" for p, e in each if e.diagnostics.verdict is Verdict.WARN)


def refused_points(found: Curve) -> dict[str, str]:
    """Return each reason for which points are refused, with the points."""
    points: dict[str, list[str]] = {}
    for parameter, reason in sorted(found.refused.items()):
        points.setdefault(as_typed(reason), []).append(f"{parameter:g}")
    return {reason: ", ".join(known) for reason, known in points.items()}


def description(
    found: Description, treatments: Sequence[str], outcome: str
) -> Iterator[Table | str]:
    """Yield what is in a log: a table of its columns, how doses lie, what comes often."""
    table = _table(list(found.headings))
    called = [*treatments, outcome, *(c.column.name for c in found.contexts)]
    for name, (_, *cells) in zip(called, found.table(), strict=True):
        _add(table, name, *cells)
    yield found.size
    yield table
    for name, dose in zip(treatments, found.treatments, strict=True):
        low, high = number(dose.column.low), number(dose.column.high)
        yield f"{visible(name)}: {low} {dose.picture} {high}"
    yield from found.common_values()


def overlap(estimates: Mapping[str, Estimate]) -> Table:
    """Return how much of the log speaks about each policy."""
    units = next(iter(estimates.values())).units
    table = _table(["overlap", f"ESS of {units}", "largest weight", "mean weight"])
    for name, estimate in estimates.items():
        checks = estimate.diagnostics
        largest, mean = checks["largest_weight_share"].value, checks["mean_weight"].value
        _add(table, name, f"{estimate.ess:,.0f}", f"{largest:.1%}", f"{mean:.3f}")
    return table


def reading(*, maximize: bool) -> str:
    """Return how values are to be read."""
    sense = "a reward, higher" if maximize else "a loss, lower"
    return f"Outcome: {sense} is better."


def cautions(estimates: Mapping[str, Estimate]) -> None:
    """Say on standard error what the trust checks object to and what was unusual."""
    for name, estimate in estimates.items():
        for verdict, word in ((Verdict.REFUSE, "Not to be trusted"), (Verdict.WARN, "Warning")):
            for message in estimate.diagnostics.messages(verdict):
                note(f"{word} ({name}): {as_typed(message)}")
        for remark in _remarks(estimate):
            note(f"Note ({name}): {remark}")


def doubts(found: Diagnostics) -> None:
    """Say on standard error what is doubtful about columns."""
    for check in found:
        note(f"Doubt: {as_typed(check.message)}")
    for remark in found.notes:
        note(f"Note: {remark}")


def bandwidth(estimate: Estimate) -> str:
    """Return the bandwidth of an estimate, of each dose if there are several."""
    if estimate.bandwidth is None:
        return "–"
    return ", ".join(number(h) for h in estimate.bandwidth.h.ravel().tolist())


def _remarks(estimate: Estimate) -> list[str]:
    """Return what was unusual: of the bandwidth, of the interval, of the checks themselves."""
    h, interval = estimate.bandwidth, estimate.confidence.note
    said = [f"bandwidth, {h.flag}"] if h is not None and h.flag else []
    said += [f"interval, {interval}"] if interval else []
    # In which bin a dose fell, where that is no caution that is said anyway.
    bins = (check for check in estimate.diagnostics if check.name == "dose_bin")
    said += [check.message for check in bins if check.verdict is Verdict.OK]
    return [*said, *estimate.diagnostics.notes]


def _add(table: Table, name: str, *cells: str) -> None:
    """Add a row; texts are shown as they are, also those with brackets or control characters."""
    colored = (Text(visible(cell), style=_COLORS.get(cell, "")) for cell in cells)
    table.add_row(Text(visible(name)), *colored)


def _table(headings: list[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(headings):
        words = place == 0 or heading in {"verdict", "better", "finding", "kind"}
        table.add_column(heading, justify="left" if words else "right", overflow="fold")
    return table


# What is said of a learned policy.


def learned_result(learner: PolicyLearner, level: float = 0.95) -> dict[str, Any]:
    """Return the result for programs."""
    return {
        "deployed": learner.deployed_,
        "stopped_by": list(learner.stopped_by_),
        "decision": learner.decision_,
        "honest": honest_value(learner).to_dict(level),
        "learned": learner.learned_.to_dict(),
        "choice": None if learner.choice_ is None else learner.choice_.to_dict(),
        "limits": None if learner.limits_ is None else learner.limits_.to_dict(),
        "data": None if (flow := learner.survey_.sample.log.flow) is None else flow.to_dict(),
    }


def formulas(learner: PolicyLearner, treatments: Sequence[str]) -> str:
    """Return the learned rule in words, on the user's scale."""
    survey = learner.survey_
    sd = survey.contexts.spread
    found = rule(LEARNED, learner.learned_.policy, treatments, survey.sample.log, sd=sd)
    points = [] if found.points is None else found.points.lines_of_text()
    lines = [f"  {visible(line)}" for line in (*found.formulas, *points)]
    return "\n".join(["The learned rule:", *lines]) + "\n"


def honest_differences(honest: HonestValue, level: float, *, maximize: bool = False) -> Table:
    """Return the learned policy's honest differences to all others."""
    pairs = [(LEARNED, name) for name in honest.names]
    return differences(honest.comparison, level, maximize=maximize, pairs=pairs)


def learned_page(
    learner: PolicyLearner,
    log: Source,
    *,
    treatments: Sequence[str],
    outcome: str,
    level: float,
    maximize: bool = False,
    truth: Mapping[str, float] | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    protocol: Mapping[str, Any] | None = None,
) -> str:
    """Return the report: honest values, and what the policy does to the rows of the log.

    ``truth`` are the true values of the policies, where the log was simulated.
    """
    known = learned_policies(learner)
    with bar(REPORTING) as steps:
        report = gather(
            honest_value(learner).comparison,
            Evaluation.of(
                log,
                known,
                learner.grade,
                learner.propensity,
                learner.executor,
                ignore_doubts=learner.ignore_doubts,
            ),
            level=level,
            maximize=maximize,
            settings=settings(),
            config=config_text(),
            truth=truth,
            learned=described(learner, level),
            treatments=treatments,
            outcome=outcome,
            title=title,
            labels=labels,
            units=units,
            protocol=protocol,
            seed=learner.seed,
            progress=steps.advance,
        )
        return render(report)
