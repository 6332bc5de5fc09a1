"""The sentences of a page: what follows from the numbers, and what speaks against it.

`decide` finds the conclusion and its one verdict; the other functions put both in words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from titrant.data.validate import counted
from titrant.evaluation.description import YES_NO
from titrant.inference import Verdict
from titrant.policies.points import value as of_context
from titrant.reporting.content import called
from titrant.reporting.numbers import apart_from_0, fixed, number, percent, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from titrant.evaluation.curves import Curve
    from titrant.evaluation.evaluation import Contrast, Estimate
    from titrant.inference import Check
    from titrant.policies.points import Points
    from titrant.reporting.content import Report

UNCLEAR = "not clear"
SMALL = 0.05
"""Standard deviations of the outcome below which a difference is called small."""
TOLD = 4
"""Reasons in the sentence of a verdict; the list below it has all."""

# ── The conclusion ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the page concludes, and what the conclusion rests on."""

    best: str | None
    """The best policy other than the status quo; None if no other has an estimate."""
    recommended: str
    """That policy, or the status quo."""
    difference: float
    """Best less status quo."""
    ends: tuple[float, float]
    """Its interval at the level of the page, for the best of all policies compared at once."""
    compared: int
    """How many policies the best one was taken from."""
    ties: tuple[str, ...]
    """The others that may be as good as the best."""
    verdict: Verdict
    """That of the worst check of anything the conclusion rests on."""
    reasons: tuple[tuple[tuple[str, ...], Check], ...]
    """The checks that are not ok, the worst first, each with the policies that it is about."""


def decide(report: Report) -> Decision:
    """Return the conclusion of a page."""
    pool = _candidates(report)
    best = _best_of(report, pool)
    reasons = _reasons(report, pool)
    verdict = reasons[0][1].verdict if reasons else Verdict.OK
    if best is None:
        refused = Verdict.REFUSE if report.comparison.refused else verdict
        return Decision(
            best=None,
            recommended=report.status_quo,
            difference=0.0,
            ends=(0.0, 0.0),
            compared=0,
            ties=(),
            verdict=refused,
            reasons=reasons,
        )
    difference, ends = _gap(report, best, report.status_quo, len(pool))
    clear = is_better(ends, maximize=report.maximize) and verdict is not Verdict.REFUSE
    wins = clear and (report.learned is None or bool(report.learned.get("deployed", True)))
    others = [name for name in pool if name != best]
    gaps = {name: _gap(report, best, name, len(pool)) for name in others}
    return Decision(
        best=best,
        recommended=best if wins else report.status_quo,
        difference=difference,
        ends=ends,
        compared=len(pool),
        ties=tuple(name for name, (_, (low, high)) in gaps.items() if low <= 0 <= high),
        verdict=verdict,
        reasons=reasons,
    )


def is_better(ends: tuple[float, float], *, maximize: bool) -> bool:
    """Return whether the whole interval of a difference is on the better side of zero."""
    return ends[0] > 0 if maximize else ends[1] < 0


def _candidates(report: Report) -> list[str]:
    """Return all policies but the status quo; those that are refused if there are no others.

    A learned one is always among them: the page is about it.
    """
    every = [name for name in report.comparison.names if name != report.status_quo]
    own = None if report.learned is None else report.focus
    return [n for n in every if n == own or report.comparison[n].trusted] or every


def _best_of(report: Report, pool: list[str]) -> str | None:
    if report.learned is not None:
        return report.focus
    pick: Callable[..., str] = max if report.maximize else min
    return pick(pool, key=lambda name: report.comparison[name].value, default=None)


def _gap(report: Report, a: str, b: str, compared: int) -> tuple[float, tuple[float, float]]:
    """Return a − b with an interval that holds for all that were compared (Bonferroni).

    A learned policy was graded on other rows than it was chosen on, so that it is one.
    """
    if report.learned is not None:
        found = report.learned["honest"]["against"].get(b)
        if found is not None:
            return found["difference"], tuple(found["interval"])
        compared = 1
    contrast = report.comparison.contrast(a, b)
    return contrast.difference, contrast.interval(at_once_level(report.level, compared))


