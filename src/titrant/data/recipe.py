"""How contexts are made of the columns of a table, as far as their names do not say it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

IS_MISSING = " is missing"
"""After the name of a column, the 0/1 context that says where it was."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the names of contexts do not say of how they are made."""

    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The texts of each column that was encoded, the reference first."""
    fills: Mapping[str, float] = field(default_factory=dict)
    """The number that stands for a missing one, by context."""
    codes: tuple[str, ...] = ()
    """The encoded columns that are one context, the place of the text among the levels."""
