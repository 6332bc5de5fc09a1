"""Numbers of rows and groups that no order, file or block changes, and what is drawn by them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.data.validate import first_rows, of_rows
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import ArrayLike, NDArray

    Keys = NDArray[np.int64]

_POSITIVE = 2**63 - 1

# Random numbers as a pure function of a row's number, however a log is cut into blocks.

GOLDEN = 0x9E3779B97F4A7C15
"""The odd number nearest 2⁶⁴/φ, the increment of splitmix64."""


def splitmix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the first output of the splitmix64 generator at state x (Steele, Lea & Flood 2014)."""
    z = x + np.uint64(GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


# Keys of groups: who or what a row belongs to.


def group_keys(ids: ArrayLike, label: str = "groups") -> Keys:
    """Return a key (n,) for each id (n,): equal ids have equal keys, wherever they are read.

    An id is a number or a text; 12, 12.0 and "12" are the same one. A key is 63 bits of a hash of
    the text, so two different ids of a million share one with a chance of 10⁻⁷.
    """
    # As they are: numpy would make texts of numbers that stand beside texts.
    array: Any = np.array(ids, dtype=object) if isinstance(ids, list | tuple) else np.asarray(ids)
    if array.ndim == 2 and array.shape[1] == 1:  # noqa: PLR2004
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(
            f"The {label} must be one id a row, shape (n,); got shape {array.shape}. Join several "
            "columns into one id."
        )
    if np.ma.isMaskedArray(ids):
        array = np.where(np.ma.getmaskarray(ids), None, array.astype(object))
    if array.dtype.kind in "biuUSM":
        values, place = np.unique(array, return_inverse=True)
        return _hashes(values.tolist(), label)[place]
    if array.dtype.kind == "f":
        _refuse_missing(np.isnan(array), label)
        values, place = np.unique(array, return_inverse=True)
        return _hashes(values.tolist(), label)[place]
    items = array.tolist()
    _refuse_missing(np.array([_is_missing(item) for item in items], dtype=bool), label)
    known = {item: k for k, item in enumerate(dict.fromkeys(items))}
    place = np.fromiter((known[item] for item in items), dtype=np.intp, count=len(items))
    return _hashes(known, label)[place]


def are_decimals(ids: NDArray[Any]) -> bool:
    """Return whether ids (n,) are numbers of which some are not whole, as amounts are."""
    numbers = np.array(ids.tolist()) if ids.dtype.kind == "O" else ids
    return numbers.dtype.kind == "f" and bool(np.any(numbers != np.round(numbers)))


FEWEST_IDS = 20
"""Values without which a column is no id of many."""
ROWS_OF_ID = (1.5, 100.0)
"""Rows of an id, on average: below, hardly any repeats; above, it is a level."""
CALLED_ID = re.compile(
    r"(^|[_.\W])(id|ids|pid|uid|key|patient|subject|person|people|customer|client|user|account|"
    r"household|family|member|participant|respondent|device)([_.\W]|$)|id$",
    re.IGNORECASE,
)


MOST_ALONE = 0.05
"""Share of rows without an id up to which a column is one all the same: each stands for itself."""
MOST_WHOLE = 2.0**53
"""From here on every float is a whole number, and two ids may be one."""
_ALONE = -(2**62)
"""Keys below are those of rows without an id."""


def repeating(columns: Mapping[str, NDArray[Any]]) -> dict[str, Keys]:
    """Return the keys (n,) of columns (n,) that may be ids of those who have several rows.

    These are texts and whole numbers with many values, each of which comes again. Whole numbers are
    their own keys, so that these have the same order.
    """
    found = {}
    least, most = ROWS_OF_ID
    for name, keys in keys_of(columns).items():
        values = len(np.unique(keys))
        few = np.mean(are_alone(keys)) <= MOST_ALONE
        if few and values >= FEWEST_IDS and least <= len(keys) / values <= most:
            found[name] = keys
    return found


def are_alone(keys: Keys) -> NDArray[np.bool_]:
    """Return in which rows (n,) an id is missing, so that the key is the row's own."""
    return np.asarray(keys < _ALONE)


def keys_of(columns: Mapping[str, NDArray[Any]], first_row: int = 0) -> dict[str, Keys]:
    """Return the keys (n,) of those columns (n,) that hold texts or whole numbers.

    Rows that lack one, numbered from ``first_row`` on, have keys that no other row has.
    """
    found = {}
    for name, column in columns.items():
        if column.ndim != 1 or column.dtype.kind not in "iufUSO":
            continue
        gaps = _gaps_of(column)
        known = column[~gaps]
        if not len(column) or not _may_be_ids(known):
            continue
        keys = _ALONE - 1 - first_row - np.arange(len(column), dtype=np.int64)
        try:
            keys[~gaps] = _whole_numbers(known) if known.dtype.kind in "iuf" else group_keys(known)
        except (DataError, TypeError):  # what is no id, or cannot be compared
            continue
        found[name] = keys
    return found


def _gaps_of(column: NDArray[Any]) -> NDArray[np.bool_]:
    if column.dtype.kind == "f":
        return np.asarray(np.isnan(column))
    if column.dtype.kind == "O":
        return np.array([_is_missing(v) or _is_empty(v) for v in column.tolist()], dtype=bool)
    if column.dtype.kind in "US":
        return np.asarray(column == column.dtype.type())
    return np.zeros(len(column), dtype=bool)


def _is_empty(item: object) -> bool:
    return isinstance(item, str | bytes) and not item


def _may_be_ids(column: NDArray[Any]) -> bool:
    if column.dtype.kind == "f":
        return bool(np.all((np.abs(column) < MOST_WHOLE) & (column == np.round(column))))
    return True


def _whole_numbers(column: NDArray[Any]) -> Keys:
    """Return whole numbers (n,) as they are, but for those so large that rows without have them."""
    keys = column.astype(np.int64)
    large = keys < _ALONE
    keys[large] &= _POSITIVE
    return keys


@dataclass(frozen=True, slots=True)
class WholeKeys:
    """Keys of rows, of all or of so few that they fit: of a key that is there, all rows are.

    A key is there if its hash is below 2^(64 − halvings). Parts add up to the same in any cut,
    since a whole with so many halvings has no part with more.
    """

    keys: Keys
    """(m,)"""
    numbers: Keys
    """The numbers of the rows in the whole log (m,)."""
    most: int
    """Rows that fit."""
    halvings: int = 0

    @property
    def values(self) -> int:
        """About how many keys there are in all rows; exactly, where all are there."""
        return len(np.unique(self.keys)) << self.halvings

    def __add__(self, other: WholeKeys) -> WholeKeys:
        """Return the keys of both sets of rows, as many as fit."""
        halvings = max(self.halvings, other.halvings)
        both = (part.halved(halvings) for part in (self, other))
        keys, numbers = zip(*((part.keys, part.numbers) for part in both), strict=True)
        whole = np.concatenate(keys), np.concatenate(numbers)
        return WholeKeys(*whole, self.most, halvings).fitting

    @property
    def fitting(self) -> WholeKeys:
        """As many as fit."""
        found = self
        while len(found.keys) > self.most and found.halvings < _BITS:
            found = found.halved(found.halvings + 1)
        return found

    def halved(self, halvings: int) -> WholeKeys:
        """Return those that are left after so many halvings."""
        if halvings == self.halvings:
            return self
        there = splitmix64(self.keys.view(np.uint64)) >> np.uint64(64 - halvings) == 0
        return WholeKeys(self.keys[there], self.numbers[there], self.most, halvings)


_BITS = 63


def _hashes(values: Iterable[object], label: str) -> Keys:
    each = [int.from_bytes(blake2b(_text(v, label), digest_size=8).digest()) for v in values]
    return np.array([key & _POSITIVE for key in each], dtype=np.int64)


def _text(value: object, label: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, (bool, np.bool_)):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value)
    if not text.strip():
        raise DataError(f"The {label} must be an id in every row; got an empty text. Name it.")
    return text.encode()


def _is_missing(item: object) -> bool:
    if item is None or repr(item) in ("<NA>", "NaT"):
        return True
    return isinstance(item, float) and item != item  # noqa: PLR0124  (NaN)


def _refuse_missing(missing: NDArray[np.bool_], label: str) -> None:
    if missing.any():
        raise DataError(
            f"The {label} must be an id in every row; got none in {of_rows(missing)} "
            f"({first_rows(missing)}). Give each of these rows the id of its own, or drop them."
        )
