"""From a report to one HTML page that needs nothing but itself."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from titrant._text import CONTROL, written_out
from titrant.inference import Verdict
from titrant.report import figures, tables, words
from titrant.report.typeset import count, percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup

    from titrant.report.content import Report, Rule

SOME = 4
"""Of so many doses of a curve one is shown at once; all are one click away."""
SOME_STRENGTHS = 2
"""And of so many strengths of a rule."""
SHORT = 1000
"""Characters of JSON that are set line by line."""
_NOT_IN_SCRIPT = re.compile(f"[<\u2028\u2029]|{CONTROL.pattern}")
"""What JSON inside a script element must escape."""
SIGNS = {"ok": "✓", "warn": "!", "refuse": "✕"}
"""Verdicts are told apart without color, too."""


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
    environment.filters["prose"] = prose
    page = environment.get_template("page.html.j2").render(
        report=report,
        level=percent(report.level),
        signs=SIGNS,
        count=count,
        answer=_answer(report),
        compared=_compared(report),
        curves=_curves(report),
        strengths=_strengths(report),
        who=_who(report),
        trust=_trust(report),
        learned=_learned(report),
        rules=[_rule(report, rule) for rule in report.rules],
        method=_method(report),
        data=embedded(report),
    )
    return written_out(page)


def prose(text: str) -> Markup:
    """Return a sentence with what stands in backticks set as code.

    >>> str(prose("Write `a < b`."))
    'Write <code>a &lt; b</code>.'
    """
    from markupsafe import Markup, escape  # noqa: PLC0415  (it comes with jinja2)

    parts = [str(escape(part)) for part in text.split("`")]
    if len(parts) % 2 == 0:  # a backtick without its partner stays what it is
        return escape(text)
    return Markup("".join(f"<code>{p}</code>" if k % 2 else p for k, p in enumerate(parts)))  # noqa: S704


def embedded(report: Report) -> str:
    """Return the numbers of the page as JSON that may stand inside a script element."""
    text = json.dumps(report.to_dict(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _NOT_IN_SCRIPT.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def _answer(report: Report) -> dict[str, Any]:
    name = report.focus if report.learned is not None else words.best_policy(report)
    found = report.comparison[name].diagnostics
    return {
        "text": words.answer(report),
        "verdict": found.verdict.value,
        "objections": [*found.messages(Verdict.REFUSE), *found.messages(Verdict.WARN)],
    }


def _compared(report: Report) -> dict[str, Any]:
    alone = len(report.comparison.names) == 1
    return {
        "forest": figures.forest(report),
        "values": tables.values(report),
        "refused": report.comparison.refused,
        "differences": None if alone else figures.differences(report),
        "difference_table": None if alone else tables.differences(report),
        "rivals": tables.rivals(report),
        "left_out": words.drawn_note(report),
    }


def _curves(report: Report) -> list[dict[str, Any]]:
    return [
        {
            "treatment": treatment,
            "figure": figures.curve(report, treatment, f"curve-{k}"),
            "some": tables.curve(report, treatment, every=SOME),
            "table": tables.curve(report, treatment),
            "refused": {f"{p:.4g}": why for p, why in found.refused.items()},
        }
        for k, (treatment, found) in enumerate(report.curves.items())
    ]


def _strengths(report: Report) -> dict[str, Any] | None:
    found = report.strengths
    if found is None:
        return None
    return {
        "figure": figures.strengths(report, found),
        "some": tables.strengths(report, found, every=SOME_STRENGTHS),
        "table": tables.strengths(report, found),
    }


def _who(report: Report) -> dict[str, Any]:
    treatments = report.log.treatments
    return {
        "doses": [
            {
                "figure": figures.histogram(report, counts, treatments[j], f"doses-{j}"),
                "table": tables.doses(report, treatments[j]),
            }
            for j, counts in enumerate(report.doses)
        ],
        "profiles": [
            figures.profile(report, found, f"profile-{k}")
            for k, found in enumerate(report.profiles)
        ],
        "profile_tables": [tables.profile(found) for found in report.profiles],
        "legend": figures.legend(report),
        "subgroups": tables.subgroups(report) if report.subgroups else None,
    }


def _trust(report: Report) -> dict[str, Any]:
    calibration = report.calibration
    shaped = calibration is not None and calibration.pit_histogram is not None
    focused = next((b for b in report.balance if b.policy == report.focus), None)
    return {
        "checks": tables.checks(report) if report.drawn else None,
        "policies": [_checked(report, name) for name in (report.status_quo, *report.drawn)],
        "overlap": [
            figures.overlap(report, found, f"overlap-{k}") for k, found in enumerate(report.overlap)
        ],
        "overlap_table": tables.overlap(report) if report.overlap else None,
        "weights": figures.weights(report) if report.weights else None,
        "weights_table": tables.weights(report) if report.weights else None,
        "paths": [figures.path(report, name, f"path-{k}") for k, name in enumerate(report.paths)],
        "bandwidths": tables.bandwidths(report),
        "path_table": tables.path(report, report.focus) if report.paths else None,
        "calibration": figures.calibration(calibration) if shaped and calibration else None,
        "calibration_table": tables.calibration(report) if shaped else None,
        "calibration_said": [
            (c.verdict.value, c.message) for c in report.calibration_checks.checks
        ],
        "calibration_notes": report.calibration_checks.notes,
        "balance": None if focused is None else figures.balance(report, focused),
        "balance_table": None if focused is None else tables.balance(focused),
        "balance_tables": [tables.balance(b) for b in report.balance if b is not focused],
    }


def _checked(report: Report, name: str) -> dict[str, Any]:
    """Return the checks of one policy in words."""
    estimate = report.comparison[name]
    found, chosen = estimate.diagnostics, estimate.bandwidth
    remarks = (None if chosen is None else chosen.flag, estimate.confidence.note, *found.notes)
    return {
        "name": name,
        "verdict": found.verdict.value,
        "checks": [(c.verdict.value, c.message) for c in found.checks],
        "notes": [remark for remark in remarks if remark],
    }


def _learned(report: Report) -> dict[str, Any] | None:
    learned = report.learned
    if learned is None:
        return None
    said = learned["honest"]["value"] == report.comparison[report.focus].value
    return {
        "honest": None if said else tables.honest(report, learned),
        "verdict": learned["honest"].get("verdict"),
        "chosen": learned.get("chosen"),
        "because": words.sentence(learned.get("because")),
        "formulas": next((r.formulas for r in report.rules if r.policy == report.focus), ()),
        "decision": learned.get("decision"),
        "candidates": tables.candidates(learned),
        "models": tables.outcome_models(learned),
        "deployed": learned.get("deployed", True),
    }


def _rule(report: Report, rule: Rule) -> dict[str, Any]:
    document = rule.document
    return {
        "name": rule.policy,
        "formulas": rule.formulas,
        "coefficients": tables.coefficients(rule, report.log),
        "json": None if document is None else _document(document),
    }


def _document(document: Mapping[str, Any]) -> str:
    """Return a policy as JSON, line by line as long as there are not too many."""
    short = json.dumps(document, ensure_ascii=False)
    return short if len(short) > SHORT else json.dumps(document, indent=2, ensure_ascii=False)


def _method(report: Report) -> dict[str, Any]:
    estimates = report.comparison.estimates
    weighted = [e for name, e in estimates.items() if name != report.status_quo]
    first = (weighted or list(estimates.values()))[0]
    how = {k.replace("_", " "): v for k, v in first.method.items()}
    return {
        "how": tables.mapping("Method", {**how, "interval": first.confidence.method}),
        # The file says the same, and is what one would repeat.
        "settings": tables.mapping("Settings", report.settings)
        if report.settings and not report.config
        else None,
        "versions": tables.mapping("Versions", report.versions),
    }
