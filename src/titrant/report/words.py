"""The sentences of a page: what the numbers say, in the order a reader decides.

Numbers stand on a page as those of `titrant.report.numbers`, with a true minus sign: on a terminal
a plain hyphen is safer, on a page it would break lines and read as a dash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from titrant.inference import Verdict
from titrant.report import numbers
from titrant.report.numbers import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from titrant.evaluation.curves import Curve
    from titrant.evaluation.evaluation import Contrast, Estimate
    from titrant.report.content import Report

UNCLEAR = "not clear"


def answer(report: Report) -> str:
    """Return the result in a few sentences: the best policy, its margin, and how sure that is."""
    if report.learned is not None:
        return " ".join([_honest(report, report.learned), verdict(report)])
    best = best_policy(report)
    if report.comparison.names == [report.status_quo]:
        sentences = [_only_status_quo(report)]
    elif best == report.status_quo:
        sentences = [_nothing_better(report)]
    else:
        sentences = [_best(report, best), margin(report, best), *_open_rivals(report, best)]
    return " ".join([*sentences, verdict(report, best), *_refused(report)])


def best_policy(report: Report) -> str:
    """Return the name of the best estimate among those that are not refused, if there are any."""
    every = list(report.comparison.estimates.values())
    trusted = [e for e in every if e.trusted] or every
    pick: Callable[..., Estimate] = max if report.maximize else min
    return pick(trusted, key=lambda e: e.value).policy


def margin(report: Report, name: str) -> str:
    """Return how a policy compares with the status quo."""
    contrast = report.comparison.contrast(name, report.status_quo)
    return "That is " + gap(contrast.difference, contrast.interval(report.level), report.level)


def gap(difference: float, ends: tuple[float, float], level: float) -> str:
    """Return a difference to the status quo in words.

    >>> gap(-3.2, (-3.5, -2.9), 0.95).partition(" (")[0]
    '3.200 less than the status quo'
    """
    low, high = ends
    more = "more" if difference > 0 else "less"
    size = f"{number(abs(difference), high - low)} {more} than the status quo"
    if low <= 0 <= high:
        return (
            f"{size}, but the {percent(level)} interval of the difference, {span(low, high)}, "
            "holds zero: it may be chance."
        )
    near, far = sorted([abs(low), abs(high)])
    return f"{size} ({percent(level)} interval {span(near, far)} {more})."


def verdict(report: Report, name: str | None = None) -> str:
    """Return what the checks of a policy's estimate say of it; of the focus unless named."""
    if name is None:
        name = report.focus
    found = report.comparison[name].diagnostics
    total, warned = len(found.checks), len(found.messages(Verdict.WARN))
    refused = len(found.messages(Verdict.REFUSE))
    if refused:
        return f"Not to be trusted: {refused} of {total} checks of this estimate refuse it."
    if warned:
        return f"Read it with care: {warned} of {total} checks of this estimate warn."
    return f"All {total} checks of this estimate are ok."


def better(contrast: Contrast, level: float, *, maximize: bool) -> str:
    """Return the better policy of a pair, or that the interval leaves it open."""
    if is_open(contrast, level):
        return UNCLEAR
    low, _ = contrast.interval(level)
    return contrast.a if (low > 0) is maximize else contrast.b


def is_open(contrast: Contrast, level: float) -> bool:
    """Return whether the interval of a difference holds zero."""
    low, high = contrast.interval(level)
    return low <= 0 <= high


def drawn_note(report: Report) -> str | None:
    """Return which policies the figures leave out."""
    left = len(report.comparison.names) - 1 - len(report.drawn)
    if left <= 0:
        return None
    drawn = ", ".join(quoted(name) for name in report.drawn)
    return f"Figures show {drawn}; {left} more are in this table."


def refused_at(curve: Curve) -> list[str]:
    """Return the doses at which the log cannot answer."""
    return list(dict.fromkeys(f"{dose:.4g}" for dose in curve.refused))


def remarks(estimate: Estimate) -> list[str]:
    """Return what was unusual: of the bandwidth, of the interval, of the checks themselves."""
    flag = None if estimate.bandwidth is None else estimate.bandwidth.flag
    said = (flag, estimate.confidence.note, *estimate.diagnostics.notes)
    return [remark for remark in said if remark]


