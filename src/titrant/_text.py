"""How names, numbers and tables are written for people."""

from __future__ import annotations

import math
import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Control characters in the names that users give: shown, so that they do not act.


CONTROL = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f]")
"""Characters that act on the terminal of whoever prints the source of a page, and have no glyph."""


def written_out(text: str) -> str:
    r"""Return a text whose control characters, but for tabs and line breaks, are spelled.

    >>> written_out("a\x1b[31mred")
    'a\\x1b[31mred'
    """
    return CONTROL.sub(lambda sign: f"\\x{ord(sign[0]):02x}", text)


# How many digits of an estimate to write: as many as its interval gives meaning to.

_FEWEST = 4
_OF_THE_WIDTH = 2
_WRITTEN_OUT = 1e9
"""Below this size no digit before the decimal point is left out."""


def digits(value: float, width: float = 0.0) -> int:
    """Return how many significant digits tell a value whose interval has this width.

    Four, but all of a whole number, and two of the width: an outcome far from zero, such as a year
    or a balance, would hide its interval otherwise.

    >>> digits(3.3351), digits(98765.4), digits(1_000_003.3351, 0.398), digits(5e9)
    (4, 5, 9, 4)
    """
    if value == 0 or not math.isfinite(value):
        return _FEWEST
    place = math.floor(math.log10(abs(value)))
    whole = place + 1 if abs(value) < _WRITTEN_OUT else 0
    narrow = place - math.floor(math.log10(width)) + _OF_THE_WIDTH if 0 < width < math.inf else 0
    return max(_FEWEST, whole, narrow)


def brief(value: float, width: float = 0.0) -> str:
    """Return a value whose interval has this width, without needless digits.

    >>> brief(3.3351), brief(0.5), brief(98765.4), brief(1_000_003.3351, 0.398)
    ('3.335', '0.5', '98765', '1000003.34')
    """
    return f"{value:.{digits(value, width)}g}"


def between(low: float, high: float) -> str:
    """Return an interval.

    >>> between(1_000_003.072, 1_000_003.47)
    '1000003.07 … 1000003.47'
    """
    return f"{brief(low, high - low)} … {brief(high, high - low)}"


# Small HTML tables, as notebooks show results; no style of its own, so that it fits any theme.


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines, the first column to the left and others to the right."""
    width = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, width, strict=True))
        )
        for row in rows
    ]


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
