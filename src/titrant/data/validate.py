"""What users hold numbers in, as float64 arrays, and the checks of a log, each once."""

from __future__ import annotations

import difflib
import numbers
import re
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from titrant import _check
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data.columns import Flow

# Whatever a user holds numbers in, as float64 arrays; text, dates and categories are refused.


_NUMERIC_KINDS = "biuf"  # bool, signed, unsigned, float of any width and byte order
_MOMENT_KINDS = "mM"


def floats(value: object, label: str) -> Array:
    """Return `value` as a C-contiguous float64 array; missing entries become NaN.

    The array shares memory with `value` when that already is one.
    """
    array = _plain(value, label)
    kind = array.dtype.kind
    if not array.size:
        return np.empty(array.shape)
    if kind == "O":
        return _from_objects(array, label)
    if kind not in _NUMERIC_KINDS:
        raise _refusal(array, label)
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes inf, refused later
        return np.asarray(array, dtype=np.float64, order="C")


def frozen(array: Array) -> Array:
    """Return a read-only view; the owner of the memory keeps its own permissions."""
    view = array.view()
    view.flags.writeable = False
    return view


def _plain(value: object, label: str) -> NDArray[np.generic]:
    if isinstance(value, np.ma.MaskedArray):
        # np.asarray would drop the mask and use what lies under it.
        return np.where(np.ma.getmaskarray(value), np.nan, floats(value.data, label))
    try:
        return np.asarray(value)
    except ValueError:
        raise DataError(
            f"The {label} must be an array with rows of one length; got rows of different lengths. "
            "Give every row the same number of values."
        ) from None


def _from_objects(array: NDArray[np.generic], label: str) -> Array:
    """Convert Python numbers one by one; np.astype would also turn the text '1.5' into 1.5."""
    flat = array.ravel().tolist()
    for k, item in enumerate(flat):
        if not (isinstance(item, (numbers.Real, Decimal, np.bool_)) or _is_missing(item)):
            kind = "text" if isinstance(item, str) else type(item).__name__
            raise not_numeric(label, kind, item, _row(k, array), _remedy(item))
    out = np.array([np.nan if _is_missing(item) else _to_float(item) for item in flat])
    return out.astype(np.float64, copy=False).reshape(array.shape)


def _is_missing(item: object) -> bool:
    # pandas.NA by its printed form: it cannot be compared, and pandas need not be installed.
    return item is None or repr(item) in ("<NA>", "NaT")


def _to_float(item: float) -> float:
    try:
        return float(item)
    except OverflowError:
        return np.inf


def _refusal(array: NDArray[np.generic], label: str) -> Exception:
    flat = array.ravel()
    if array.dtype.kind == "U":
        k = first_non_number(flat.tolist())
        remedy = NUMBERS_AS_TEXT if k is None else TEXT
        return not_numeric(label, "text", str(flat[k or 0]), _row(k or 0, array), remedy)
    remedy = MOMENTS if array.dtype.kind in _MOMENT_KINDS else OTHER
    return not_numeric(label, array.dtype, flat[0], 0, remedy)


def first_non_number(texts: list[str | None]) -> int | None:
    """Return where the first text stands that does not read as a number, None if all do."""
    for k, text in enumerate(texts):
        if text is not None and not looks_numeric(text):
            return k
    return None


def _remedy(item: object) -> str:
    if isinstance(item, str):
        return NUMBERS_AS_TEXT if looks_numeric(item) else TEXT
    return OTHER


def _row(k: int, array: NDArray[np.generic]) -> int:
    """Return the row of the k-th entry of the flattened array."""
    return int(np.unravel_index(k, array.shape)[0]) if array.ndim else 0


# The checks of a log, each once: shapes, lengths, finite numbers, q > 0, doses within bounds.

Bound: TypeAlias = float | ArrayLike | Sequence[float | None] | None
Bounds: TypeAlias = tuple[Bound, Bound] | None

