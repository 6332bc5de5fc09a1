"""Numbers as they stand on a page: those of `titrant.report.numbers`, with a true minus sign.

On a terminal a plain hyphen is safer; on a page it would break lines and read as a dash.
"""

from __future__ import annotations

from titrant.report import numbers
from titrant.report.numbers import count, percent, share

__all__ = ["count", "number", "percent", "share", "signed", "span", "value_and_interval"]


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
