"""The ordered sum over blocks of rows: one answer, bit for bit, wherever the blocks are."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

B = TypeVar("B")
S = TypeVar("S")

BLOCK = 65_536
"""Rows of a block: large enough for numpy to be busy, small enough to stay in cache."""


def add_up(statistic: Callable[[B], S], blocks: Iterable[B]) -> S:
    """Return statistic(block₁) + statistic(block₂) + …, in this order."""
    return reduce(add, map(statistic, blocks))
