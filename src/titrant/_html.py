"""Small HTML tables, as notebooks show results; no style of its own, so that it fits any theme."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from titrant._controls import written_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], caption: str | None = None
) -> str:
    """Return a table whose cells hold the given values as text.

    >>> table(["h"], [["< 1"]])
    '<table><thead><tr><th>h</th></tr></thead><tbody><tr><td>&lt; 1</td></tr></tbody></table>'
    """
    title = "" if caption is None else f"<caption>{escape(written_out(caption))}</caption>"
    head = _row(headings, "th")
    body = "".join(_row(row, "td") for row in rows)
    return f"<table>{title}<thead>{head}</thead><tbody>{body}</tbody></table>"


def _row(cells: Iterable[object], tag: str) -> str:
    inner = "".join(f"<{tag}>{escape(written_out(str(cell)))}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"
