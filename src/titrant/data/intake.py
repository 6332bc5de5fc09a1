"""A table on its way to a log: gaps settled, numbers filled, texts encoded, dates taken apart.

What is decided here is kept as the `Recipe` by which `features` makes the contexts, of this table
and of any later one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from titrant.data import frames
from titrant.data.columns import (
    ENCODED,
    FILLED,
    IS_MISSING,
    LEFT_OUT,
    READ,
    ColumnNote,
    Dated,
    Flow,
    Recipe,
    check_present,
    check_roles,
    context_roles,
    dated_roles,
    duplicate_names,
)
from titrant.data.features import (
    MISSING,
    as_text,
    clock_of,
    clocks_of,
    date_part,
    date_parts,
    flags,
    gaps,
    is_date,
    is_day,
    is_number,
    is_text,
    numbers,
    read_dates,
    texts,
    with_features,
)
from titrant.data.gaps import DROP, counted_anew, differences
from titrant.data.keys import ROWS_OF_ID, are_decimals, group_keys, repeating
from titrant.data.validate import WITH_SIGNS, Intake, first_rows, listed, of_rows
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data.columns import Columns, Roles
    from titrant.data.gaps import MissingRule

MOST_COMPARED = 20
"""Levels of a text, the most frequent ones, by which rows left out are compared with the others."""
MOST_LEVELS = 50
"""Levels of a text column up to which each has an indicator; of more, it is one column of codes.
Of 49 levels that confound, on 2,000 rows, indicators leave nothing that knowing the effects would
not leave, and codes a third (two standard errors); of 200 they take thirty times the time."""
FEW_LEVELS = 20
"""Levels up to which texts that a user names are categories, although they look like a key."""
FEWEST_TEXTS = 8
"""Rows from which on texts that hardly ever repeat look like names."""
MOSTLY = 0.9
"""Share of numbers from which on a column of texts is one of numbers with some not written so."""
_NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
FEWEST_NUMBERED = 20
"""Rows from which on whole numbers one after another are no accident."""
ROWS_OF_CATEGORY, MOST_CATEGORIES = 15.0, 500
"""Rows of a value, on average, from which on models follow what is called an id, such as a store's;
and values up to which it is one of a list. Others are keys of those who have a few rows each."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A table whose contexts are numbers."""

    table: pa.Table
    names: tuple[str, ...]
    """The context columns."""
    recipe: Recipe
    """How they are made, for a later table."""
    notes: tuple[ColumnNote, ...]
    """What was encoded, filled and left out."""

    @property
    def filled(self) -> tuple[str, ...]:
        """The columns in which values are missing."""
        with_level = (name for name, levels in self.recipe.levels.items() if MISSING in levels)
        numbers = (note.column for note in self.notes if note.done == FILLED)
        return tuple(dict.fromkeys([*numbers, *with_level]))


def encode(table: pa.Table, context: Sequence[str] | None, taken: Collection[str]) -> Encoded:
    """Return the table with numbers in place of the texts, dates and gaps of its context.

    Without `context`, all columns but the `taken` ones are used that are fit.
    """
    others = [name for name in table.column_names if name not in taken]
    formats = _formats(table, others if context is None else context)
    plan = _Plan()
    for name, how in formats.items():
        place, dates = table.column_names.index(name), read_dates(table[name], name, how)
        plan.read(name, how, table[name], dates)
        table = table.set_column(place, name, dates)
    if context is None:
        chosen = others
        reasons = {name: _reason(table[name], name) for name in chosen}
        plan.categories = [name for name in chosen if _called_key(name) and not reasons[name]]
    else:
        chosen = list(context)
        check_present(context_roles(chosen), table.column_names)
        reasons = {name: _unusable(table[name], name) for name in chosen}
    for name, reason in reasons.items():
        if reason is not None:
            plan.leave_out(name, reason)
    for name in (name for name, reason in reasons.items() if reason is None):
        plan.add(table[name], name)
    made = [name for name in plan.names if name not in chosen]
    if clash := [name for name in made if name in table.column_names]:
        raise duplicate_names([*table.column_names, *clash])
    clocks = clocks_of(table, plan.names)
    recipe = Recipe(plan.levels, plan.fills, tuple(plan.codes), formats, clocks)
    encoded = with_features(table, plan.names, recipe)
    spent = {name for name in chosen if name not in plan.names}
    kept = [name for name in encoded.column_names if name not in spent]
    return Encoded(encoded.select(kept), tuple(plan.names), recipe, tuple(plan.notes))