_LEAST_ROWS = 2
LARGEST = 1e70
"""Beyond it, and for differences below its inverse, fourth powers leave the range of a double."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What the sentences call each part of a log."""

    treatment: tuple[str, ...]
    outcome: str
    propensity: str
    context: tuple[str, ...]
    weights: str = "weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The columns of a log by role: context (n, p), treatment (n,) or (n, d), the rest (n,)."""

    context: Array
    treatment: Array
    outcome: Array
    propensity: Array | None = None
    weights: Array | None = None
    """How many of the population a row stands for, up to a factor."""
    groups: NDArray[np.int64] | None = None
    """A key of who or what a row belongs to."""
    observed: Array | None = None
    """1 where the outcome is known, 0 where it is missing (and stands as 0); None if none is."""
    planned: Array | None = None
    """Doses that policies plan for these very rows (n, k)."""

    def each(self, of: Callable[[Any], Any]) -> Parts:
        """Return what a function makes of each part that there is."""
        there = {f.name: getattr(self, f.name) for f in fields(self)}
        made: dict[str, Any] = {k: None if part is None else of(part) for k, part in there.items()}
        return Parts(**made)

    @classmethod
    def joined(cls, several: Sequence[Parts]) -> Parts:
        """Return the rows of several, one after the other."""
        whole: dict[str, Any] = {}
        for name in (f.name for f in fields(cls)):
            each = [getattr(parts, name) for parts in several]
            whole[name] = None if each[0] is None else np.concatenate(each)
        return cls(**whole)

    def marked(self, observed: Array | None) -> Parts:
        """Return the parts with the outcomes that are ``observed`` (n,), others as 0."""
        if observed is None:
            return self
        return replace(self, outcome=np.where(observed > 0.0, self.outcome, 0.0), observed=observed)

    @property
    def doses(self) -> Array:
        """The treatment as (n, d), also when d = 1."""
        return self.treatment[:, None] if self.treatment.ndim == 1 else self.treatment

    @property
    def lengths(self) -> dict[str, int]:
        """The number of rows of each part."""
        there = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: len(part) for name, part in there.items() if part is not None}


@dataclass(frozen=True, slots=True)
class Intake:
    """The parts of a log before they are checked, and how they came out of a table."""

    parts: Parts
    labels: Labels
    names: tuple[str, ...]
    """The contexts."""
    kept: NDArray[np.bool_] | None
    """Which rows of the table these are; None for all."""
    flow: Flow | None
    ids: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """Columns that may be ids and are no contexts as such, as keys (n,)."""
    orders: Mapping[str, Array] = field(default_factory=dict)
    """Columns of numbers that were left out of the context, by which rows may be ordered (n,)."""


def array_labels(parts: Parts, names: Iterable[str]) -> Labels:
    """Return the labels of a log made from arrays."""
    dimension = parts.doses.shape[1]
    several = tuple(f"treatment column {j}" for j in range(dimension))
    return Labels(
        treatment=("treatment",) if dimension == 1 else several,
        outcome="outcome",
        propensity="propensity",
        context=tuple(f"context column `{name}`" for name in names),
    )


def by_label(parts: Parts, labels: Labels) -> dict[str, Array]:
    """Return each column (n,) under its label."""
    x, t, q = parts.context, parts.doses, parts.propensity
    return (
        {label: t[:, j] for j, label in enumerate(labels.treatment)}
        | {labels.outcome: parts.outcome}
        | ({} if q is None else {labels.propensity: q})
        | ({} if parts.weights is None else {labels.weights: parts.weights})
        | {label: x[:, j] for j, label in enumerate(labels.context)}
    )


def matrix(value: object, label: str) -> Array:
    """Return a context as (n, p); one dimension (n,) is one column (n, 1)."""
    array = floats(value, label)
    if array.ndim not in (1, 2):
        raise _wrong_shape(label, "1 or 2 dimensions", array.shape)
    return array[:, None] if array.ndim == 1 else array


def _wrong_shape(label: str, rule: str, shape: tuple[int, ...]) -> DataError:
    return DataError(
        f"The {label} must have {rule}; got shape {shape}. Reshape it to one row per unit."
    )


def vector(value: ArrayLike, label: str) -> Array:
    """Return one column as (n,), given as (n,) or (n, 1)."""
    array = matrix(value, label)
    if array.shape[1] != 1:
        raise _wrong_shape(label, "one column", array.shape)
    return array[:, 0]


def treatment(value: ArrayLike, label: str) -> Array:
    """Return a treatment as (n,) when it is scalar and as (n, d) otherwise."""
    array = matrix(value, label)
    if array.shape[1] == 0:
        raise _wrong_shape(label, "at least one column", array.shape)
    return array[:, 0] if array.shape[1] == 1 else array


def context_names(names: Sequence[str] | None, p: int) -> tuple[str, ...]:
    """Return p different names, x0, x1, … unless given."""
    if names is None:
        return tuple(f"x{j}" for j in range(p))
    given = tuple(names)
    texts = all(isinstance(name, str) for name in given)
    if isinstance(names, str) or not texts or len(given) != p or len(set(given)) != p:
        raise _check.invalid("names", "LoggedData", f"{p} different texts", names)
    return given


