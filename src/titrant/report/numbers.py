"""Numbers as people read them."""

from __future__ import annotations

import math

_DIGITS = 4
_PLAIN = 1e-3, 1e9
"""Within these sizes a number is written out; beyond them with a power of ten."""


def number(value: float) -> str:
    """Return a number to four significant digits.

    >>> number(3.0), number(-0.012346), number(98765.4), number(1.5e-9)
    ('3.000', '-0.01235', '98,765', '1.500e-09')
    """
    size = abs(value)
    if size == 0 or not math.isfinite(size):
        return f"{value:g}"
    if not _PLAIN[0] <= size < _PLAIN[1]:
        return f"{value:.{_DIGITS - 1}e}"
    places = max(0, _DIGITS - 1 - math.floor(math.log10(size)))
    return f"{value:,.{places}f}"


def span(low: float, high: float) -> str:
    """Return an interval."""
    return f"{number(low)} … {number(high)}"


def count(value: float) -> str:
    """Return a number of rows.

    >>> count(12345.4)
    '12,345'
    """
    return f"{value:,.0f}"


def share(value: float) -> str:
    """Return a share of the whole in percent, to a tenth.

    >>> share(0.0321)
    '3.2%'
    """
    return f"{value:.1%}"


def percent(level: float) -> str:
    """Return a level such as 0.95 as 95%."""
    return f"{100 * level:.6g}%"
