"""Which texts the columns hold from which 0/1 indicators are made, as far as rows have been read.

In a log that is read part by part the user names the indicators. A name that is misspelled, or a
file that spells a text otherwise, gives 0 in these rows, which no number shows: so the texts that
have no indicator are kept, and all but one, the reference, are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from titrant.data.phrases import closest, listed
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

MOST_OTHERS = 50
"""Texts without an indicator that are kept of a column; that there are more is kept, too."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of one column in some rows; the texts of several sets of rows add up."""

    column: str
    named: tuple[str, ...]
    """Those that an indicator was asked for."""
    found: frozenset[str]
    """Those of them that a row has."""
    others: tuple[str, ...]
    """The texts without an indicator in alphabetical order, one more than `MOST_OTHERS` at most."""

    @classmethod
    def of(cls, column: str, named: Iterable[str], present: Iterable[str]) -> Texts:
        """Return what the texts ``present`` in some rows say of a column."""
        asked, there = tuple(named), frozenset(present)
        return cls(column, asked, there.intersection(asked), _first(there.difference(asked)))

    def __add__(self, other: Texts) -> Texts:
        """Return the texts of both sets of rows."""
        named = tuple(dict.fromkeys(self.named + other.named))
        others = _first({*self.others, *other.others}.difference(named))
        return Texts(self.column, named, self.found | other.found, others)

    @property
    def levels(self) -> tuple[str, ...]:
        """All texts of the column, the one without an indicator first."""
        return (*self.others, *(text for text in self.named if text in self.found))


def added_texts(texts: Iterable[Texts]) -> tuple[Texts, ...]:
    """Return the texts of each column over all rows."""
    by_column = groupby(sorted(texts, key=attrgetter("column")), key=attrgetter("column"))
    return tuple(sum(rest, first) for _, (first, *rest) in by_column)


def check_texts(texts: Iterable[Texts], contexts: Collection[str]) -> None:
    """Refuse indicators that no row has, and columns with several texts but no indicator of them.

    A column that is itself among the ``contexts`` loses nothing by such texts.
    """
    for column in texts:
        for text in column.named:
            if text not in column.found:
                name, close = column.column, closest(text, column.levels)
                hint = f"; did you mean `{name}={close}`?" if close else "."
                raise DataError(
                    f"The context `{name}={text}` would be 0 in all rows: none has the text "
                    f"`{text}` in the column `{name}`{hint} Its texts are {listed(column.levels)}."
                )
        if len(column.others) > 1 and column.column not in contexts:
            indicators = listed(f"{column.column}={text}" for text in column.named)
            raise DataError(
                f"The column `{column.column}` must have one text beside those of the indicators "
                f"{indicators}; got {listed(column.others)}, which would all count as one "
                "category. Spell each category in one way, and name an indicator for all but one "
                "of them."
            )


def _first(texts: Iterable[str]) -> tuple[str, ...]:
    # The first ones of the alphabet, so that the order of adding up does not matter.
    return tuple(sorted(texts)[: MOST_OTHERS + 1])