def check_lengths(lengths: dict[str, int]) -> None:
    """Refuse parts of different lengths."""
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{label} {n:,}" for label, n in lengths.items())
        raise DataError(
            f"All parts of a log must have the same number of rows; got {got}. "
            "Build them from the same rows of one table."
        )


def check_rows(n: int) -> None:
    """Refuse a log of fewer than two rows."""
    if n < _LEAST_ROWS:
        got = counted(n, "row") if n else "an empty table"
        raise DataError(
            f"A log must have at least 2 rows; got {got}. Check the filter or the query that made "
            "it."
        )


IMPUTE = "Drop these rows or impute their values."
IN_MEMORY = (
    "Drop these rows or impute their values, or read the log into memory "
    "(`LoggedData.from_frame`), where gaps of contexts are filled."
)


def check_finite(parts: dict[str, Array], of: str = "a log", remedy: str = IMPUTE) -> None:
    """Refuse NaN, infinity and numbers whose squares overflow in any labeled column (n,)."""
    bad = {label: ~np.isfinite(column) for label, column in parts.items() if not _finite(column)}
    if bad:
        rows = np.logical_or.reduce(list(bad.values()))
        each = ", ".join(f"{label}: {np.count_nonzero(mask):,}" for label, mask in bad.items())
        raise DataError(
            f"All numbers of {of} must be present and finite; got a missing or infinite one in "
            f"{of_rows(rows)} ({each}; {first_rows(rows)}). {remedy}"
        )
    for label, column in parts.items():
        if len(column) and max(column.max(), -column.min()) >= LARGEST:
            large = np.abs(column) >= LARGEST
            raise DataError(
                f"The {label} must stay below {LARGEST:g} in size, since larger numbers overflow "
                f"when they are squared; got {of_rows(large)} beyond it ({first_rows(large)}). "
                "Correct these rows, or give the column in a larger unit."
            )


def check_scale(label: str, low: float, high: float) -> None:
    """Refuse a column from low to high whose differences vanish when squared."""
    if 0.0 < high - low < 1.0 / LARGEST:
        raise DataError(
            f"The {label} varies by {high - low:.3g} in all, which is 0 when it is squared. "
            "Give the column in a smaller unit."
        )


def check_varies(t: Array, labels: tuple[str, ...]) -> None:
    """Refuse a treatment t (n, d) one of whose columns is constant."""
    for j, label in enumerate(labels):
        low, high = t[:, j].min(), t[:, j].max()
        if low == high:
            raise constant_treatment(label, float(low), len(t))


def constant_treatment(label: str, value: float, n: int) -> DataError:
    """Refuse a treatment that never varies."""
    return DataError(
        f"The {label} must vary; got {value:g} in all {n:,} rows. "
        "One dose says nothing about another: use a log in which doses differ."
    )


def check_propensity(q: Array, label: str) -> None:
    """Refuse a propensity q (n,) with an entry ≤ 0."""
    if q.min() <= 0:
        bad = q <= 0
        raise DataError(
            f"The {label} must be > 0, being the density of the dose that was given; got "
            f"{of_rows(bad)} at or below 0 (smallest {q.min():g}; {first_rows(bad)}). "
            "Drop these rows, or leave the propensity out to have it estimated."
        )


def check_weights(weights: Array, label: str) -> None:
    """Refuse weights (n,) of which one is negative, or all are 0."""
    if weights.min() < 0.0:
        bad = weights < 0.0
        raise DataError(
            f"The {label} must be ≥ 0, being how many of the population a row stands for; got "
            f"{of_rows(bad)} below 0 (smallest {weights.min():g}; {first_rows(bad)}). "
            "Correct these rows or drop them."
        )
    if not weights.any():
        raise DataError(f"The {label} must not all be 0: no row would count. Leave them out.")


def bound_arrays(bounds: Bounds, n: int, d: int) -> tuple[Array, Array]:
    """Return the lower and the upper bound, each (1, d) or (n, d), ∓inf where there is none."""
    if bounds is None:
        bounds = (None, None)
    if not isinstance(bounds, (tuple, list)) or len(bounds) != len(("lower", "upper")):
        raise _check.invalid("bounds", "LoggedData", "None or a pair (lower, upper)", bounds)
    lower = _bound(bounds[0], "lower", -np.inf, n, d)
    upper = _bound(bounds[1], "upper", np.inf, n, d)
    crossed = lower >= upper
    if crossed.any():
        bad = np.logical_or.reduce(crossed, axis=1)
        i, j = np.argwhere(crossed)[0]
        low, high = (np.broadcast_to(side, crossed.shape)[i, j] for side in (lower, upper))
        where = f" ({of_rows(bad)}; {first_rows(bad)})" if len(bad) > 1 else ""
        raise DataError(
            f"The lower bound must be below the upper bound; got {low:g} and {high:g}{where}. "
            "Give the bounds as the pair (lower, upper)."
        )
    return lower, upper


