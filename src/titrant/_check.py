"""The one place that phrases validation errors of parameters.

Every check returns the value it was given, in the type the caller needs, so that a
``__post_init__`` reads as a list of what must hold. All sentences have one form::

    The `bandwidth` of `SelfNormalized` must be a finite number > 0; got 0.0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


LONGEST = 200
"""Letters of a value that are shown: an array given in place of a number fills a screen."""


def invalid(name: str, owner: str, rule: str, value: object) -> InvalidArgument:
    """Return the error "The `name` of `owner` must be `rule`; got `value`."."""
    value = value.item() if isinstance(value, np.generic) else value  # 0.0, not np.float64(0.0)
    shown = " ".join(repr(value).split()) if isinstance(value, np.ndarray) else repr(value)
    if len(shown) > LONGEST:
        shown = f"{shown[:LONGEST]}…"
    return InvalidArgument(f"The `{name}` of `{owner}` must be {rule}; got {shown}.")


def number(value: object, name: str, owner: str) -> float:
    """Return `value` as a finite float."""
    return _number(value, name, owner, "a finite number", -math.inf, strict=False)


def positive(value: object, name: str, owner: str) -> float:
    """Return `value` as a finite float > 0."""
    return _number(value, name, owner, "a finite number > 0", 0.0, strict=True)


def nonnegative(value: object, name: str, owner: str) -> float:
    """Return `value` as a finite float ≥ 0."""
    return _number(value, name, owner, "a finite number ≥ 0", 0.0, strict=False)


def at_least(value: object, least: float, name: str, owner: str) -> float:
    """Return `value` as a finite float ≥ `least`."""
    return _number(value, name, owner, f"a number ≥ {least:g}", least, strict=False)


def probability(value: object, name: str, owner: str) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    rule = "a number strictly between 0 and 1"
    p = _number(value, name, owner, rule, 0.0, strict=True)
    if p >= 1.0:
        raise invalid(name, owner, rule, value)
    return p


def count(value: object, name: str, owner: str, *, at_least: int = 1) -> int:
    """Return `value` as an int ≥ `at_least`; booleans and 2.5 are refused."""
    rule = f"a whole number ≥ {at_least}"
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < at_least:
        raise invalid(name, owner, rule, value)
    return int(value)


def finite_array(
    value: ArrayLike, name: str, owner: str, *, ndim: int | tuple[int, ...]
) -> NDArray[np.float64]:
    """Return `value` as a contiguous float64 array of finite numbers with `ndim` dimensions."""
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    rule = " or ".join(f"{k}-dimensional" for k in allowed) + " and made of finite numbers"
    try:
        array = (
            np.ascontiguousarray(value, dtype=np.float64)
            if np.ndim(value)
            else np.asarray(value, dtype=np.float64)
        )
    except (TypeError, ValueError):
        raise invalid(name, owner, rule, value) from None
    if array.ndim not in allowed or not np.isfinite(array).all():
        raise invalid(name, owner, rule, value)
    return array


def _number(
    value: object, name: str, owner: str, rule: str, floor: float, *, strict: bool
) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise invalid(name, owner, rule, value)
    try:
        x = float(value)
    except OverflowError:
        x = math.inf
    if not math.isfinite(x) or x < floor or (strict and x == floor):
        raise invalid(name, owner, rule, value)
    return x
