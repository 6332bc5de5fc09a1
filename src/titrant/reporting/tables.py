"""The tables of a page: the numbers beside every figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from titrant.doubt.sensitivity import SHOWN
from titrant.doubt.stress import in_se
from titrant.inference.trust.rules import balance_limit, is_unbalanced
from titrant.policies.points import MOVED, decimals_of
from titrant.reporting.content import LOGGED, MOST_COLUMNS
from titrant.reporting.numbers import (
    count,
    fixed,
    number,
    percent,
    places,
    share,
    signed,
    span,
    told,
)
from titrant.reporting.words import UNCLEAR, at_once_level, better, quoted, why

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from titrant._types import Array
    from titrant.evaluation.curves import Curve
    from titrant.evaluation.description import ColumnSummary
    from titrant.evaluation.evaluation import Contrast, Estimate
    from titrant.policies.points import Points
    from titrant.propensity import Calibration
    from titrant.reporting.content import (
        Balance,
        OverlapMap,
        Profile,
        Report,
        Rule,
        ShownSubgroup,
        Weights,
    )

NONE = "–"
FITTING, FITTING_LETTERS = 4, 38
"""Columns, and letters in a row, that a phone has room for."""
VERDICTS = ("ok", "warn", "refuse")
REFUSED = VERDICTS[-1]


@dataclass(frozen=True, slots=True)
class Table:
    """A caption, headings, and rows of texts; columns in ``words`` hold no numbers."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = field(default=(0,))

    @property
    def wide(self) -> bool:
        """Whether it is too wide for a phone, where no word of a heading is to be broken."""
        longest = sum(
            max(*map(len, heading.split()), *(len(row[k]) for row in self.rows), 0, 0)
            for k, heading in enumerate(self.headings)
        )
        return len(self.headings) > FITTING or longest > FITTING_LETTERS

    @classmethod
    def of(
        cls,
        caption: str,
        things: Iterable[Any],
        columns: Mapping[str, Callable[[Any], str]],
        words: tuple[int, ...] = (0,),
    ) -> Table:
        """Return a row for each thing, and for each heading a column of what is told of it."""
        rows = tuple(tuple(cell(thing) for cell in columns.values()) for thing in things)
        return cls(caption, tuple(columns), rows, words)


def values(report: Report) -> Table:
    """Return the value of each policy with its interval, verdict and reason; none if refused."""
    estimates, truth = report.comparison.estimates, report.truth
    found = [(e.value, report.interval(name)) for name, e in estimates.items()]
    cells, decimals = aligned(found), decimals_for(found)
    known = [
        [] if truth is None else [fixed(truth[n], decimals) if n in truth else NONE]
        for n in estimates
    ]
    rows = [
        (name, *cell, *true, e.diagnostics.verdict.value, why(report, name))
        for (name, e), cell, true in zip(estimates.items(), cells, known, strict=True)
    ]
    blank = [NONE] * (2 if truth is None else 3)
    rows += [(name, *blank, REFUSED, why(report, name)) for name in report.comparison.refused]
    level = f"{percent(report.level)} interval"
    headings = (
        "policy",
        "value",
        level,
        *([] if truth is None else ["truth"]),
        "verdict",
        "because",
    )
    last = len(headings) - 1
    if not any(row[last] for row in rows):
        headings, rows = headings[:last], [row[:last] for row in rows]
    return Table(f"Estimated mean {_with_unit(report)}", headings, tuple(rows), (0, last - 1, last))


def _with_unit(report: Report) -> str:
    unit = report.log.outcome_unit
    return f"{report.log.outcome} ({unit})" if unit else report.log.outcome


def aligned(
    found: Sequence[tuple[float, tuple[float, float]]], *, sign: bool = False
) -> list[tuple[str, str]]:
    """Return values and their intervals in the same decimals, as the narrowest interval has."""
    decimals = decimals_for(found)
    plus = "+" if sign else ""
    return [
        ((plus if value > 0 else "") + told(value, decimals), span(*ends, decimals))
        for value, ends in found
    ]


def decimals_for(found: Sequence[tuple[float, tuple[float, float]]]) -> int:
    """Return the decimals of a column of values, as the narrowest interval has them."""
    widths = [high - low for _, (low, high) in found if 0 < high - low < float("inf")]
    return max(map(places, widths), default=2)