def check_within(t: Array, lower: Array, upper: Array, labels: tuple[str, ...]) -> None:
    """Refuse a treatment t (n, d) outside its bounds, each (1, d) or (n, d)."""
    for j, label in enumerate(labels):
        column, low, high = t[:, j], lower[:, j], upper[:, j]
        if (column < low).any() or (column > high).any():
            bad = (column < low) | (column > high)
            raise DataError(
                f"The {label} must lie within its bounds; got {of_rows(bad)} outside (values there "
                f"from {column[bad].min():g} to {column[bad].max():g}, bounds from {low.min():g} "
                f"to {high.max():g}; {first_rows(bad)}). Widen the bounds, or drop these rows or "
                "correct their units."
            )


def _finite(column: Array) -> bool:
    """Return whether all entries are finite; their sum settles most cases without a mask."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(column.sum()) or np.isfinite(column).all())


def _bound(bound: Bound, side: str, none: float, n: int, d: int) -> Array:
    if isinstance(bound, str):
        raise _not_a_bound(side, bound)
    array = floats(_filled(bound, none), f"{side} bound")
    if np.isnan(array).any():
        raise _not_a_bound(side, np.nan)
    if array.ndim == 0:
        return np.full((1, d), array)
    if d == 1 and array.shape == (n,):
        return array[:, None]
    if array.shape == (d,):
        return array[None, :]
    if array.shape == (n, d):
        return array
    rule = f"one for each of the {n:,} rows" if d == 1 else f"{d} numbers or {n:,} rows of {d}"
    raise DataError(
        f"The {side} bound must be None, a number, or {rule}; got shape {array.shape}. "
        "Give the bounds as the pair (lower, upper)."
    )


def _not_a_bound(side: str, got: object) -> DataError:
    return DataError(
        f"The {side} bound must be None, a number or an array of numbers; got "
        f"{shortened(got)}. Use None where there is no bound."
    )


def _filled(bound: Bound, none: float) -> ArrayLike:
    """Return the bound with `none` for each None."""
    if isinstance(bound, (list, tuple)):
        return [none if entry is None else entry for entry in bound]
    return none if bound is None else cast("ArrayLike", bound)


# ── Parts of the sentences that refuse a table, and the sentences of several places ───────────────
# They have one form: what is wrong, how often, where, what to do. Rows are counted from 0 in the
# order of the table, and each sentence says so. A *label* names a column as the user knows it:
# ``treatment column `dose` `` for a table, ``treatment`` for an array.

_SHOWN_ROWS = 5
_SHOWN_NAMES = 12
_LONGEST = 40

TEXT = "Convert it to numbers, or one-hot encode it if its values are categories."
NUMBERS_AS_TEXT = "Its values look like numbers: convert the column to a numeric type."
CATEGORIES = "One-hot encode it, or convert it to a numeric type if its values are amounts."
AMOUNTS = "Convert it to numbers: without units, yes and no as 1 and 0."
SIGNED = (
    "Write it with digits and a decimal point alone; a file in which all values have the same sign "
    "is read as it is, on the command line and by `titrant.data.files.read_log`."
)
WITH_SIGNS = r"^\s*[-+$€£]?\s*(\d{1,3}([ ,.'’]\d{3})+|\d+)([.,]\d+)?\s*[%€£]?\s*$"
"""A number with separators of thousands, a decimal comma, or a sign of percent or currency."""
MOMENTS = "Replace it by a number, such as days since a fixed date."
OTHER = "Replace it by a column of plain numbers."


def listed(names: Iterable[object]) -> str:
    """Return the names in backticks, at most a dozen of them, or all if but one were left."""
    every = [f"`{name}`" for name in names]
    rest = len(every) - _SHOWN_NAMES
    if rest <= 1:
        return ", ".join(every)
    return f"{', '.join(every[:_SHOWN_NAMES])} and {rest:,} more"


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
    if remedy in {TEXT, CATEGORIES} and not label.startswith("context"):
        # One column plays the role, so its categories cannot have one each.
        signed = isinstance(value, str) and re.match(WITH_SIGNS, value)
        remedy = SIGNED if signed else AMOUNTS
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