@dataclass(slots=True)
class _Plan:
    """The contexts decided on so far."""

    categories: Sequence[str] = ()
    """Columns that are called as keys are and repeat their values as categories do."""
    names: list[str] = field(default_factory=list)
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fills: dict[str, float] = field(default_factory=dict)
    codes: list[str] = field(default_factory=list)
    notes: list[ColumnNote] = field(default_factory=list)
    indicated: dict[bytes, str] = field(default_factory=dict)
    """The gaps that have an indicator, each with the column that had them first."""

    def leave_out(self, name: str, reason: str) -> None:
        """Say why a column is no context."""
        text = f"Column `{name}` is left out of the context: {reason}."
        self.notes.append(ColumnNote(name, LEFT_OUT, text))

    def read(self, name: str, how: str, texts: pa.ChunkedArray, dates: pa.ChunkedArray) -> None:
        """Say how the dates of a column were read, by the first of them."""
        row = int(np.argmin(gaps(texts)))
        first = f"{str(texts[row])!r} is {dates[row]}"
        text = f"Column `{name}` holds dates written as text, which are read as {how}: {first}."
        self.notes.append(ColumnNote(name, ENCODED, text))

    def add(self, column: pa.ChunkedArray, name: str) -> None:
        """Take a column in."""
        if is_text(column.type) or (name in self.categories and _are_codes(column)):
            self._add_texts(column, name)
        elif is_date(column.type):
            self._add_dates(column, name)
        else:
            self.names.append(name)
            missing = gaps(column)
            if is_number(column.type) and missing.any():
                self.fills[name] = _median(column)
                self._indicate(name, missing, f"the median, {self.fills[name]:g},")

    def _indicate(self, name: str, missing: NDArray[np.bool_], fill: str) -> None:
        """Add the indicator of gaps, unless another column has the very same."""
        key = np.packbits(missing).tobytes()
        first = self.indicated.setdefault(key, name)
        how = f"`{name}{IS_MISSING}` says where"
        if first == name:
            self.names.append(f"{name}{IS_MISSING}")
        else:
            how = f"`{first}{IS_MISSING}` says where, these being the same rows"
        text = f"Column `{name}` is missing in {of_rows(missing)}: {fill} stands there; {how}."
        self.notes.append(ColumnNote(name, FILLED, text, float(missing.mean())))

    def _add_texts(self, column: pa.ChunkedArray, name: str) -> None:
        missing = gaps(column)
        levels = self.levels[name] = _levels(column, name)
        also = f"; missing in {of_rows(missing)}, the level `{MISSING}`" if missing.any() else ""
        kind = "text"
        if name in self.categories:
            each = len(column) / len(levels)
            kind = f"called as a key is, but a category, each value in {each:.0f} rows on average"
        if len(levels) > MOST_LEVELS:
            self.names.append(name)
            self.codes.append(name)
            how = (
                f"is {kind} with {len(levels):,} different values: a code from 0 to "
                f"{len(levels) - 1:,} in alphabetical order{also}. Default models adjust by the "
                "mean of each value, drawn to the others, and may leave some confounding by it; "
                "other models take it for an amount; a learned rule does not use it."
            )
        else:
            indicators = [f"{name}={level}" for level in levels[1:]]
            self.names += indicators
            made = listed(indicators) or "nothing"
            how = f"is {kind}: encoded 0/1 as {made} (all 0: `{levels[0]}`){also}."
        text = f"Column `{name}` {how}{_spelled_otherwise(levels)}"
        self.notes.append(ColumnNote(name, ENCODED, text, float(missing.mean())))

    def _add_dates(self, column: pa.ChunkedArray, name: str) -> None:
        parts = [f"{name}.{part}" for part, _ in _varying(column, name)]
        self.names += parts
        clock = clock_of(column.type)
        by = f", by the clock of {clock}" if clock else ""
        text = f"Column `{name}` is a date: {listed(parts)} stand for it{by}."
        self.notes.append(ColumnNote(name, ENCODED, text))
        missing = gaps(column)
        if missing.any():
            self.fills |= {
                f"{name}.{part}": _median(values) for part, values in _varying(column, name)
            }
            self._indicate(name, missing, "the median of each part")