def at_once_level(level: float, compared: int) -> float:
    """Return the level at which each of several intervals holds, that all do so at ``level``."""
    return 1.0 - (1.0 - level) / compared


def _reasons(report: Report, pool: list[str]) -> tuple[tuple[tuple[str, ...], Check], ...]:
    """Return what speaks against what the conclusion rests on, as the estimates themselves say it.

    Checks with the same sentence are one. Without a candidate, what is doubtful of the log is left.
    """
    about: dict[str, tuple[list[str], Check]] = {}
    for name, checks in _checked(report, pool):
        for check in checks:
            if check.verdict is not Verdict.OK:
                about.setdefault(check.message, ([], check))[0].append(name)
    order = list(Verdict)
    found = [(tuple(dict.fromkeys(names)), check) for names, check in about.values()]
    return tuple(sorted(found, key=lambda one: -order.index(one[1].verdict)))


def _checked(report: Report, pool: list[str]) -> Iterator[tuple[str, Iterable[Check]]]:
    for name in pool or [report.status_quo]:
        yield name, report.comparison[name].diagnostics.checks
    for found in report.balance:
        if found.policy in pool and report.learned is not None:  # else it is among the above
            yield found.policy, [found.check]


# ── The conclusion in words ───────────────────────────────────────────────────────────────────────


def answer(report: Report, found: Decision) -> str:
    """Return the conclusion: what to do, by how much it is better, and what may be as good."""
    if found.best is None:
        said = [_nothing_compared(report)]
    elif report.learned is not None:
        said = [_learned(report, report.learned, found), *_ties(found), *_others(report, found)]
    elif found.recommended == found.best:
        said = [_win(report, found), *_ties(found)]
    else:
        said = [_no_win(report, found), *_ties(found, "Nor is it")]
    return " ".join([*said, *_small(report, found), *_refused(report)])


def headline(report: Report) -> str:
    """Return the title of the page: the one given, or else the question it answers."""
    return report.title or f"What would another {report.word} have done?"


def reading(report: Report) -> str:
    """Return how values are to be read."""
    return f"{'higher' if report.maximize else 'lower'} is better"


def verdict(report: Report, found: Decision) -> str:
    """Return the one verdict with its reasons, in a sentence."""
    checks = sum(len(report.comparison[name].diagnostics.checks) for name in _candidates(report))
    if not found.reasons:
        if found.best is None and report.comparison.refused:
            return "The log cannot answer: every policy is refused."
        return f"All {checks} checks behind this are ok." if checks else "Nothing was checked."
    worst = [one for one in found.reasons if one[1].verdict is found.verdict]
    opening = "Not to be trusted" if found.verdict is Verdict.REFUSE else "Read it with care"
    told = [_reason(check, names, report) for names, check in worst[:TOLD]]
    left = len(found.reasons) - len(told)
    more = f"; {left} more below" if left else ""
    return f"{opening}: {'; '.join(dict.fromkeys(told))}{more}."


def why(report: Report, name: str) -> str:
    """Return why a policy's estimate is not ok, in a few words."""
    if name in report.comparison.refused:
        return spoken(report, report.comparison.refused[name].partition(". ")[0]) + "."
    found = report.comparison[name].diagnostics
    worst = [c for c in found.checks if c.verdict is found.verdict is not Verdict.OK]
    return "; ".join(dict.fromkeys(_reason(c, ("it",), report) for c in worst)).replace(
        "“it”", "it"
    )


def _win(report: Report, found: Decision) -> str:
    return (
        f"{quoted(found.recommended)} {_is(found)} better than the status quo: "
        f"{_value(report, found.best)} "
        f"instead of {_status_quo(report)}, {gap(report, found)}."
    )


