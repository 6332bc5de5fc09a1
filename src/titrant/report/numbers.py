"""Numbers as people read them, and results as the plain values that JSON knows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

from titrant._text import digits

# Numbers as people read them.


_SMALL, _LARGE = 1e-3, 1e9
"""Within these sizes a number is written out; beyond them with a power of ten."""
_EXACT = 15
"""Digits that a number can hold."""


def number(value: float, width: float = 0.0) -> str:
    """Return a number to four significant digits, or to two of the width of its interval.

    >>> number(3.0), number(-0.012346), number(98765.4), number(1.5e-9)
    ('3.000', '-0.01235', '98,765', '1.500e-09')
    >>> number(1_000_003.3351, 0.398), number(5e9, 2e8), number(5e9, 2.0)
    ('1,000,003.34', '5.000e+09', '5,000,000,000.0')
    """
    size = abs(value)
    if size == 0 or not math.isfinite(size):
        return f"{value:g}"
    written = min(_EXACT, digits(value, width))
    places = written - 1 - math.floor(math.log10(size))
    if size < _SMALL or (size >= _LARGE and places < 0):
        return f"{value:.{written - 1}e}"
    return f"{value:,.{max(0, places)}f}"


def span(low: float, high: float) -> str:
    """Return an interval."""
    return f"{number(low, high - low)} … {number(high, high - low)}"


def value_and_interval(value: float, ends: tuple[float, float]) -> tuple[str, str]:
    """Return a value and its interval, in as many digits as the interval gives meaning to."""
    return number(value, ends[1] - ends[0]), span(*ends)


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
