"""Who is in which part of a log: by the levels of a column, cut points, quantiles, or labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from titrant import _check
from titrant.data import LoggedData
from titrant.data.features import column_of
from titrant.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.data.columns import Recipe
    from titrant.estimators import Rows
    from titrant.evaluation.survey import Survey

    Codes = NDArray[np.intp]
    By = str | Mapping[str, int | ArrayLike | None] | ArrayLike

FEW_VALUES = 6
"""A context with so few values is taken value by value."""
MOST_LEVELS = 12
"""Levels of a column that is named without cut points; more would be parts of a few rows."""
MOST_PARTS = 50
"""Parts of one column: simultaneous intervals of more say little about any."""


class Cells(Protocol):
    """Parts of a log, 0 … k − 1; each row is in one of them."""

    @property
    def column(self) -> str:
        """What the parts are of."""

    def __len__(self) -> int:
        """Return the number of parts k."""

    def codes(self, rows: Rows) -> Codes:
        """Return the part of each of some rows (n,)."""

    def values(self, rows: Rows) -> Array:
        """Return the numbers of the column (n,), or of the parts where it has none."""

    def label(self, k: int, low: float, high: float) -> str:
        """Return what part k is called, whose values run from ``low`` to ``high``."""


@dataclass(frozen=True, slots=True)
class Inside:
    """Part number ``k`` of some cells."""

    cells: Cells
    k: int

    def inside(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which of some rows belong to it (n,)."""
        return np.asarray(self.cells.codes(rows) == self.k)


@dataclass(frozen=True, slots=True)
class Cut:
    """Parts of the context number ``place``, each having its upper end."""

    column: str
    place: int
    cuts: tuple[float, ...]
    levels: bool
    """Whether each part is a single value."""

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.cuts) + 1

    def codes(self, rows: Rows) -> Codes:
        """Return the part of each row (n,)."""
        return np.searchsorted(self.cuts, self.values(rows), side="left")

    def values(self, rows: Rows) -> Array:
        """Return the context itself (n,)."""
        return np.asarray(rows.need("x", "subgroups")[:, self.place])

    def label(self, k: int, low: float, high: float) -> str:
        """Return ``age = 40``, ``age ≤ 40``, ``40 < age ≤ 60`` or ``age > 60``."""
        if self.levels and low == high:
            return f"{self.column} = {low:.4g}"
        if k == len(self.cuts):
            return f"{self.column} > {self.cuts[-1]:.4g}"
        above = "" if k == 0 else f"{self.cuts[k - 1]:.4g} < "
        return f"{above}{self.column} ≤ {self.cuts[k]:.4g}"


@dataclass(frozen=True, slots=True)
class TextLevels:
    """The texts of a column, by its 0/1 contexts; rows that have none of them come first."""

    column: str
    places: tuple[int, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.names)

    def codes(self, rows: Rows) -> Codes:
        """Return the part of each row (n,)."""
        marked = rows.need("x", "subgroups")[:, self.places] > 0.0
        return np.where(marked.any(axis=1), 1 + marked.argmax(axis=1), 0)

    def values(self, rows: Rows) -> Array:
        """Return the parts' numbers (n,)."""
        return self.codes(rows).astype(np.float64)

    def label(self, k: int, low: float, high: float) -> str:  # noqa: ARG002  (as of numbers)
        """Return ``sex=male``."""
        return self.names[k]


@dataclass(frozen=True, slots=True, eq=False)
class Labeled:
    """Parts by a label of each row of a log in memory."""

    column: str
    names: tuple[str, ...]
    first_row: int
    place: Codes
    """The part of each row of the log (n,)."""

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.names)

    def codes(self, rows: Rows) -> Codes:
        """Return the part of each row (n,), found by its number."""
        n = len(rows.y)
        number = rows.first_row + np.arange(n) if rows.numbers is None else rows.numbers
        return np.asarray(self.place[number - self.first_row])

    def values(self, rows: Rows) -> Array:
        """Return the parts' numbers (n,)."""
        return self.codes(rows).astype(np.float64)

    def label(self, k: int, low: float, high: float) -> str:  # noqa: ARG002
        """Return the label."""
        return self.names[k]


def cells_of(by: By, log: object, survey: Survey) -> list[Cells]:
    """Return the parts that ``by`` asks for, those of each column on their own."""
    if isinstance(by, str):
        return [_by_levels(by, survey)]
    if isinstance(by, Mapping):
        if not by:
            raise InvalidArgument("`by` names no column; give one, such as by={'age': 3}.")
        return [_of_column(name, how, survey) for name, how in by.items()]
    return [_labeled(by, log)]


def _of_column(name: str, how: Any, survey: Survey) -> Cells:  # noqa: ANN401  (as typed by users)
    if how is None:
        return _by_levels(name, survey)
    if _texts_of(name, survey):
        raise InvalidArgument(
            f"The column `{name}` holds texts, which have no quantiles or cut points; got "
            f"{how!r}. Give by={name!r} for a part a text."
        )
    x = _column(name, survey)
    if isinstance(how, int | np.integer) and not isinstance(how, bool):
        parts = _check.count(how, name, "by", at_least=2)
        _check_few(name, parts)
        return Cut(name, survey.names.index(name), *_quantiles(x, parts, name))
    cuts = _check.finite_array(how, name, "by", ndim=1)
    if not len(cuts) or np.any(np.diff(cuts) <= 0.0):
        raise _check.invalid(name, "by", "a number of quantiles or increasing cut points", how)
    _check_few(name, len(cuts) + 1)
    return Cut(name, survey.names.index(name), tuple(cuts.tolist()), levels=False)