def _is(found: Decision) -> str:
    """Return how firmly a policy is called better."""
    return "is" if found.verdict is Verdict.OK else "looks"


def _no_win(report: Report, found: Decision) -> str:
    name, outside = quoted(found.best), is_better(found.ends, maximize=not report.maximize)
    what = f"{_value(report, found.best)} instead of {_status_quo(report)}"
    apart = gap(report, found)
    if found.verdict is Verdict.REFUSE:
        return f"The log cannot answer for {name}. The number it gives: {what}, {apart}."
    who = name if found.compared == 1 else f"the best of {found.compared} policies, {name},"
    if outside:
        return f"Keep the status quo: {who} is worse, {what}, {apart}."
    if (found.difference > 0) is report.maximize:
        none = f"{name} is not" if found.compared == 1 else "No policy is"
        return (
            f"{none} clearly better than the status quo. {capital(who)} has {what}, {apart}: "
            "that may be chance."
        )
    none = f"{name} is not" if found.compared == 1 else "No policy is"
    return (
        f"{none} better than the status quo. {capital(who)} has {what}, {apart}: whether it is "
        "worse the log leaves open."
    )


def _learned(report: Report, learned: Mapping[str, Any], found: Decision) -> str:
    """Return the decision on a learned policy, by rows that had no part in learning it."""
    honest = learned["honest"]
    value = _with_interval(report, honest["value"], tuple(honest["interval"]))
    what = f"on rows it was not learned from, mean {report.log.outcome} {value}"
    name = "the learned rule" if learned["name"] == "learned" else quoted(learned["name"])
    if report.status_quo in honest["against"]:
        what = f"{what} instead of {_status_quo(report)}, {gap(report, found)}"
    if found.verdict is Verdict.REFUSE:
        return f"The log cannot answer for {name}. The number it gives: {what}."
    if found.recommended == found.best:
        return f"{capital(name)} {_is(found)} better than the status quo: {what}."
    if learned.get("deployed", True):
        worse = is_better(found.ends, maximize=not report.maximize)
        said = "worse" if worse else "not clearly better"
        return f"Keep the status quo: {name} is {said}, {what}."
    objection = learned.get("objection")
    reason = "" if objection is None else f" Although it looks better, {objection}."
    return f"Keep the status quo. {capital(name)} is not shown to be better: {what}.{reason}"


def _nothing_compared(report: Report) -> str:
    value = _value(report, report.status_quo)
    said = f"As logged, {value}."
    if report.comparison.refused:
        return f"No policy could be judged. {said}"
    return f"{said} No other policy was compared."


def _ties(found: Decision, opening: str = "It is not") -> list[str]:
    """Return a sentence on the policies that may be as good."""
    return [f"{opening} clearly better than {_listed(found.ties)}."] if found.ties else []


def _others(report: Report, found: Decision) -> list[str]:
    """Return a sentence on what looks better than the status quo where a learned rule does not."""
    if is_better(found.ends, maximize=report.maximize):
        return []
    others = [name for name in _candidates(report) if name != report.focus]
    level = at_once_level(report.level, max(len(others), 1))
    gaps = {n: report.comparison.contrast(n, report.status_quo).interval(level) for n in others}
    names = [n for n, ends in gaps.items() if is_better(ends, maximize=report.maximize)]
    if not names:
        return []
    look = "looks" if len(names) == 1 else "look"
    return [f"Of what it was compared with, {_joined(names)} {look} better than the status quo."]


def _small(report: Report, found: Decision) -> list[str]:
    """Return a sentence on a difference that hardly matters beside what people differ by."""
    sd = report.description.outcome.sd
    if found.best is None or found.recommended != found.best or not sd > 0:
        return []
    size = abs(found.difference) / sd
    if size >= SMALL:
        return []
    return [f"The difference is small: {size:.2g} sd of the {report.log.outcome} between rows."]


