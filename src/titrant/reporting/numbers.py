"""Numbers as people read them, and results as the plain values that JSON knows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

# Numbers as people read them.


_SMALL, _LARGE = 1e-3, 1e12
"""Within these sizes a number is written out; beyond them with a power of ten."""
_SIGNIFICANT = 4
"""Digits of a number whose uncertainty is not known."""
_EXACT = 15
"""Digits that a number can hold."""
_OF_THE_UNCERTAINTY = 2
_NOTHING = 1e-14
"""Of a number: an interval so narrow is that of a single row, and says nothing."""


def places(width: float) -> int:
    """Return to how many decimals a number with an interval of this width is told.

    Two digits of its uncertainty, half the width, decide; below 0 they are before the point.

    >>> places(0.455), places(3.2), places(46_000.0)
    (2, 1, -3)
    """
    return _OF_THE_UNCERTAINTY - 1 - math.floor(math.log10(width / 2))


def fixed(value: float, decimals: int) -> str:
    """Return a number to so many decimals, with a true minus sign.

    On a page a hyphen would break lines and read as a dash.

    >>> fixed(-0.5, 2), fixed(1_234_567.0, -3), fixed(-0.001, 1)
    ('−0.50', '1,235,000', '0.0')
    """
    size = abs(value)
    digits = decimals + 1 + math.floor(math.log10(size)) if size else 1
    if (0 < size < _SMALL and decimals > _SIGNIFICANT) or size >= _LARGE:
        return f"{value:.{min(max(digits, 1), _EXACT) - 1}e}".replace("-", "−")
    held = min(decimals, _EXACT + decimals - digits)
    return f"{round(value, held) + 0.0:,.{max(0, held)}f}".replace("-", "−")


def told(value: float, decimals: int) -> str:
    """Return a number to so many decimals, or to its first digit if it would read as 0.

    An interval that ends at −0.03 does not hold 0, and 0.02 days less are not 0.0 days less.

    >>> told(-2.498, 1), told(-0.027, 1), told(0.04, 1), told(0.06, 1), told(0.0, 1)
    ('−2.5', '−0.03', '0.04', '0.1', '0.0')
    """
    if value and round(value, decimals) == 0:
        decimals = -math.floor(math.log10(abs(value)))
    return fixed(value, decimals)


def number(value: float, width: float = 0.0) -> str:
    """Return a number as a page shows it; ``width`` is that of its interval.

    Without one it has four significant digits, and no zeros at its end.

    >>> number(3.0), number(-0.012346), number(98765.4), number(1.5e-9)
    ('3', '−0.01235', '98,765', '1.5e−09')
    >>> number(1_000_003.3351, 0.398), number(5e9, 2e8), number(3.10049, 0.455)
    ('1,000,003.34', '5,000,000,000', '3.10')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}".replace("-", "−")
    if _NOTHING * abs(value) < width < math.inf:
        return fixed(value, places(width))
    if not _SMALL <= abs(value) < _LARGE:
        return f"{value:.{_SIGNIFICANT}g}".replace("-", "−")
    text = fixed(value, max(0, _SIGNIFICANT - 1 - math.floor(math.log10(abs(value)))))
    return text.rstrip("0").rstrip(".") if "." in text else text


def apart_from_0(value: float, width: float) -> str:
    """Return a number as `number` does, but never as 0 unless it is: its sign says something.

    >>> number(-0.027, 2.47), apart_from_0(-0.027, 2.47)
    ('0.0', '−0.03')
    """
    written = _NOTHING * abs(value) < width < math.inf and math.isfinite(value)
    return told(value, places(width)) if value and written else number(value, width)


def signed(value: float, width: float = 0.0) -> str:
    """Return a number with its sign.

    >>> signed(0.5)
    '+0.5'
    """
    return f"+{number(value, width)}" if value > 0 else number(value, width)


def span(low: float, high: float, decimals: int | None = None) -> str:
    r"""Return an interval that no line break divides; ``decimals`` if others share them.

    >>> span(2.872, 3.327).replace("\xa0", " "), span(-2.498, -0.027, 1).replace("\xa0", " ")
    ('2.87 … 3.33', '−2.5 … −0.03')
    """
    width = high - low
    ends = (apart_from_0(e, width) if decimals is None else told(e, decimals) for e in (low, high))
    return "\N{NO-BREAK SPACE}…\N{NO-BREAK SPACE}".join(ends)


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


# Results as plain values: what JSON knows, and nothing else.


def plain(value: Any) -> Any:  # noqa: ANN401  (anything in, JSON out)
    """Return a value as dicts, lists, texts and finite numbers; what is not finite is None.

    >>> plain({"a": np.array([1.0, np.nan]), "b": (2, "x")})
    {'a': [1.0, None], 'b': [2, 'x']}
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return _object(value)


def _object(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Enum):
        return plain(value.value)
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return str(value)
