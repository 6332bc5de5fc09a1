"""Parts of the sentences that refuse a table, and the sentences of several places.

They have one form: what is wrong, how often, where, what to do. Rows are counted from 0 in the
order of the table, and each sentence says so. A *label* names a column as the user knows it:
``treatment column `dose` `` for a table, ``treatment`` for an array.
"""

from __future__ import annotations

import difflib
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

_SHOWN_ROWS = 5
_SHOWN_NAMES = 12
_LONGEST = 40

TEXT = "Convert it to numbers, or one-hot encode it if its values are categories."
NUMBERS_AS_TEXT = "Its values look like numbers: convert the column to a numeric type."
CATEGORIES = "One-hot encode it, or convert it to a numeric type if its values are amounts."
MOMENTS = "Replace it by a number, such as days since a fixed date."
OTHER = "Replace it by a column of plain numbers."


def listed(names: Iterable[object]) -> str:
    """Return the names in backticks, at most a dozen of them."""
    every = [f"`{name}`" for name in names]
    rest = len(every) - _SHOWN_NAMES
    return ", ".join(every[:_SHOWN_NAMES]) + (f" and {rest:,} more" if rest > 0 else "")


def first_rows(bad: NDArray[np.bool_]) -> str:
    """Return where the mask `bad` (n,) is first true, as "first rows, counting from 0: 4, 17"."""
    rows = np.flatnonzero(bad)
    if rows.size == 1:
        return f"row {rows[0]}, counting from 0"
    return "first rows, counting from 0: " + ", ".join(map(str, rows[:_SHOWN_ROWS]))


def of_rows(bad: NDArray[np.bool_]) -> str:
    """Return how many rows the mask `bad` (n,) marks, as "3 of 12,000 rows"."""
    return f"{np.count_nonzero(bad):,} of {bad.size:,} rows"


def counted(n: int, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def closest(name: str, names: Sequence[str]) -> str | None:
    """Return the entry of `names` nearest to `name`, ignoring case and outer spaces."""
    folded = {other.strip().casefold(): other for other in reversed(names)}
    close = difflib.get_close_matches(name.strip().casefold(), list(folded), n=1)
    return folded[close[0]] if close else None


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """Return the end of a sentence about a name that is not there, with the closest that is.

    >>> did_you_mean("doze", ["dose"]), did_you_mean("doze", ["age"])
    ('; did you mean `dose`?', '.')
    """
    close = closest(name, names)
    return f"; did you mean `{close}`?" if close else "."


def shortened(value: object) -> str:
    """Return how a value is written, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def first_line(reason: object) -> str:
    """Return what another library said, without its details."""
    lines = str(reason).strip().splitlines() or ["no reason given"]
    return lines[0].rstrip(".")


def looks_numeric(text: str) -> bool:
    """Return whether `text` reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def not_numeric(label: str, dtype: object, value: object, row: int, remedy: str) -> DataError:
    """Refuse a column that does not hold numbers."""
    return DataError(
        f"The {label} must be numeric; got values of type {dtype}, first {shortened(value)} "
        f"in row {row}, counting from 0. {remedy}"
    )


def unreadable(path: str, kind: str, reason: object) -> DataError:
    """Refuse a file that is not what its name says."""
    return DataError(
        f"`{path}` cannot be read as {kind}: {first_line(reason)}. Check that it is complete and "
        f"in this format."
    )


@contextmanager
def reading_as(kind: str, path: str) -> Iterator[None]:
    """Name the file in whatever goes wrong while it is read by Arrow."""
    import pyarrow as pa  # noqa: PLC0415  (arrays do not need it)

    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, OSError) as reason:
        raise unreadable(path, kind, reason) from None