def _refused(report: Report) -> list[str]:
    """Return a sentence on the policies that have no estimate, or none to be trusted."""
    comparison = report.comparison
    shown = [n for n, e in comparison.estimates.items() if not e.trusted]
    names = [*comparison.refused, *(n for n in shown if n not in _candidates(report))]
    return [f"The log cannot answer for {_listed(names)}."] if names else []


def gap(report: Report, found: Decision) -> str:
    """Return the difference to the status quo in words: its size, its direction, its interval."""
    low, high = found.ends
    more, unit = "higher" if found.difference > 0 else "lower", report.log.outcome_unit
    size = f"{with_unit(apart_from_0(abs(found.difference), high - low), unit)} {more}"
    several = found.compared > 1 and report.learned is None
    interval = f"{percent(report.level)} interval"
    interval += f" for the best of {found.compared}," if several else ""
    if low <= 0 <= high:
        return f"{size} ({interval} {span(low, high)}, which holds 0)"
    near, far = sorted([abs(low), abs(high)])
    return f"{size} ({interval} {span(near, far)} {more})"


def with_unit(text: str, unit: str) -> str:
    """Return a number with its unit, which no line break divides."""
    if not unit:
        return text
    return f"{text}{unit}" if unit.startswith("%") else f"{text}\N{NO-BREAK SPACE}{unit}"


def _with_interval(report: Report, value: float, ends: tuple[float, float]) -> str:
    width, unit = ends[1] - ends[0], report.log.outcome_unit
    written = with_unit(number(value, width), unit)
    return f"{written} ({percent(report.level)} interval {span(*ends)})"


def _value(report: Report, name: str | None) -> str:
    estimate = report.comparison[str(name)]
    value = _with_interval(report, estimate.value, report.interval(str(name)))
    return f"mean {report.log.outcome} {value}"


def _status_quo(report: Report) -> str:
    low, high = report.interval(report.status_quo)
    value = report.comparison[report.status_quo].value
    return with_unit(number(value, high - low), report.log.outcome_unit)


# ── What checks find, in a clause each; the whole sentence is in the list of reasons ──────────────

CLAUSES = {
    "effective_sample_size": "few rows speak about {it}",
    "effective_share": "few rows speak about {it}",
    "tail_rows": "few rows lie in the tail of {it}",
    "group_count": "there are few groups",
    "row_weights": "the rows' weights are very uneven",
    "population_overlap": "the log lacks rows like part of the population",
    "population_balance": "weighted rows are not like the population",
    "outcomes_seen": "many outcomes are missing",
    "repeated_rows": "rows may not be independent",
    "drift": "doses and outcomes drift over time",
    "largest_weight_share": "one row holds much of the weight of {it}",
    "influence_tail": "a few rows decide {it}",
    "weight_tail": "a few rows decide {it}",
    "kept_doses": "many rows keep their dose under {it}",
    "beyond_logged": "{it} gives doses beyond all logged ones",
    "mean_weight": "the weights of {it} do not average to 1, so the model of the doses looks wrong",
    "floor_share": "{it} rests on rows whose doses were hardly possible",
    "dose_bin": "no dose of {it} was ever logged in some rows",
    "support": "{it} gives doses that such rows never got",
    "boundary_mass": "{it} lies at a bound that is not corrected for",
    "smoothing_gap": "smoothing may bias {it}",
    "outcome_model_gap": "with and without the outcome model {it} differs",
    "bandwidth_sensitivity": "{it} hangs on the bandwidth",
    "covariate_balance": "the weighted rows behind {it} are not like all rows",
    "binned_balance": "the weighted rows behind {it} are not like all rows",
    "never_given": "some people's like were never given the doses of {it}",
    "leftover_bias": "the models miss how some contexts go with dose and outcome",
    "carry_over": "earlier doses tell about later outcomes",
    "level_support": "{it} gives doses far from those of a context's own level",
    "planned_doses": "{it} goes with the logged doses beyond what the contexts say",
    "off_levels": "some rows keep a dose that {it} would change",
    "rows_at_dose": "few rows got the very dose of {it}",
    "seldom_dose": "many rows seldom got the dose of {it}",
    "between_levels": "{it} gives doses between those that were ever given",
    "dose_jump": "the outcome jumps at the dose of {it}",
    "no_variation": "nothing varies among the rows that speak about {it}",
    "value_range": "{it} lies beyond all outcomes",
    "propensity_pit": "the model of the doses does not fit",
    "cut_predictions": "{it} rests on predictions beyond the outcomes seen",
    "stabilized_weight": "the model of the doses does not fit",
    "overlap": "no logged dose is near those of {it}",
    "unfitted": "no model could be fitted",
    "dropped_rows": "the rows left out are not like the others",
    "late_outcomes": "a context may have been measured after the outcome",
    "left_in_levels": "doses and outcomes share more of a text than models could follow",
    "decimal_groups": "what says which rows belong together looks like an amount",
    "weight_contexts": "a context looks like sampling weights",
    "late_dates": "a context may have been measured after the dose",
    "leaked_outcomes": "the contexts give the outcome away",
    "copied_outcomes": "a context is a copy of the outcome",
    "copied_treatments": "a context is a copy of the dose",
    "deciding_contexts": "a context decides which outcomes are known",
    "coded_contexts": "a context is a code, not an amount",
    "coded_doses": "some doses are codes, not amounts",
    "coded_outcomes": "some outcomes are codes, not amounts",
    "key_contexts": "a context is a key",
    "constant_contexts": "a context is constant",
    "repeated_contexts": "contexts repeat each other",
    "silent_contexts": "a context cannot be adjusted for",
    "acting_gaps": "a context was often missing where it mattered",
    "stray_doses": "some doses are far from all others",
    "stray_outcomes": "some outcomes are far from all others",
}
"""By the name of a check; {it} is the policy."""


