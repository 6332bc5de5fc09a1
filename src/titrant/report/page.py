"""From a report to one HTML page that needs nothing but itself."""

from __future__ import annotations

import json
from itertools import combinations
from typing import TYPE_CHECKING, Any

from titrant import __version__
from titrant.report import figures
from titrant.report.numbers import number, percent, span

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant.evaluation import Contrast, Estimate
    from titrant.report.content import Report


def render(report: Report) -> str:
    """Return the page of a report."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415

    environment = Environment(
        loader=PackageLoader("titrant.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(_words(report))


def embedded(report: Report) -> str:
    """Return the numbers of the page as JSON that may stand inside a script element."""
    text = json.dumps(report.to_dict(), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def answer(report: Report) -> str:
    """Return the result in a sentence: the best policy, and how sure that is."""
    estimates = report.comparison.estimates
    pick: Callable[..., Estimate] = max if report.maximize else min
    best = pick(estimates.values(), key=lambda e: e.value)
    low, high = best.interval(report.level)
    what = "reward" if report.maximize else "loss"
    value = (
        f"{number(best.value)} ({percent(report.level)} interval {span(low, high)}), "
        f"verdict: {best.diagnostics.verdict.value}"
    )
    if len(estimates) == 1:
        return f"The estimated mean {what} of {best.policy} is {value}."
    rivals = [n for n in estimates if n != best.policy]
    open_to = [n for n in rivals if _open(report.comparison.contrast(best.policy, n), report.level)]
    sure = (
        "Its difference to every other policy is clear of zero."
        if not open_to
        else f"Its difference to {', '.join(open_to)} is not clear of zero."
    )
    extreme = "highest" if report.maximize else "lowest"
    return f"{best.policy} has the {extreme} estimated mean {what}, {value}. {sure}"


def _words(report: Report) -> dict[str, Any]:
    """Return what the template is filled with."""
    estimates = report.comparison.estimates
    first = next(iter(estimates.values()))
    return {
        "report": report,
        "version": __version__,
        "answer": answer(report),
        "level": percent(report.level),
        "policies": [_policy(report, e) for e in estimates.values()],
        "differences": [
            _difference(report, report.comparison.contrast(a, b))
            for a, b in combinations(estimates, 2)
        ],
        "forest": figures.forest(report),
        "doses": [figures.dose_histogram(counts) for counts in report.doses],
        "method": {k: v for k, v in first.method.items() if v is not None},
        "settings": {k: v for k, v in report.settings.items() if v not in (None, (), [])},
        "data": embedded(report),
    }


def _policy(report: Report, estimate: Estimate) -> dict[str, Any]:
    low, high = estimate.interval(report.level)
    h = estimate.bandwidth
    truth = None if report.truth is None else number(report.truth[estimate.policy])
    return {
        "name": estimate.policy,
        "value": number(estimate.value),
        "interval": span(low, high),
        "bandwidth": "–" if h is None else ", ".join(map(number, h.h.ravel().tolist())),
        "reason": "" if h is None else h.reason,
        "ess": f"{estimate.ess:,.0f} of {estimate.rows:,}",
        "verdict": estimate.diagnostics.verdict.value,
        "checks": [(c.verdict.value, c.message) for c in estimate.diagnostics.checks],
        "notes": estimate.diagnostics.notes,
        "truth": truth,
    }


def _difference(report: Report, contrast: Contrast) -> dict[str, str]:
    low, high = contrast.interval(report.level)
    better = contrast.a if (low > 0) is report.maximize else contrast.b
    return {
        "name": f"{contrast.a} − {contrast.b}",
        "value": number(contrast.difference),
        "interval": span(low, high),
        "better": "not clear" if _open(contrast, report.level) else better,
    }


def _open(contrast: Contrast, level: float) -> bool:
    low, high = contrast.interval(level)
    return low <= 0 <= high