def differences(report: Report) -> Table:
    """Return each policy less the status quo, on the same rows."""
    others = [n for n in report.comparison.names if n != report.status_quo]
    pairs = [report.comparison.contrast(name, report.status_quo) for name in others]
    compared = len(pairs) if report.learned is None else 1
    cells = _contrasts(report, pairs)
    rows = tuple(
        (c.a, *cell, _than_before(report, c, compared))
        for c, cell in zip(pairs, cells, strict=True)
    )
    headings = ("policy", "difference", f"{percent(report.level)} interval", "reading")
    return Table(
        f"Difference to the status quo in mean {_with_unit(report)}", headings, rows, (0, 3)
    )


def rivals(report: Report) -> Table | None:
    """Return the differences among the drawn policies themselves."""
    others = [n for n in report.comparison.names if n != report.status_quo]
    if len(others) < 2:  # noqa: PLR2004
        return None
    pairs = [report.comparison.contrast(a, b) for a, b in combinations(report.drawn, 2)]
    cells = _contrasts(report, pairs)
    rows = tuple(
        (f"{c.a} − {c.b}", *cell, _named(better(c, report.level, maximize=report.maximize)))
        for c, cell in zip(pairs, cells, strict=True)
    )
    headings = ("pair", "difference", f"{percent(report.level)} interval", "better")
    return Table("Differences among the policies", headings, rows, (0, 3))


def _named(winner: str) -> str:
    """Return the better policy in quotes, since its name may be a number."""
    return winner if winner == UNCLEAR else quoted(winner)


def _contrasts(report: Report, pairs: Sequence[Contrast]) -> list[tuple[str, str]]:
    return aligned([(c.difference, c.interval(report.level)) for c in pairs], sign=True)


def curve(report: Report, treatment: str, every: int = 1) -> Table:
    """Return the value of the same dose for all, at doses that the log answers."""
    unit = dict(zip(report.log.treatments, report.log.units, strict=False)).get(treatment, "")
    name = f"{treatment} ({unit})" if unit else treatment
    return _points(
        report, report.curves[treatment], f"The same {treatment} for everyone", name, every
    )


def strengths(report: Report, found: Curve, every: int = 1) -> Table:
    """Return the value of the focus over the strength with which it is applied."""
    return _points(report, found, f"“{report.focus}” by its strength", "β", every)


def moved(report: Report, found: Curve, every: int = 1) -> Table:
    """Return the value of every logged dose raised or lowered by as much."""
    unit = f" ({report.dose_unit})" if report.dose_unit else ""
    what = f"Every {report.word} changed by as much"
    return _points(report, found, what, f"change{unit}", every)


def _points(report: Report, found: Curve, caption: str, parameter: str, every: int) -> Table:
    level = percent(report.level)
    bands = found.band(report.level, simultaneous=False), found.band(report.level)
    alone = aligned(list(zip(found.values.tolist(), bands[0].tolist(), strict=True)))
    together = aligned(list(zip(found.values.tolist(), bands[1].tolist(), strict=True)))
    rows = tuple(
        (number(p), *cells, band)
        for p, cells, (_, band) in zip(found.parameters, alone, together, strict=True)
    )
    headings = (parameter, "value", f"{level} interval", f"{level} for all at once")
    return Table(caption, headings, rows[::every], ())


def nearest(found: Curve, parameter: float) -> int:
    """Return the place of the point of a curve that is nearest to a parameter."""
    return int(abs(found.parameters - parameter).argmin())


def columns(report: Report) -> Table:
    """Return each column of the log in numbers, and each context beside doses and outcomes."""
    found = report.description
    told = (*(t.column for t in found.treatments), found.outcome)
    called = zip((*report.log.treatments, report.log.outcome), told, strict=True)
    gaps = found.gaps
    rows = [(name, *_column(c, gaps=gaps), NONE, NONE, NONE) for name, c in called]
    rows += [
        (
            report.called(c.column.name),
            *_column(c.column, gaps=gaps, amount=c.is_amount),
            ", ".join(fixed(r, 2) for r in c.correlation) if c.is_amount else NONE,
            ", ".join(map(share, c.explains_dose)),
            share(c.explains_outcome),
        )
        for c in found.contexts
    ]
    headings = tuple(heading.replace("dose", report.word) for heading in found.headings)
    shown, of = len(found.contexts), report.log.contexts
    some = f"; of {of} contexts the {shown} that go with doses or outcomes most"
    return Table(f"{found.size}{some if shown < of else ''}", headings, tuple(rows), (0, 1))