OF_GROUPS = {"effective_sample_size", "effective_share", "largest_weight_share"}
"""Checks that count groups where the rows of a log belong to some."""


def _reason(check: Check, names: tuple[str, ...], report: Report) -> str:
    """Return a check that is not ok as a clause."""
    clause = CLAUSES.get(check.name, f"{check.name.replace('_', ' ')} of {{it}}")
    if report.description.groups is not None and check.name in OF_GROUPS:
        clause = clause.replace("row", "group")
    head, it, tail = clause.partition("{it}")
    each = "each of " if not head and len(names) > 1 else ""  # the verb behind it is of one
    policies = f"{each}{_joined(names)}" if it else ""
    return spoken(report, head) + policies + spoken(report, tail)


# ── Names and words ───────────────────────────────────────────────────────────────────────────────

_NAMED = re.compile(r"`[^`]*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
"""What stands in backticks or quotes in the sentences of the library: names and code."""


def spoken(report: Report, text: str) -> str:
    """Return a sentence of the library in the words of the page.

    Its dose is what the treatment is called, and contexts have their labels.
    """
    found, end = [], 0
    for named in _NAMED.finditer(text):
        found += [_own_word(report, text[end : named.start()]), _labeled(report, named[0])]
        end = named.end()
    return "".join([*found, _own_word(report, text[end:])])


def _own_word(report: Report, text: str) -> str:
    own = report.word
    if own == "dose":
        return text
    text = re.sub(r"\bdoses\b", f"{own}s", text)
    return re.sub(r"\bdose\b", own, text).replace("Doses ", f"{capital(own)}s ")


def _labeled(report: Report, named: str) -> str:
    name = named[1:-1]
    label = report.called(name)
    return named if label == called(name, {}) else f"“{label}”"


def better(contrast: Contrast, level: float, *, maximize: bool) -> str:
    """Return the better policy of a pair, or that the interval leaves it open."""
    return replace(contrast, maximize=maximize).better(level) or UNCLEAR


def done_to_the_data(report: Report) -> Iterator[str]:
    """Yield what became of rows and columns on their way into the log, and what they hold often."""
    flow, found = report.log.flow, report.description
    if flow is None:
        rows = f"{report.log.rows:,} rows, all used"
        yield f"{rows}: they came as numbers, and were taken as they are."
    else:
        yield from flow
        if flow.plain:
            yield "Every column was taken as it is."
    for name, dose in zip(report.log.treatments, found.treatments, strict=True):
        if exact := dose.exactly(name):
            yield exact
    told = zip(report.log.treatments, (t.column for t in found.treatments), strict=True)
    for name, column in (*told, (report.log.outcome, found.outcome)):
        if column.common:
            often = ", ".join(f"{number(v)} ({part:.1%})" for v, part in column.common)
            yield f"{capital(name)} has {column.distinct:,} different values; most often {often}."
    yield from _repeated(report)


def undoubted(report: Report) -> str:
    """Return that no column is doubtful, but for those of which `done_to_the_data` tells."""
    flow = report.log.flow
    told = (flow is not None and flow.notes) or _repeated(report)
    no_column = "Apart from what is said above, no column" if told else "No column"
    return f"{no_column} looks like a leak, a copy of another, a key or a code for missing values."


def _repeated(report: Report) -> list[str]:
    """Return what is said of rows that may belong together."""
    checks = [c for e in report.comparison.estimates.values() for c in e.diagnostics]
    said = (spoken(report, c.message) for c in checks if c.name == "repeated_rows")
    return list(dict.fromkeys(said))


def drawn_note(report: Report) -> str | None:
    """Return which policies the figures leave out."""
    left = len(report.comparison.names) - 1 - len(report.drawn)
    if left <= 0:
        return None
    drawn = ", ".join(quoted(name) for name in report.drawn)
    return f"Figures show {drawn}; {left} more are in this table."


def points(report: Report, found: Points) -> str:
    """Return how the points of a rule with curves are read."""
    units = report.log.units or ("",) * len(found.start)
    starts = zip(found.start, found.decimals, units, strict=True)
    start = ", ".join(with_unit(fixed(v, n), unit) for v, n, unit in starts)
    middles = ", ".join(f"{report.called(c.context)} {of_context(c.middle)}" for c in found.curves)
    others = "the other terms and " if found.lines else ""
    said = (
        f"Start at {start} (for {middles}) and add {others}what each curve says; limits and "
        "steps, if any, come after. Read between two points "
        f"along a straight line: with every point, that moves nobody's {report.word} in the log by "
        "more than a hundredth of the standard deviation"
    )
    if any(len(c.first) < len(c.values) for c in found.curves):
        said += f"; with the points shown, by at most {', '.join(f'{v:.2g}' for v in found.off)}"
    said += "."
    if found.left_out:
        said += f" Left out here: {counted(found.left_out, 'smaller curve')}."
    if not found.outside:
        return said
    rows = counted(found.outside, "row")
    return f"{said} Beyond the points, as in {rows} of the log, the JSON says what the rule does."


def beyond_outcomes(report: Report) -> str | None:
    """Return which intervals reach beyond all outcomes of the log, if any does."""
    column = report.description.outcome
    ends = {name: report.interval(name) for name in report.comparison.names}
    if column.kind == YES_NO:
        return beyond_shares(ends, column.low, column.high)
    said = _beyond(ends, column.low, column.high)
    between = "between which all outcomes of the log lie: intervals are not cut there."
    return None if said is None else f"{said}, {between}"


def beyond_shares(
    ends: Mapping[str, tuple[float, float]], low: float = 0.0, high: float = 1.0
) -> str | None:
    """Return which intervals of shares, or of means of two values, reach beyond these, if any."""
    said, cut = _beyond(ends, low, high), "intervals are not cut there, so read the part within."
    what = "share" if (low, high) == (0.0, 1.0) else "mean"
    return None if said is None else f"{said}, where no {what} can be: {cut}"


def _beyond(ends: Mapping[str, tuple[float, float]], least: float, most: float) -> str | None:
    names = [name for name, (low, high) in ends.items() if low < least or high > most]
    if not names:
        return None
    intervals, reach = ("intervals", "reach") if len(names) > 1 else ("interval", "reaches")
    limits = f"{number(least)} … {number(most)}"
    return f"The {intervals} of {_joined(names)} {reach} beyond {limits}"


def point_masses(report: Report, treatment: str) -> str | None:
    """Return at which points of a curve rows with that very dose answer, and where others do."""
    curve = report.curves[treatment]
    pairs = zip(curve.parameters, curve.comparison.estimates.values(), strict=True)
    exact = [number(dose) for dose, estimate in pairs if _by_exact_doses(estimate)]
    if not exact or len(exact) == len(curve.parameters):
        return None
    points = f"{', '.join(exact[:-1])} and {exact[-1]}" if len(exact) > 1 else exact[0]
    return (
        f"At {points}, which many rows got, rows with exactly that {report.word} answer; at the "
        "other points rows nearby do. The curve may jump between the two."
    )


def speaking(report: Report) -> str:
    """Return which rows of the maps of overlap speak for the policies."""
    line, drawn = "Rows on the line speak for the policy", report.overlap
    exact = any(_by_exact_doses(report.comparison[found.policy]) for found in drawn)
    if any(found.bandwidth is not None for found in drawn):
        without = f" Without dashed lines, only rows with the very {report.word} of the policy do."
        return f"{line}, dashed lines are one bandwidth away.{without if exact else ''}"
    return f"{line}: those with its very {report.word}." if exact else f"{line}."


def _by_exact_doses(estimate: Estimate) -> bool:
    """Return whether rows with exactly the policy's dose answer for it."""
    return "rows_at_dose" in estimate.diagnostics.names


def at_the_end(report: Report, treatment: str) -> str | None:
    """Return that a curve is best at an end of what was logged, if it is."""
    curve = report.curves[treatment]
    pick = curve.values.argmax() if report.maximize else curve.values.argmin()
    best, last = float(curve.parameters[pick]), len(curve.parameters) - 1
    if last < 1 or best not in (curve.parameters.min(), curve.parameters.max()):
        return None
    return (
        f"The best {treatment} is at the end of what the log answers, {number(best)}: a better one "
        "may lie beyond, where nothing is known."
    )


def refused_at(curve: Curve) -> list[str]:
    """Return the doses at which the log cannot answer."""
    return list(dict.fromkeys(number(dose) for dose in curve.refused))


def remarks(estimate: Estimate) -> list[str]:
    """Return what was unusual: of the bandwidth, of the interval, of the checks themselves."""
    flag = None if estimate.bandwidth is None else estimate.bandwidth.flag
    chosen = None if flag is None else sentence(f"bandwidth: {flag}")
    said = (chosen, estimate.confidence.note, *estimate.diagnostics.notes)
    return [remark for remark in said if remark]


def sentence(text: str | None) -> str | None:
    """Return a text with a capital at its beginning and a full stop at its end.

    >>> sentence("it scored best")
    'It scored best.'
    """
    if not text:
        return text
    return capital(text) + ("" if text.endswith((".", "!", "?")) else ".")


def capital(text: str) -> str:
    """Return a text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def quoted(name: str | None) -> str:
    """Return the name of a policy as it stands in a sentence; others' letters stay in its quotes.

    What runs from right to left is isolated, so that it does not turn the sentence around.
    """
    if not any("\u0590" <= letter <= "\u08ff" for letter in str(name)):
        return f"“{name}”"
    return f"“\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}”"


def _joined(names: Iterable[str], word: str = "and") -> str:
    quotes = [quoted(name) for name in names]
    return f" {word} ".join([", ".join(quotes[:-1]), quotes[-1]] if len(quotes) > 1 else quotes)


def _listed(names: Iterable[str]) -> str:
    return _joined(names, "or")
