"""The tables of a page: the numbers beside every figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

from titrant.report.typeset import count, number, percent, share, signed, span, told
from titrant.report.words import UNCLEAR, better

if TYPE_CHECKING:
    from collections.abc import Mapping

    from titrant.evaluation.curves import Curve
    from titrant.evaluation.evaluation import Contrast, Estimate
    from titrant.report.content import Balance, LogSummary, Profile, Report, Rule

NONE = "–"
VERDICTS = ("ok", "warn", "refuse")
REFUSED = VERDICTS[-1]


@dataclass(frozen=True, slots=True)
class Table:
    """A caption, headings, and rows of texts; columns in ``words`` hold no numbers."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = field(default=(0,))


def values(report: Report) -> Table:
    """Return the value of each policy with its interval and verdict; no number if refused."""
    truth = report.truth
    known = ("truth",) if truth else ()
    found = {name: _value(report, e) for name, e in report.comparison.estimates.items()}
    found |= {name: (name, NONE, NONE, REFUSED) for name in report.comparison.refused}
    rows = tuple(
        (*cells, *((_number(truth.get(name)),) if truth else ())) for name, cells in found.items()
    )
    headings = ("policy", "value", f"{percent(report.level)} interval", "verdict")
    what = f"Estimated mean {report.log.outcome}"
    return Table(what, (*headings, *known), rows, (0, 3))


def differences(report: Report) -> Table:
    """Return each policy less the status quo, on the same rows."""
    others = [n for n in report.comparison.names if n != report.status_quo]
    pairs = [report.comparison.contrast(name, report.status_quo) for name in others]
    rows = tuple((c.a, *_contrast(report, c), _than_before(report, c)) for c in pairs)
    headings = ("policy", "difference", f"{percent(report.level)} interval", "reading")
    return Table("Difference to the status quo", headings, rows, (0, 3))


def rivals(report: Report) -> Table | None:
    """Return the differences among the drawn policies themselves."""
    others = [n for n in report.comparison.names if n != report.status_quo]
    if len(others) < 2:  # noqa: PLR2004
        return None
    pairs = [report.comparison.contrast(a, b) for a, b in combinations(report.drawn, 2)]
    rows = tuple(
        (
            f"{c.a} − {c.b}",
            *_contrast(report, c),
            better(c, report.level, maximize=report.maximize),
        )
        for c in pairs
    )
    headings = ("pair", "difference", f"{percent(report.level)} interval", "better")
    return Table("Differences among the policies", headings, rows, (0, 3))


def curve(report: Report, treatment: str, every: int = 1) -> Table:
    """Return the value of the same dose for all, at doses that the log answers."""
    rows = _points(report, report.curves[treatment])[::every]
    return Table(f"The same {treatment} for everyone", _headings(report, treatment), rows, ())


def strengths(report: Report, found: Curve, every: int = 1) -> Table:
    """Return the value of the focus over the strength with which it is applied."""
    rows = _points(report, found)[::every]
    return Table(f"“{report.focus}” by its strength", _headings(report, "β"), rows, ())


def _headings(report: Report, parameter: str) -> tuple[str, ...]:
    level = percent(report.level)
    return (parameter, "value", f"{level} interval", f"{level} for all at once")


def _points(report: Report, found: Curve) -> tuple[tuple[str, ...], ...]:
    bands = found.band(report.level, simultaneous=False), found.band(report.level)
    return tuple(
        (number(p), *told(v, alone), span(*together))
        for p, v, alone, together in zip(found.parameters, found.values, *bands, strict=True)
    )


def doses(report: Report, treatment: str) -> Table:
    """Return the doses as logged and under each policy."""
    rows = tuple(
        (
            d.policy,
            number(d.mean),
            span(d.low, d.high),
            number(d.median),
            NONE if i == 0 else number(d.change),
        )
        for i, d in enumerate(d for d in report.dose_summaries if d.treatment == treatment)
    )
    headings = ("policy", "mean", "middle 80%", "median", "mean change")
    return Table(f"{treatment}, as logged and under each policy", headings, rows)


def profile(found: Profile) -> Table:
    """Return the mean doses over parts of a context."""
    names = tuple(found.means)
    rows = tuple(
        (
            number(found.centers[k]),
            count(found.rows[k]),
            number(found.logged[k, 1]),
            *(number(found.means[name][k]) for name in names),
        )
        for k in range(len(found.rows))
    )
    headings = (f"{found.context}, mean", "rows", "logged", *names)
    return Table(f"Mean {found.treatment} by {found.context}", headings, rows, ())


def subgroups(report: Report) -> Table:
    """Return what the focus changes for whom."""
    rows = tuple(
        (
            s.label,
            count(s.rows),
            _several(s.logged_dose),
            _several(s.policy_dose),
            number(s.outcome),
            NONE if s.difference is None else signed(s.difference),
            NONE if s.interval is None else span(*s.interval),
            count(s.ess),
        )
        for s in report.subgroups
    )
    dose = report.log.treatments[0] if len(report.log.treatments) == 1 else "doses"
    headings = (
        "who",
        "rows",
        f"logged {dose}",
        f"{dose} by policy",
        f"{report.log.outcome} as logged",
        "difference",
        f"{percent(report.level)} interval",
        "effective rows",
    )
    return Table(f"{report.focus} less the status quo", headings, rows)


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
    rows = tuple(
        (
            w.policy,
            count(w.reached),
            count(w.ess),
            share(w.share[0]) if w.share else NONE,
            NONE if w.tail is None else number(w.tail),
            f"{number(w.mean)} ± {number(w.mean_se)}",
        )
        for w in report.weights
    )
    headings = (
        "policy",
        "rows in reach",
        "effective rows",
        "largest weight",
        "tail index",
        "mean weight",
    )
    return Table(f"Weights of {count(report.log.rows)} rows", headings, rows)