def _column(c: ColumnSummary, *, gaps: bool, amount: bool = True) -> tuple[str, ...]:
    """Return a column in numbers, with its missing cells if some column has ``gaps``."""
    numbers = (c.mean, c.sd, c.low, c.quartiles[1], c.high)
    told = map(number, numbers) if amount else [NONE] * len(numbers)
    missing = (share(c.missing) if c.missing else NONE,) if gaps else ()
    return (c.kind, count(c.distinct), *missing, *told)


def doses(report: Report, treatment: str) -> Table:
    """Return the doses as logged and under each policy."""
    j = report.log.treatments.index(treatment)
    unit = report.log.units[j] if report.log.units else ""
    told = partial(fixed, decimals=_dose_decimals(report, j))
    return Table.of(
        f"{treatment}{f' ({unit})' if unit else ''}, as logged and under each policy",
        [d for d in report.dose_summaries if d.treatment == treatment],
        {
            "policy": lambda d: d.policy,
            "mean": lambda d: told(d.mean),
            "middle 80%": lambda d: f"{told(d.low)} … {told(d.high)}",
            "median": lambda d: told(d.median),
            "mean absolute change": lambda d: NONE if d.policy == LOGGED else told(d.change),
        },
    )


def _dose_decimals(report: Report, j: int) -> int:
    """Return to how many decimals a dose is told: a hundredth of its sd is seen."""
    sd = report.description.treatments[j].column.sd
    return decimals_of(MOVED * sd) if sd > 0 else 2


def profiles(report: Report) -> list[Table]:
    """Return the mean doses over parts of each context."""
    return [_profile(report, found) for found in report.profiles]


def _profile(report: Report, found: Profile) -> Table:
    names, context = tuple(found.means), report.called(found.context)
    j = report.log.treatments.index(found.treatment)
    told = partial(fixed, decimals=_dose_decimals(report, j))
    rows = tuple(
        (
            number(found.centers[k]),
            count(found.rows[k]),
            told(found.logged[k, 1]),
            *(told(found.means[name][k]) for name in names),
        )
        for k in range(len(found.rows))
    )
    headings = (f"{context}, mean", "rows", "logged", *names)
    return Table(f"Mean {found.treatment} by {context}", headings, rows, ())


def subgroups(report: Report) -> Table:
    """Return what the focus changes for whom."""
    dose = report.log.treatments[0] if len(report.log.treatments) == 1 else "doses"
    known = [s for s in report.subgroups if s.difference is not None and s.interval is not None]
    found = [(s.difference or 0.0, s.interval or (0.0, 0.0)) for s in known]
    cells = dict(zip((s.label for s in known), aligned(found, sign=True), strict=True))
    decimals = decimals_for(found)
    columns: dict[str, Callable[[ShownSubgroup], str]] = {
        "who": lambda s: who(report, s),
        "rows": lambda s: count(s.rows),
        f"logged {dose}": lambda s: _doses(report, s.logged_dose),
        f"{dose} by policy": lambda s: _doses(report, s.policy_dose),
        f"{report.log.outcome} as logged": lambda s: told(s.outcome, decimals),
        "difference": lambda s: cells[s.label][0] if s.label in cells else NONE,
        f"{percent(report.level)} interval": lambda s: cells.get(s.label, (NONE, NONE))[1],
        "effective rows": lambda s: count(s.ess),
    }
    return Table.of(f"{report.focus} less the status quo", report.subgroups, columns)


def _doses(report: Report, found: Array) -> str:
    return ", ".join(fixed(t, _dose_decimals(report, j)) for j, t in enumerate(found.tolist()))


def who(report: Report, part: ShownSubgroup) -> str:
    """Return the rows of a part, their context by its label; a text is its level or another."""
    label = report.called(part.context)
    text, level = part.context.partition("=")[::2]
    if text and level and part.label in (f"{part.context} = 0", f"{part.context} = 1"):
        return label if part.label.endswith("1") else label.replace(" = ", " ≠ ", 1)
    return part.label.replace(part.context, label, 1)


