"""What was done to a table on its way to a log: to its rows, and to its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from titrant.data.phrases import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from titrant.data.gaps import Difference
    from titrant.data.recipe import Recipe

ENCODED, FILLED, LEFT_OUT, WEIGHTED = "encoded", "filled", "left out", "weighted"
"""What may have been done to a column."""


@dataclass(frozen=True, slots=True)
class Step:
    """Rows that were left out, and why."""

    reason: str
    rows: int


@dataclass(frozen=True, slots=True)
class ColumnNote:
    """What was done to one column, in a word and in a sentence."""

    column: str
    done: str
    text: str


@dataclass(frozen=True, slots=True)
class Flow:
    """From the rows of a table to those of a log, with a reason for each step.

    >>> print(Flow(1629, 1566, (Step("the outcome column `loss` is missing", 63),)))
    1,629 rows → 1,566 used: 63 left out because the outcome column `loss` is missing.
    """

    rows_in: int
    rows_used: int
    steps: tuple[Step, ...] = ()
    notes: tuple[ColumnNote, ...] = ()
    """On each column that was not taken as it is."""
    recipe: Recipe | None = None
    """How the contexts are made of the columns of a table; None if they are its columns."""
    differing: tuple[Difference, ...] = ()
    """Columns by which the rows left out differ from those used."""

    @property
    def codes(self) -> tuple[str, ...]:
        """The contexts that are codes of texts, not amounts."""
        return () if self.recipe is None else self.recipe.codes

    @property
    def plain(self) -> bool:
        """Whether the table was taken as it is."""
        return not self.steps and not self.notes

    @property
    def rows(self) -> str:
        """The rows in a sentence."""
        if not self.steps:
            return f"{counted(self.rows_in, 'row')}, all used."
        reasons = "; ".join(f"{s.rows:,} left out because {s.reason}" for s in self.steps)
        return f"{counted(self.rows_in, 'row')} → {self.rows_used:,} used: {reasons}."

    def __iter__(self) -> Iterator[str]:
        """Return all sentences, that of the rows first."""
        yield self.rows
        yield from (note.text for note in self.notes)

    def __str__(self) -> str:
        return "\n".join(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "rows_in": self.rows_in,
            "rows_used": self.rows_used,
            "steps": [{"reason": step.reason, "rows": step.rows} for step in self.steps],
            "columns": [
                {"column": note.column, "done": note.done, "note": note.text} for note in self.notes
            ],
        }
