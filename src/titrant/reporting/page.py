"""From a report to one HTML page that needs nothing but itself.

The template asks `figures`, `tables` and `words` for what it shows. The page's own script is the
only one that its content policy lets run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from titrant._text import CONTROL, written_out
from titrant.reporting import figures, tables, words
from titrant.reporting.numbers import count, number, percent, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Environment
    from markupsafe import Markup

    from titrant.reporting.content import Report
    from titrant.reporting.words import Decision

SOME = 4
"""Of so many doses of a curve one is shown at once; all are one click away."""
SOME_STRENGTHS = 2
"""And of so many strengths of a rule."""
SHORT = 1000
"""Characters of JSON that are set line by line."""
FEW_REASONS = 2
"""So few reasons are told at once; more are one click away."""
_NOT_IN_SCRIPT = re.compile(f"[<\u2028\u2029]|{CONTROL.pattern}")
"""What JSON inside a script element must escape."""
SIGNS = {"ok": "✓", "warn": "!", "refuse": "✕"}
"""Verdicts are told apart without color, too."""


def render(report: Report) -> str:
    """Return the page of a report."""
    templates = _templates()
    script = templates.get_template("page.js").render()
    found = words.decide(report)
    page = templates.get_template("page.html.j2").render(
        report=report,
        figures=figures,
        tables=tables,
        words=words,
        count=count,
        number=number,
        said=partial(words.spoken, report),
        signs=SIGNS,
        level=percent(report.level),
        some_doses=SOME,
        some_strengths=SOME_STRENGTHS,
        few_reasons=FEW_REASONS,
        decision=found,
        script=script,
        script_hash=_hash(script),
        data=embedded(report, found),
    )
    return written_out(page)


@cache
def _templates() -> Environment:
    """Return the page's templates, which are compiled once."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415

    templates = Environment(
        loader=PackageLoader("titrant.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"prose": prose, "document": _document}
    return templates


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


def embedded(report: Report, found: Decision) -> str:
    """Return the numbers of the page as JSON that may stand inside a script element."""
    said = {"answer": words.answer(report, found), "reason": words.verdict(report, found)}
    every = {**report.to_dict(), "decision": {**plain(found), **said}}
    text = json.dumps(every, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _NOT_IN_SCRIPT.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def _hash(script: str) -> str:
    """Return what the content policy knows the page's script by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _document(document: Mapping[str, Any]) -> str:
    """Return a policy as JSON, line by line as long as there are not too many."""
    short = json.dumps(document, ensure_ascii=False)
    return short if len(short) > SHORT else json.dumps(document, indent=2, ensure_ascii=False)