def sentence(text: str | None) -> str | None:
    """Return a text with a capital at its beginning and a full stop at its end.

    >>> sentence("it scored best")
    'It scored best.'
    """
    if not text:
        return text
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def quoted(name: str) -> str:
    """Return the name of a policy as it stands in a sentence."""
    return f"“{name}”"


def _best(report: Report, name: str) -> str:
    extreme = "highest" if report.maximize else "lowest"
    mean = f"estimated mean {report.log.outcome}"
    return f"{quoted(name)} has the {extreme} {mean}: {_value(report, name)}."


def _with_interval(report: Report, value: float, ends: tuple[float, float]) -> str:
    written, interval = value_and_interval(value, ends)
    return f"{written} ({percent(report.level)} interval {interval})"


def _value(report: Report, name: str) -> str:
    return _with_interval(report, report.comparison[name].value, report.interval(name))


def _nothing_better(report: Report) -> str:
    extreme = "higher" if report.maximize else "lower"
    return (
        f"No policy has a {extreme} estimated mean {report.log.outcome} than the status quo, "
        f"{_value(report, report.status_quo)}."
    )


def _only_status_quo(report: Report) -> str:
    value = _value(report, report.status_quo)
    return f"The status quo has a mean {report.log.outcome} of {value}."


def _refused(report: Report) -> list[str]:
    """Return a sentence on the policies that have no estimate."""
    names = list(report.comparison.refused)
    return [f"The log cannot answer for {_listed(names)}."] if names else []


def _open_rivals(report: Report, best: str) -> list[str]:
    """Return a sentence on the policies that may be as good, the status quo aside."""
    rivals = [n for n in report.comparison.names if n not in (best, report.status_quo)]
    close = [n for n in rivals if is_open(report.comparison.contrast(best, n), report.level)]
    if not close:
        return []
    return [f"Whether it is better than {_listed(close)} the log leaves open."]


def _honest(report: Report, learned: Mapping[str, Any]) -> str:
    """Return the value of a learned policy on rows that had no part in learning it."""
    found = learned["honest"]
    value = _with_interval(report, found["value"], found["interval"])
    said = (
        f"On rows it was not learned from, {_learned_name(learned)} has an estimated mean "
        f"{report.log.outcome} of {value}."
    )
    against = found["against"].get(report.status_quo)
    if against is None:
        return said
    ends = tuple(against["interval"])
    return f"{said} That is {gap(against['difference'], ends, report.level)}{_kept(learned)}"


def _kept(learned: Mapping[str, Any]) -> str:
    """Return that the status quo is kept, if it is, and what speaks against the estimate."""
    if learned.get("deployed", True):
        return ""
    objection = learned.get("objection")
    reason = "" if objection is None else f" Although it looks better, {objection}."
    return f" To be safe, the status quo is kept.{reason}"


def _learned_name(learned: Mapping[str, Any]) -> str:
    """Return the learned policy's name, unless it says no more than that."""
    return "the learned policy" if learned["name"] == "learned" else quoted(learned["name"])


def _listed(names: list[str]) -> str:
    quotes = [quoted(name) for name in names]
    return " or ".join([", ".join(quotes[:-1]), quotes[-1]] if len(quotes) > 1 else quotes)


# Numbers as they stand on a page.


def number(value: float, width: float = 0.0) -> str:
    """Return a number to four significant digits, or to two of the width of its interval.

    >>> number(-0.5)
    '−0.5000'
    """
    return numbers.number(value, width).replace("-", "−")


def signed(value: float, width: float = 0.0) -> str:
    """Return a number with its sign.

    >>> signed(0.5)
    '+0.5000'
    """
    return f"+{number(value, width)}" if value > 0 else number(value, width)


def span(low: float, high: float) -> str:
    """Return an interval that no line break divides."""
    ends = number(low, high - low), number(high, high - low)
    return "\N{NO-BREAK SPACE}…\N{NO-BREAK SPACE}".join(ends)


def value_and_interval(value: float, ends: tuple[float, float]) -> tuple[str, str]:
    """Return a value and its interval, in as many digits as the interval gives meaning to."""
    return number(value, ends[1] - ends[0]), span(*ends)
