"""A rule as a formula of the columns of a table: what other languages can be given of a policy.

Each policy with a formula says it in `Policy.formulas`; `exporting.py` writes it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from titrant._types import Array


@dataclass(frozen=True, slots=True)
class Number:
    """A number."""

    value: float


@dataclass(frozen=True, slots=True)
class Column:
    """The value of a column of the table."""

    name: str


@dataclass(frozen=True, slots=True)
class DatePart:
    """The year, month, day, weekday (Monday is 1) or hour of a date, or its days since 1970."""

    column: Column
    part: str


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of its parts."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """The product of its parts."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A formula divided by a number."""

    of: Formula
    by: float


@dataclass(frozen=True, slots=True)
class Exponential:
    """e to the power of a formula."""

    of: Formula


@dataclass(frozen=True, slots=True)
class Floor:
    """The largest whole number that a formula is not below."""

    of: Formula


@dataclass(frozen=True, slots=True)
class Within:
    """A formula held within two numbers, either of which may be infinite."""

    of: Formula
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Stairs:
    """A number that depends on how many of some rising starts a formula has reached.

    levels[0] below starts[0], levels[1] from there on, and so forth: one level more than starts.
    """

    of: Formula
    starts: tuple[float, ...]
    levels: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest of its parts."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smallest of its parts."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class AtMost:
    """Whether a formula is at most a number."""

    of: Formula
    limit: float


@dataclass(frozen=True, slots=True)
class Reads:
    """Whether a column holds this text, or one of those that say the same."""

    column: Column
    text: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoNumber:
    """Whether a column of numbers has none that counts: it is missing, not a number or infinite."""

    column: Column


@dataclass(frozen=True, slots=True)
class IsMissing:
    """Whether a column has no value; of texts, whether it is blank or one of some marks."""

    column: Column
    marks: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Above:
    """Whether one formula is above another."""

    of: Formula
    other: Formula


@dataclass(frozen=True, slots=True)
class Choice:
    """One formula where a test holds, another where it does not."""

    test: Test
    then: Formula
    otherwise: Formula


@dataclass(frozen=True, slots=True)
class Unless:
    """A formula of which the row has no dose where a test holds, however it is used further."""

    of: Formula
    test: Test


Test = AtMost | Above | Reads | NoNumber | IsMissing
Formula = (
    Number
    | Column
    | DatePart
    | Sum
    | Product
    | Ratio
    | Exponential
    | Floor
    | Within
    | Stairs
    | Largest
    | Smallest
    | Choice
    | Unless
)


def linear(intercept: float, slopes: Array, parts: tuple[Formula, ...]) -> Formula:
    """Return intercept + Σ slope·part, without the parts whose slope is 0."""
    terms = [
        Product((Number(float(slope)), part))
        for slope, part in zip(slopes, parts, strict=True)
        if slope
    ]
    return Sum((*terms, Number(float(intercept)))) if terms else Number(float(intercept))


def each_dose(value: float | Array, doses: int) -> Iterator[float]:
    """Return one number for each of d doses from a number or a vector (d,)."""
    return iter(np.broadcast_to(np.atleast_1d(value), (doses,)).tolist())


def as_lists(part: Any) -> Any:  # noqa: ANN401  (a formula, a test, or what they are made of)
    """Return a formula as nested lists, each with the name of its kind first: what JSON knows.

    An infinite limit is None, a number itself.

    >>> as_lists(Within(Product((Number(2.0), Column("age"))), 0.0, np.inf))
    ['Within', ['Product', [2.0, ['Column', 'age']]], 0.0, None]
    """
    if isinstance(part, Number):
        return part.value
    if isinstance(part, tuple):
        return [as_lists(one) for one in part]
    if isinstance(part, float):
        return part if np.isfinite(part) else None
    if not is_dataclass(part):
        return part
    return [type(part).__name__, *(as_lists(getattr(part, one.name)) for one in fields(part))]