def _quantiles(x: Array, parts: int, name: str) -> tuple[tuple[float, ...], bool]:
    """Return where a column is cut into parts of about as many rows, and whether at each value."""
    cuts = cuts_of(x, parts, few=parts)
    if not len(cuts):
        raise InvalidArgument(f"Context `{name}` has the one value {x[0]:.4g}; it has no parts.")
    return tuple(cuts.tolist()), len(np.unique(x)) == len(cuts) + 1


def cuts_of(x: Array, parts: int, few: int = FEW_VALUES) -> Array:
    """Return where a context x (n,) is cut (k − 1,), each part having its upper end.

    Between all values if it has ``few`` of them or less, otherwise into ``parts`` of about equally
    many rows; fewer where values are tied.
    """
    values = np.unique(x)
    if len(values) <= few:
        return values[:-1]
    cuts = np.unique(np.quantile(x, np.arange(1, parts) / parts))
    filled = np.unique(np.searchsorted(cuts, x, side="left"))
    return np.asarray(cuts[filled[:-1]])


def _by_levels(name: str, survey: Survey) -> Cells:
    """Return the parts of a column by its values: of texts, or of few numbers."""
    marked = _texts_of(name, survey)
    if marked:
        return TextLevels(name, tuple(marked), _level_names(name, marked, survey))
    x = _column(name, survey)
    values = np.unique(x)
    if len(values) > MOST_LEVELS:
        raise InvalidArgument(
            f"Context `{name}` has {len(values):,} values (more than {MOST_LEVELS}). Give the "
            f"number of quantiles or cut points: by={{{name!r}: 3}}."
        )
    if len(values) == 1:
        raise InvalidArgument(f"Context `{name}` has the one value {x[0]:.4g}; it has no parts.")
    return Cut(name, survey.names.index(name), tuple(values[:-1].tolist()), levels=True)


def _texts_of(name: str, survey: Survey) -> list[int]:
    """Return the places of the contexts that tell the texts of a column, none if it has numbers."""
    if name in survey.names:
        return []
    return [j for j, known in enumerate(survey.names) if known.startswith(f"{name}=")]


def _level_names(name: str, marked: Sequence[int], survey: Survey) -> tuple[str, ...]:
    """Return what the levels of a text are called, the reference first."""
    shown = tuple(survey.names[j] for j in marked)
    recipe: Recipe = survey.recipe
    rest = [level for level in recipe.levels.get(name, ()) if f"{name}={level}" not in shown]
    return (f"{name}={rest[0]}" if len(rest) == 1 else f"other {name}", *shown)


def _labeled(by: Any, log: object) -> Labeled:  # noqa: ANN401  (any array of labels)
    """Return parts by labels, one a row."""
    if not isinstance(log, LoggedData):
        raise InvalidArgument(
            "Labels of rows are for a log in memory; files are cut by a context column: give its "
            "name, or {name: cut points}."
        )
    columns = {column_of(name) for name in log.names}
    if isinstance(by, list | tuple) and len(by) < len(log) and columns.issuperset(map(str, by)):
        parts = ", ".join(f"{name!r}: None" for name in by)
        raise InvalidArgument(
            f"`by` must name one context or hold a label for each of {len(log):,} rows; got a list "
            f"of {len(by)} names. For the parts of each column give by={{{parts}}}."
        )
    labels = np.asarray(by)
    if labels.shape != (len(log),):
        raise InvalidArgument(
            f"`by` must name a context or hold a label for each of {len(log):,} rows; got shape "
            f"{labels.shape}."
        )
    named = labels.astype(object) if labels.dtype.kind in "OSU" else labels
    missing = np.array([value is None or value != value for value in named.tolist()])  # noqa: PLR0124
    if missing.any():
        raise InvalidArgument(
            f"`by` has no label in {int(missing.sum()):,} of {len(log):,} rows. Give them one of "
            "their own, such as 'unknown'."
        )
    names, place = np.unique(np.array([str(v) for v in named.tolist()]), return_inverse=True)
    _check_few("labels", len(names))
    return Labeled("labels", tuple(names.tolist()), log.first_row, place)


def _column(name: str, survey: Survey) -> Array:
    """Return the values of a context, of the rows looked at."""
    if name not in survey.names:
        known = ", ".join(survey.names) or "none"
        raise InvalidArgument(
            f"There is no context `{name}` to make parts by; the log has {known}. Other columns go "
            "as an array of labels."
        )
    return np.asarray(survey.looked_at.context[:, survey.names.index(name)])


def _check_few(name: str, parts: int) -> None:
    if parts > MOST_PARTS:
        raise InvalidArgument(
            f"`{name}` makes {parts:,} parts (more than {MOST_PARTS}). Ask about fewer at a time."
        )