def _varying(column: pa.ChunkedArray, name: str) -> list[tuple[str, pa.ChunkedArray]]:
    """Return the parts of dates that differ between rows."""
    each = {part: date_part(column, name, part) for part in date_parts(column.type)}
    found = {part: values for part, values in each.items() if pc.count_distinct(values).as_py() > 1}
    if not found.keys() & {"year", "month"}:
        found.pop("day", None)  # within one month the running time says it
    elif not found.keys() & {"month", "day"}:
        found.pop("days", None)  # and the year does, of one day in each
    return list(found.items())


def _median(column: pa.ChunkedArray) -> float:
    """Return the median of the numbers that are there; of whole numbers one of them."""
    every = numbers(pc.cast(column, pa.float64(), safe=False))
    there = every[~np.isnan(every)]
    whole = bool(np.all(there == np.round(there)))
    return float(np.quantile(there, 0.5, method="lower") if whole else np.median(there))


def _levels(column: pa.ChunkedArray, name: str) -> tuple[str, ...]:
    """Return the levels of a text column in alphabetical order, `MISSING` last."""
    found = set(pc.unique(texts(column, name, may_miss=True)).to_pylist())
    last = [MISSING] if MISSING in found else []
    return (*sorted(found.difference(last)), *last)


def _spelled_otherwise(levels: Sequence[str]) -> str:
    """Return in a sentence which texts are the same but for capitals and blanks, "" if none are."""
    same: dict[str, list[str]] = {}
    for level in levels:
        same.setdefault(" ".join(level.split()).casefold(), []).append(level)
    several = [each for each in same.values() if len(each) > 1]
    if not several:
        return ""
    more = f" (and {len(several) - 1:,} more such)" if len(several) > 1 else ""
    return (
        f" Its texts {listed(several[0])}{more} differ in capitals or blanks alone, and count as "
        "different ones: spell them alike if they mean the same."
    )


# Which columns are fit to be contexts.


def _reason(column: pa.ChunkedArray, name: str) -> str | None:
    """Return why a column is no context unless the user says so, or None."""
    if name.strip().casefold() == "propensity":
        return "it looks like the density of the logged dose; name it as the propensity to use it"
    countable = is_text(column.type) or is_number(column.type)
    return _key(column, name) if countable and _called_key(name) else _unfit(column, name)


def _key(column: pa.ChunkedArray, name: str) -> str | None:
    """Return why a column that is called as a key is no category, or None."""
    missing = gaps(column)
    count, rows = _distinct(column, missing), int(np.count_nonzero(~missing))
    if not count:
        return "it is empty"
    if count == 1 and rows == len(column):
        return "all its values are the same"
    if count <= MOST_CATEGORIES and rows >= ROWS_OF_CATEGORY * count:
        return None
    if rows < ROWS_OF_ID[0] * count:
        return "it looks like a key"
    return (
        f"it looks like a key, of {count:,} that have {rows / count:.1f} rows each on average; say "
        f"`groups={name!r}` (`--groups`) if rows of one belong together"
    )


def _called_key(name: str) -> bool:
    word = name.strip().casefold()
    return word == "id" or word.endswith(("_id", " id"))