def of_context(report: Report, name: str) -> str:
    """Return what a context is called before its value in words; a text stands without level."""
    text, level = name.partition("=")[::2]
    return report.called(text if text and level else name)


def checks(report: Report) -> Table:
    """Return every check of the drawn policies: its number, and its verdict unless it is ok."""
    estimates = [report.comparison[name] for name in report.drawn]
    names = dict.fromkeys(name for e in estimates for name in e.diagnostics.names)
    rows = tuple((name.replace("_", " "), *(_check(e, name) for e in estimates)) for name in names)
    verdicts = ("verdict", *(e.diagnostics.verdict.value for e in estimates))
    headings = ("check", *(e.policy for e in estimates))
    return Table("Checks of each estimate", headings, (verdicts, *rows))


def weights(report: Report) -> Table:
    """Return how unevenly rows carry each estimate."""
    columns: dict[str, Callable[[Weights], str]] = {
        "policy": lambda w: w.policy,
        "rows in reach": lambda w: count(w.reached),
        "effective rows": lambda w: count(w.ess),
        "largest weight": lambda w: share(w.share[0]) if w.share else NONE,
        "tail index": lambda w: NONE if w.tail is None else fixed(w.tail, 2),
        "mean weight": lambda w: _with_error(w.mean, w.mean_se),
    }
    return Table.of(f"Weights of {count(report.log.rows)} rows", report.weights, columns)


def _with_error(value: float, se: float) -> str:
    """Return a number with its standard error, both to two digits of the latter."""
    return f"{number(value, 2.0 * se)} ± {number(se, 2.0 * se)}"


def overlap(report: Report) -> Table | None:
    """Return the share of rows whose logged dose lies near the policy's; None without a bandwidth.

    Policies that give point masses have none.
    """
    if all(found.bandwidth is None for found in report.overlap):
        return None
    columns: dict[str, Callable[[OverlapMap], str]] = {
        "policy": lambda o: o.policy,
        "treatment": lambda o: o.treatment,
        "bandwidth": lambda o: _number(o.bandwidth),
        "rows within it": lambda o: NONE if o.within is None else share(o.within),
    }
    caption = f"Rows whose logged {report.word} is near the policy's"
    return Table.of(caption, report.overlap, columns, (0, 1))


def bandwidths(report: Report) -> list[tuple[str, str, str]]:
    """Return name, bandwidth and the reason for it, of each policy that has one."""
    return [
        (name, _several(e.bandwidth.h), f"{e.bandwidth.reason} ({e.bandwidth.selector})")
        for name, e in report.comparison.estimates.items()
        if e.bandwidth is not None
    ]


def path(report: Report, name: str) -> Table:
    """Return the estimates of a policy over bandwidths."""
    found = report.paths[name]
    columns = zip(found.bandwidths, found.values, found.se, found.ess, found.count, strict=True)
    rows = tuple(
        (_several(h), number(v), number(se), count(ess), count(reach))
        for h, v, se, ess, reach in columns
        if reach
    )
    headings = ("h", "value", "standard error", "effective rows", "rows in reach")
    return Table(f"{name} over bandwidths", headings, rows, ())


def calibration(found: Calibration) -> Table:
    """Return the share of held-out doses in each tenth of their predicted distribution."""
    rows = tuple((f"{k + 1}", share(part)) for k, part in enumerate(found.pit_histogram or ()))
    return Table("Held-out doses by predicted tenth", ("tenth", "share of rows"), rows, (0,))


def balance(report: Report, found: Balance) -> Table:
    """Return how far weighting moves each context, and whether the check minds."""
    limit = balance_limit(report.log.contexts)
    rows = tuple(
        (
            report.called(name),
            NONE if found.of_all else fixed(near, 2),
            fixed(weighted, 2),
            fixed(in_se, 1),
            "ok" if not is_unbalanced(weighted, in_se, limit) else "warn",
        )
        for name, near, weighted, in_se in zip(
            found.contexts, found.near, found.weighted, found.in_se, strict=True
        )
    )
    headings = ("context", "rows near the policy, sd", "weighted, sd", "weighted, SE", "check")
    return Table(f"{found.policy}: distance from all rows", headings, rows, (0, 4))


def other_balances(report: Report) -> list[Table]:
    """Return the balance of all policies but the focus."""
    return [balance(report, found) for found in report.balance if found.policy != report.focus]