def overlap(report: Report) -> Table:
    """Return the share of rows whose logged dose lies near the policy's."""
    rows = tuple(
        (
            o.policy,
            o.treatment,
            _number(o.bandwidth),
            NONE if o.within is None else share(o.within),
        )
        for o in report.overlap
    )
    headings = ("policy", "treatment", "bandwidth", "rows within it")
    return Table("Rows whose logged dose is near the policy's", headings, rows, (0, 1))


def bandwidths(report: Report) -> list[tuple[str, str, str]]:
    """Return name, bandwidth and the reason for it, of each policy that has one."""
    return [
        (name, _bandwidth(e), f"{e.bandwidth.reason} ({e.bandwidth.selector})")
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


def calibration(report: Report) -> Table:
    """Return the share of held-out doses in each tenth of their predicted distribution."""
    found = report.calibration
    tenths = () if found is None or found.pit_histogram is None else found.pit_histogram
    rows = tuple((f"{k + 1}", share(part)) for k, part in enumerate(tenths))
    return Table("Held-out doses by predicted tenth", ("tenth", "share of rows"), rows, (0,))


def balance(found: Balance) -> Table:
    """Return how far weighting moves each context."""
    rows = tuple(
        (name, number(near), number(weighted))
        for name, near, weighted in zip(found.contexts, found.near, found.weighted, strict=True)
    )
    headings = ("context", "rows near the policy", "weighted")
    return Table(f"{found.policy}: distance from all rows, in sd", headings, rows)


def coefficients(found: Rule, log: LogSummary) -> Table | None:
    """Return the coefficients of a linear rule on the user's scale."""
    if found.intercept is None:
        return None
    several = len(log.treatments) > 1
    units = [f"{t}: per unit" for t in log.treatments] if several else ["per unit"]
    spreads = [f"{t}: per sd" for t in log.treatments] if several else ["per sd"]
    first = ("intercept", *map(number, found.intercept), *[NONE] * len(found.intercept))
    left = f"; {found.left_out} smaller ones left out" if found.left_out else ""
    rows = tuple(
        (c.context, *map(number, c.values), *map(_number, c.per_sd or [None] * len(c.values)))
        for c in found.coefficients
    )
    headings = ("context", *units, *spreads)
    return Table(f"Coefficients{left}", headings, (first, *rows))


def honest(report: Report, learned: Mapping[str, Any]) -> Table:
    """Return the honest value of the learned policy and its differences."""
    found = learned["honest"]
    value = (str(learned["name"]), *told(found["value"], found["interval"]))
    rows = [
        (f"{learned['name']} − {name}", *told(d["difference"], d["interval"]))
        for name, d in found["against"].items()
    ]
    headings = ("on rows not learned from", "value", f"{percent(report.level)} interval")
    return Table("The honest value", headings, (value, *rows))


def candidates(learned: Mapping[str, Any]) -> Table | None:
    """Return what the learned policy was chosen from."""
    if not learned.get("candidates"):
        return None
    rows = tuple(
        (
            str(c["name"]),
            number(c["loss"]),
            f"{number(c['behind'])} ± {number(c['behind_se'])}",
            share(c["weight"]),
        )
        for c in learned["candidates"]
    )
    headings = ("candidate", "held-out loss", "behind the best", "weight")
    return Table("Candidates", headings, rows)


def outcome_models(learned: Mapping[str, Any]) -> Table | None:
    """Return how much say each outcome model had."""
    models = learned.get("outcome_models", {})
    rows = tuple((str(name), share(weight)) for name, weight in models.items())
    return Table("Outcome models", ("model", "weight"), rows) if rows else None


def mapping(caption: str, values: Mapping[str, object]) -> Table:
    """Return names and values that say something."""
    rows = tuple((str(k), _text(v)) for k, v in values.items() if v not in (None, (), []))
    return Table(caption, ("name", "value"), rows, (0, 1))


def _value(report: Report, estimate: Estimate) -> tuple[str, ...]:
    return (
        estimate.policy,
        *told(estimate.value, report.interval(estimate.policy)),
        estimate.diagnostics.verdict.value,
    )


def _contrast(report: Report, contrast: Contrast) -> tuple[str, str]:
    low, high = contrast.interval(report.level)
    return signed(contrast.difference, high - low), span(low, high)


def _than_before(report: Report, contrast: Contrast) -> str:
    found = better(contrast, report.level, maximize=report.maximize)
    return found if found == UNCLEAR else "better" if found == contrast.a else "worse"


def _check(estimate: Estimate, name: str) -> str:
    if name not in estimate.diagnostics.names:
        return NONE
    found = estimate.diagnostics[name]
    verdict = found.verdict.value
    return number(found.value) if verdict == VERDICTS[0] else f"{number(found.value)} {verdict}"


def _bandwidth(estimate: Estimate) -> str:
    return NONE if estimate.bandwidth is None else _several(estimate.bandwidth.h)


def _several(values: Any) -> str:  # noqa: ANN401  (a number, an array of them, or nested)
    flat = values.ravel().tolist() if values.ndim else [float(values)]
    return ", ".join(map(number, flat))


def _number(value: float | None) -> str:
    return NONE if value is None else number(value)


def _text(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    return number(value) if isinstance(value, float) else str(value)
