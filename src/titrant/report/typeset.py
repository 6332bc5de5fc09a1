"""Numbers as they stand on a page: those of `titrant.report.numbers`, with a true minus sign.

On a terminal a plain hyphen is safer; on a page it would break lines and read as a dash.
"""

from __future__ import annotations

from titrant.report import numbers
from titrant.report.numbers import count, percent, share

__all__ = ["count", "number", "percent", "share", "signed", "span"]


def number(value: float) -> str:
    """Return a number to four significant digits.

    >>> number(-0.5)
    '−0.5000'
    """
    return numbers.number(value).replace("-", "−")


def signed(value: float) -> str:
    """Return a number with its sign.

    >>> signed(0.5)
    '+0.5000'
    """
    return f"+{number(value)}" if value > 0 else number(value)


def span(low: float, high: float) -> str:
    """Return an interval that no line break divides."""
    return f"{number(low)}\N{NO-BREAK SPACE}…\N{NO-BREAK SPACE}{number(high)}"