def _are_codes(column: pa.ChunkedArray) -> bool:
    """Return whether numbers are whole, as those of a list are."""
    if pa.types.is_floating(column.type):
        there = numbers(pc.cast(column, pa.float64()))
        there = there[~np.isnan(there)]
        return bool(np.all(there == np.round(there)))
    return bool(pa.types.is_integer(column.type))


def _unfit(column: pa.ChunkedArray, name: str) -> str | None:
    """Return why a column that nobody named cannot be a context, or None."""
    kind = column.type
    if (reason := _unusable(column, name)) is not None:
        return reason
    if is_number(kind):
        return "it numbers the rows" if _numbers_rows(column) else None
    if is_date(kind):
        return None
    if not is_text(kind):
        return f"its values are of type {kind}"
    missing = gaps(column)
    count, rows = _distinct(column, missing), int(np.count_nonzero(~missing))
    if rows >= FEWEST_TEXTS and 2 * count > rows:
        return f"its texts take {count:,} different values in {rows:,} rows"
    return "all its values are the same" if count <= 1 and rows == len(column) else None


def _unusable(column: pa.ChunkedArray, name: str) -> str | None:
    """Return why a column cannot be a context even if it is named, or None."""
    missing = gaps(column)
    if missing.all():
        return "it is empty"
    if is_date(column.type) and not _varying(column, name):
        return "its dates differ in neither day nor hour"
    if not is_text(column.type):
        return None
    count, rows = _distinct(column, missing), int(np.count_nonzero(~missing))
    if count <= FEW_LEVELS:
        return None
    _check_no_numbers(column, name)
    # A code whose values hardly repeat would count as an amount.
    key = f"its texts take {count:,} different values in {rows:,} rows, as a key does"
    return key if 2 * count > rows else None


def _distinct(column: pa.ChunkedArray, missing: NDArray[np.bool_]) -> int:
    return len(pc.unique(as_text(column).filter(pa.array(~missing))))


def _check_no_numbers(column: pa.ChunkedArray, name: str) -> None:
    """Refuse texts that are numbers but for a few: as categories they would say little."""
    values, missing = as_text(column), gaps(column)
    present = ~missing
    like = _matches(values, _NUMBER)
    if like[present].mean() >= MOSTLY:
        other = present & ~like
        if not other.any():
            raise DataError(
                f"The column `{name}` holds numbers that are written as text. Convert it to a "
                "numeric type, or leave the column out of the context."
            )
        first = str(values[int(np.argmax(other))])
        raise DataError(
            f"The column `{name}` holds numbers, but not in {of_rows(other)} (first {first!r}; "
            f"{first_rows(other)}). Correct or empty these, drop the rows, or leave the column out "
            "of the context."
        )
    like = _matches(values, WITH_SIGNS)
    if like[present].mean() >= MOSTLY:
        row = int(np.argmax(like))
        raise DataError(
            f"The column `{name}` holds numbers with separators or signs, such as "
            f"{str(values[row])!r} in row {row}, counting from 0. Write them with digits and a "
            "decimal point alone; of a file, name the decimal mark (`--decimal`), in Python let "
            "`titrant.data.files.read_log` read it; or leave the column out of the context."
        )


_DATE = (
    r"^(?P<a>\d{4}|[0-3]?\d)(?P<s>[-/.])(?P<b>[0-3]?\d)(?P<z>[-/.])(?P<c>\d{4}|[0-3]?\d)"
    r"(?P<gap>[T ]?)(?P<time>\d{1,2}:\d{2})?(?P<seconds>:\d{2})?$"
)
"""Numbers of day, month and year with a sign between them, and a time."""
_YEAR, _MONTHS = 4, 12
"""Digits of a year, and how many months it has."""