def trade_offs(found: Mapping[str, Any]) -> list[Table]:
    """Return the policies by several outcomes, and their differences where there are several."""
    captions = {
        "values": "Estimated means by each outcome",
        "differences": "Differences, with intervals that hold all at once",
    }
    return [
        Table(caption, tuple(found[key][0]), tuple(map(tuple, found[key][1:])))
        for key, caption in captions.items()
        if found[key]
    ]


def hidden_bounds(report: Report, found: Mapping[str, Any]) -> Table:
    """Return bounds and intervals at some strengths of a hidden cause."""
    rows = [row for row in found["bounds"] if row["gamma"] in SHOWN]
    columns: dict[str, Callable[[Any], str]] = {
        "Γ": lambda row: f"{row['gamma']:g}",
        "bounds": lambda row: span(row["lower"], row["upper"]),
        f"{percent(report.level)} interval": lambda row: span(row["low"], row["high"]),
    }
    return Table.of("Bounds under a hidden cause", rows, columns, ())


def benchmarks(report: Report, found: Mapping[str, Any]) -> Table:
    """Return how strong recorded contexts would be as hidden causes."""
    columns: dict[str, Callable[[Any], str]] = {
        "context": lambda one: report.called(one[0]),
        "Γ": lambda one: f"{one[1]:.2f}",
    }
    strongest = list(found["benchmarks"].items())[:MOST_COLUMNS]
    return Table.of("Recorded contexts, were they hidden", strongest, columns)


def trials(report: Report, found: Mapping[str, Any]) -> Table:
    """Return what became of the estimate in each trial."""
    original = {**found["estimate"], "change": "original", "shift": None, "verdict": "", "note": ""}

    def ends(trial: Mapping[str, Any]) -> str:
        low, high = trial["low"], trial["high"]
        return (trial["note"] or NONE) if low is None else span(low, high)

    columns: dict[str, Callable[[Any], str]] = {
        "trial": lambda t: t["change"],
        "value": lambda t: NONE if t["value"] is None else number(t["value"], t["high"] - t["low"]),
        f"{percent(report.level)} interval": ends,
        "shift in SE": lambda t: NONE if t["shift"] is None else in_se(t["shift"]),
        "finding": lambda t: t["verdict"],
    }
    return Table.of("Trials of the estimate", [original, *found["trials"]], columns, (0, 4))


def coefficients(report: Report, found: Rule) -> Table | None:
    """Return what a unit of each term adds, on the user's scale; None of a rule without terms."""
    if found.intercept is None or (found.points is not None and not found.coefficients):
        return None
    treatments = report.log.treatments
    several = len(treatments) > 1
    units = [f"{t}: per unit" for t in treatments] if several else ["per unit"]
    spreads = [f"{t}: per sd" for t in treatments] if several else ["per sd"]
    first = ("intercept", *map(number, found.intercept), *[NONE] * len(found.intercept))
    left = f"; {found.left_out} smaller ones left out" if found.left_out else ""
    rows = tuple(
        (
            report.called(c.context),
            *map(number, c.values),
            *map(_number, c.per_sd or [None] * len(c.values)),
        )
        for c in found.coefficients
    )
    headings = ("context", *units, *spreads)
    return Table(f"Coefficients{left}", headings, (first, *rows))


def points(report: Report, found: Points, place: int) -> Table:
    """Return what the context of a curve adds to the doses at its points."""
    one = found.curves[place]
    context = report.called(one.context)
    added = [f"added to {treatment}" for treatment in report.log.treatments]
    return Table(f"Points of {context}", (context, *added), tuple(one.texts(found.decimals)), ())


def honest(report: Report, learned: Mapping[str, Any]) -> Table:
    """Return the honest value of the learned policy and its differences."""
    found = learned["honest"]
    names = (str(learned["name"]), *(f"{learned['name']} − {name}" for name in found["against"]))
    numbers = [(found["value"], tuple(found["interval"]))]
    numbers += [(d["difference"], tuple(d["interval"])) for d in found["against"].values()]
    cells = aligned(numbers)
    rows = tuple((name, *cell) for name, cell in zip(names, cells, strict=True))
    headings = ("on rows not learned from", "value", f"{percent(report.level)} interval")
    return Table("The honest value", headings, rows)


