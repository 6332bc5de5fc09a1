"""Small HTML tables, as notebooks show results; no style of its own, so that it fits any theme."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


CONTROL = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f]")
"""Characters that act on the terminal of whoever prints the source of a page, and have no glyph."""


def written_out(text: str) -> str:
    r"""Return a text whose control characters are shown instead of acting.

    >>> written_out("a\x1b[31mred")
    'a\\x1b[31mred'
    """
    return CONTROL.sub(lambda sign: f"\\x{ord(sign[0]):02x}", text)


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