def _formats(table: pa.Table, names: Sequence[str]) -> dict[str, str]:
    """Return the columns of texts that are dates, each with its format."""
    there = [name for name in names if name in table.column_names and is_text(table[name].type)]
    # Few dates are categories.
    many = [name for name in there if _distinct(table[name], gaps(table[name])) > FEW_LEVELS]
    found = {name: _format(table[name], name) for name in many}
    return {name: how for name, how in found.items() if how is not None}


def _format(column: pa.ChunkedArray, name: str) -> str | None:
    """Return the format of dates that are written as text, None of other texts.

    Which number is the day is seen from those above 12, or refused.
    """
    missing = gaps(column)
    if missing.all():
        return None
    known = pc.unique(pc.utf8_trim_whitespace(as_text(column).filter(pa.array(~missing))))
    parts = pc.extract_regex(known, _DATE)
    like = np.array(parts.is_valid().to_numpy(zero_copy_only=False))
    if like.mean() < MOSTLY:
        return None
    dated = parts.filter(pa.array(like))
    a, sign, b, other, c, gap, time, seconds = (
        pc.struct_field(dated, [k]).to_pylist() for k in range(8)
    )
    shapes = {
        (len(x) == _YEAR, len(z) == _YEAR, *rest, bool(t), bool(s))
        for x, z, *rest, t, s in zip(a, c, sign, other, gap, time, seconds, strict=True)
    }
    if not any(begins or ends or one == "/" for begins, ends, one, *_ in shapes):
        return None  # such as the version 1.10.2
    first, second = max(map(int, a)), max(map(int, b))
    if len(shapes) == 1 and like.all():
        (begins, ends, one, two, between, timed, exact) = shapes.pop()
        clock = f"{between}%H:%M{':%S' if exact else ''}" if timed else ""
        if begins != ends and one == two:
            if begins:
                return f"%Y{one}%m{one}%d{clock}"
            if second <= _MONTHS and (first > _MONTHS or one == "."):
                return f"%d{one}%m{one}%Y{clock}"
            if first <= _MONTHS < second:
                return f"%m{one}%d{one}%Y{clock}"
    raise DataError(
        f"The column `{name}` holds dates that are written as text, such as {str(known[0])!r}, and "
        "not all in one way that tells the day from the month. Write them as 2024-12-31 or "
        "2024-12-31 23:59, convert the column to a type of dates, or leave it out of the context."
    )


# ── Dates beside that of the treatment ────────────────────────────────────────────────────────────

_DAY = 86_400_000_000.0
"""Microseconds."""


def dated(table: pa.Table, treated_on: str | None, names: Sequence[str]) -> tuple[Dated, ...]:
    """Return how often the dates of columns are after that of the treatment, of those with dates.

    A date without a time of day is compared by days: what was measured on the day of the treatment
    is not after it.
    """
    if treated_on is None:
        return ()
    treated = _dates(table[treated_on], treated_on)
    if treated is None or gaps(treated).all():
        raise DataError(
            f"The column `{treated_on}`, said to hold the date of the treatment, must hold dates; "
            f"got {_first_of(table[treated_on])}. Name a column of dates, written as 2024-12-31 or "
            "2024-12-31 23:59."
        )
    each = {name: _dates(table[name], name) for name in names if name != treated_on}
    found = [_dated(name, dates, treated) for name, dates in each.items() if dates is not None]
    return tuple(one for one in found if one.rows)