def candidates(learned: Mapping[str, Any]) -> Table | None:
    """Return what the learned policy was chosen from."""
    columns: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "candidate": lambda c: f"{c['name']}, chosen" if c["chosen"] else str(c["name"]),
        "behind the chosen": _behind,
        "weight": lambda c: NONE if c["weight"] is None else share(c["weight"]),
    }
    found = learned.get("candidates")
    return Table.of("Candidates", found, columns) if found else None


def _behind(candidate: Mapping[str, Any]) -> str:
    """Return a candidate's score less the chosen one's: a score alone is no value."""
    if candidate["chosen"]:
        return NONE
    behind, se = candidate["behind"], candidate["behind_se"]
    return f"{signed(behind, 2 * se)} ± {number(se, 2 * se)}"


def classes(learned: Mapping[str, Any]) -> Table | None:
    """Return the classes of policies that were compared on rows held out."""
    return _written(learned.get("choice"), "Classes of rules")


def limits(learned: Mapping[str, Any]) -> Table | None:
    """Return the limits of the rule, where they bind and what they cost."""
    return _written(learned.get("limits"), "Limits of the rule")


def traded(learned: Mapping[str, Any]) -> Table | None:
    """Return the trade-off between the loss and what has a limit with a price."""
    rows = (learned.get("limits") or {}).get("traded")
    return _written({"table": rows} if rows else None, "What each price does to the rule")


def _written(found: Mapping[str, Any] | None, caption: str) -> Table | None:
    """Return a table that comes as its headings and rows."""
    if not found:
        return None
    headings, *rows = found["table"]
    return Table(caption, tuple(headings), tuple(map(tuple, rows)))


def outcome_models(learned: Mapping[str, Any]) -> Table | None:
    """Return how much say each outcome model had."""
    models = learned.get("outcome_models", {})
    rows = tuple((str(name), share(weight)) for name, weight in models.items())
    return Table("Outcome models", ("model", "weight"), rows) if rows else None


def method(report: Report) -> Table:
    """Return how values were estimated, if they were: the status quo's is a mean."""
    estimates = report.comparison.estimates
    weighted = [e for name, e in estimates.items() if name != report.status_quo]
    first = (weighted or list(estimates.values()))[0]
    how = {k.replace("_", " "): v for k, v in first.method.items()}
    return mapping("Method", {**how, "interval": first.confidence.method})


def checklist(protocol: Mapping[str, Any]) -> Table:
    """Return what a report has to tell, what this page tells of it, and what is left to authors."""
    headings = ("items", "topic", "told", "by")
    rows = tuple(tuple(one[heading] for heading in headings) for one in protocol["checklist"])
    return Table("By the items of the TARGET statement", headings, rows, (0, 1, 2, 3))


def mapping(caption: str, values: Mapping[str, object]) -> Table:
    """Return names and values that say something."""
    rows = tuple((str(k), _text(v)) for k, v in values.items() if v not in (None, (), []))
    return Table(caption, ("name", "value"), rows, (0, 1))


def _than_before(report: Report, contrast: Contrast, compared: int) -> str:
    """Return whether a policy is better than the status quo, also with all compared at once."""
    found = better(contrast, report.level, maximize=report.maximize)
    if found == UNCLEAR:
        return UNCLEAR
    word = "better" if found == contrast.a else "worse"
    at_once = better(contrast, at_once_level(report.level, compared), maximize=report.maximize)
    return word if at_once == found else f"{word}, taken alone"


def _check(estimate: Estimate, name: str) -> str:
    if name not in estimate.diagnostics.names:
        return NONE
    found = estimate.diagnostics[name]
    verdict = found.verdict.value
    few = abs(found.value) < 1000  # noqa: PLR2004  (else the digits before the point are enough)
    told = number(float(f"{found.value:.3g}")) if few else number(round(found.value))
    return told if verdict == VERDICTS[0] else f"{told} {verdict}"


def _several(values: Any) -> str:  # noqa: ANN401  (a number, an array of them, or nested)
    flat = values.ravel().tolist() if values.ndim else [float(values)]
    return ", ".join(map(number, flat))


def _number(value: float | None) -> str:
    return NONE if value is None else number(value)


def _text(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    return number(value) if isinstance(value, float) else str(value)