def _dates(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray | None:
    """Return the dates of a column, also those written as text; None if it holds none."""
    if is_text(column.type):
        how = _format(column, name)
        return None if how is None else read_dates(column, name, how)
    return column if is_day(column.type) else None


def _first_of(column: pa.ChunkedArray) -> str:
    there = column.filter(pa.array(~gaps(column)))
    return f"values such as {there[0].as_py()!r}" if len(there) else "no value in any row"


def _dated(name: str, dates: pa.ChunkedArray, treated: pa.ChunkedArray) -> Dated:
    zones = {getattr(one.type, "tz", None) for one in (dates, treated)}
    # Clocks of two zones are compared by what both call the same moment.
    instants = len(zones) > 1 and None not in zones
    a, b = (_microseconds(one, instants=instants) for one in (dates, treated))
    both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[both], b[both]
    if not instants and any(not (one % _DAY).any() for one in (a, b)):
        a, b = a // _DAY, b // _DAY
    return Dated(name, int(np.count_nonzero(a > b)), len(a))


def _microseconds(dates: pa.ChunkedArray, *, instants: bool) -> Array:
    """Return dates (n,) since 1970 by their own clock, or as ``instants``; NaN where missing."""
    zone = getattr(dates.type, "tz", None)
    if zone is not None and not instants:
        dates, zone = pc.local_timestamp(dates), None
    moments = pc.cast(dates, pa.timestamp("us", zone), safe=False)
    return numbers(pc.cast(pc.cast(moments, pa.int64()), pa.float64()))


def _notes_on_dates(found: Sequence[Dated], treated_on: str | None) -> Iterator[ColumnNote]:
    """Yield what the comparison with the date of the treatment led to."""
    if treated_on is not None and not found:
        text = f"No column beside `{treated_on}` that may be a context holds dates to compare."
        yield ColumnNote(treated_on, READ, text)
    for one in found:
        name, later = one.column, f"is after `{treated_on}` in {one}"
        if one.after:
            text = (
                f"Column `{name}` is left out of the context: it was measured after the treatment, "
                f"for its date {later}."
            )
            yield ColumnNote(name, LEFT_OUT, text)
        elif one.later:
            text = (
                f"Column `{name}` {later}: it stays in the context. Name it in `after` if it was "
                "measured after the treatment."
            )
            yield ColumnNote(name, READ, text)


def _matches(values: pa.ChunkedArray, pattern: str) -> NDArray[np.bool_]:
    """Return which texts (n,) look like a pattern."""
    like = pc.fill_null(pc.match_substring_regex(values, pattern), fill_value=False)
    return flags(like)


def _numbers_rows(column: pa.ChunkedArray) -> bool:
    """Return whether the values are whole numbers without a gap and without a repetition.

    A dict of columns and a file with a decimal point bring them as floats.
    """
    if len(column) < FEWEST_NUMBERED or gaps(column).any() or not _are_codes(column):
        return False
    ends = pc.min_max(column).as_py()
    no_gap = ends["max"] - ends["min"] == len(column) - 1
    return no_gap and len(pc.unique(column)) == len(column)


# ── A whole table, with all that was done to it said ──────────────────────────────────────────────


def taken_in(
    frame: object,
    columns: Columns,
    missing: MissingRule,
    *,
    all_others: bool = False,
    beside: Sequence[str] = (),
    treated_on: str | None = None,
) -> Intake:
    """Return the log in a table of any library, before it is checked.

    With ``all_others``, all columns without a role that are fit to be contexts are, but those whose
    dates are mostly after that of the treatment, in the column ``treated_on``. Outcomes that
    are named ``beside`` that of the log belong to other logs of the same rows: a row that is
    dropped for want of one of them is dropped here too.
    """
    roles = (*columns.roles, *(("outcome", name) for name in beside))
    taken = [name for role, name in roles if role != "context"]
    noted = frames.notes_of(frame)
    if all_others:
        frame, names = frames.with_names(frame)
        check_present(context_roles(columns.after), names)
        aside = {*taken, *columns.after}
        roles = (*roles, *_other_roles(name for name in names if name not in aside))
    candidates = [name for role, name in roles if role == "context"]
    roles = dated_roles(roles, treated_on)
    label = frames.labels_of(roles)
    held = frames.as_arrow(frame, roles)
    rows_in = len(held.table)
    compared = dated(held.table, treated_on, candidates)

    def floats(name: str) -> Array:
        return frames.from_arrow(held.table[name], label[name])

    outcome, called = floats(columns.outcome), label[columns.outcome]
    if beside and missing.outcome == DROP:
        every = [columns.outcome, *beside]
        known = ~np.isnan(np.stack([floats(name) for name in every])).any(axis=0)
        outcome = np.where(known, outcome, np.nan)
        called = f"outcome column {' or '.join(f'`{name}`' for name in sorted(every))}"
    settled = missing.settle(
        frames.stacked([floats(name) for name in columns.doses], rows_in),
        outcome,
        [label[name] for name in columns.doses],
        called,
        column=columns.outcome,
    )
    apart = differences(settled.kept, _compared(held.table, taken))
    unused = frames.unused(frame, {name for _, name in roles})
    if settled.kept is not None:
        held = held.rows(settled.kept)
        unused = {name: column[settled.kept] for name, column in unused.items()}
    late = {one.column for one in compared if one.after}
    contexts = [name for name in candidates if name not in late]
    others = [name for name in held.table.column_names if name not in contexts]
    with counted_anew(settled.kept):
        encoded = encode(held.table, None if all_others else contexts, others)
        keys = {name: group_keys(ids, label[name]) for name, ids in held.ids.items()}
    mine = (name for name in taken if name not in keys and name not in beside)
    numbers = {name: floats(name) for name in mine}
    labels = frames.part_labels(columns, encoded.names)
    numbers |= {
        name: frames.from_arrow(encoded.table[name], what)
        for name, what in zip(encoded.names, labels.context, strict=True)
    }
    parts = frames.parts_of(columns, encoded.names, {**numbers, **keys})
    read = (one for one in noted if one.column in {"", *(name for _, name in roles)})
    grouped = _notes_on_groups(held.ids) if all_others else ()
    dates = _notes_on_dates(compared, treated_on)
    notes = (*read, *settled.notes, *dates, *grouped, *encoded.notes)
    amounts = next((name for name, ids in held.ids.items() if are_decimals(ids)), None)
    flow = Flow(
        rows_in,
        len(held.table),
        settled.steps,
        notes,
        encoded.recipe,
        apart,
        compared,
        amounts,
        encoded.names,
    )
    # Rows of one store may be alike in more than what models follow.
    keyed = {n.column for n in encoded.notes if n.done == LEFT_OUT or _called_key(n.column)}
    unused |= {name: held.table[name].to_numpy() for name in sorted(keyed)}
    ids = repeating(unused)
    orders = {name: floats(name) for name in flow.left_out if _may_order(held.table[name])}
    made = parts.marked(settled.observed)
    return Intake(made, labels, encoded.names, settled.kept, flow, ids, orders)


def _other_roles(names: Iterable[object]) -> Roles:
    """Return the roles of columns that nobody named; refuse names that are not text.

    Passed over, a column that a table only numbers would be a context that is lost.
    """
    roles = context_roles(cast("Iterable[str]", names))
    check_roles(roles)
    return roles


def _notes_on_groups(names: Iterable[str]) -> Iterator[ColumnNote]:
    """Yield that a column which would else be a context says which rows belong together."""
    for name in names:
        text = (
            f"Column `{name}` says which rows belong together and is no context: nothing is "
            "adjusted for it."
        )
        yield ColumnNote(name, READ, text)


def _may_order(column: pa.ChunkedArray) -> bool:
    """Return whether a column that was left out may be the order in which rows came about."""
    return not gaps(column).any() and _are_codes(column)


def _compared(table: pa.Table, taken: Sequence[str]) -> dict[str, Array]:
    """Return what rows are compared by (n,): numbers as they are, gaps NaN, and common texts."""
    found: dict[str, Array] = {}
    for name in table.column_names:
        column = table[name]
        if is_number(column.type) or name in taken:
            found[name] = frames.from_arrow(column, name)
        elif is_text(column.type):
            values = as_text(column)
            counts = pc.value_counts(values).sort(order="descending", by="counts").to_pylist()
            for level in (one["values"] for one in counts[:MOST_COMPARED]):
                if level is not None:
                    same = pc.fill_null(pc.equal(values, level), fill_value=False)
                    found[f"{name}={level}"] = flags(same).astype(np.float64)
    return found
