"""The checks of a log, each once: shapes, lengths, finite numbers, q > 0, doses within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from titrant import _check
from titrant.data import wording
from titrant.data.arrays import floats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from titrant._types import Array

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The columns of a log by role: context (n, p), treatment (n,) or (n, d), the rest (n,)."""

    context: Array
    treatment: Array
    outcome: Array
    propensity: Array | None

    @property
    def doses(self) -> Array:
        """The treatment as (n, d), also when d = 1."""
        return self.treatment[:, None] if self.treatment.ndim == 1 else self.treatment

    @property
    def lengths(self) -> dict[str, int]:
        """The number of rows of each part."""
        q = self.propensity
        known = {} if q is None else {"propensity": len(q)}
        x, t, y = self.context, self.treatment, self.outcome
        return {"context": len(x), "treatment": len(t), "outcome": len(y)} | known


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
        | {label: x[:, j] for j, label in enumerate(labels.context)}
    )


def matrix(value: object, label: str) -> Array:
    """Return a context as (n, p); one dimension (n,) is one column (n, 1)."""
    array = floats(value, label)
    if array.ndim not in (1, 2):
        raise wording.wrong_shape(label, "1 or 2 dimensions", array.shape)
    return array[:, None] if array.ndim == 1 else array


def vector(value: ArrayLike, label: str) -> Array:
    """Return one column as (n,), given as (n,) or (n, 1)."""
    array = matrix(value, label)
    if array.shape[1] != 1:
        raise wording.wrong_shape(label, "one column", array.shape)
    return array[:, 0]


def doses(value: ArrayLike, label: str) -> Array:
    """Return a treatment as (n,) when it is scalar and as (n, d) otherwise."""
    array = matrix(value, label)
    if array.shape[1] == 0:
        raise wording.wrong_shape(label, "at least one column", array.shape)
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
        raise wording.unequal_lengths(lengths)


def check_rows(n: int) -> None:
    """Refuse a log of fewer than two rows."""
    if n < _LEAST_ROWS:
        raise wording.too_few_rows(n)


def check_finite(parts: dict[str, Array], of: str = "a log") -> None:
    """Refuse NaN, infinity and numbers whose squares overflow in any labeled column (n,)."""
    bad = {label: ~np.isfinite(column) for label, column in parts.items() if not _finite(column)}
    if bad:
        raise wording.not_finite(bad, of)
    for label, column in parts.items():
        if len(column) and max(column.max(), -column.min()) >= LARGEST:
            raise wording.too_large(label, column, LARGEST)


def check_scale(label: str, low: float, high: float) -> None:
    """Refuse a column from low to high whose differences vanish when squared."""
    if 0.0 < high - low < 1.0 / LARGEST:
        raise wording.too_small(label, high - low)


def check_varies(t: Array, labels: tuple[str, ...]) -> None:
    """Refuse a treatment t (n, d) one of whose columns is constant."""
    for j, label in enumerate(labels):
        low, high = t[:, j].min(), t[:, j].max()
        if low == high:
            raise wording.constant_treatment(label, float(low), len(t))


def check_propensity(q: Array, label: str) -> None:
    """Refuse a propensity q (n,) with an entry ≤ 0."""
    if q.min() <= 0:
        raise wording.not_positive(label, q)


def bound_arrays(bounds: Bounds, n: int, d: int) -> tuple[Array, Array]:
    """Return the lower and the upper bound, each (1, d) or (n, d), ∓inf where there is none."""
    if bounds is None:
        bounds = (None, None)
    if not isinstance(bounds, (tuple, list)) or len(bounds) != len(("lower", "upper")):
        raise _check.invalid("bounds", "LoggedData", "None or a pair (lower, upper)", bounds)
    lower = _bound(bounds[0], "lower", -np.inf, n, d)
    upper = _bound(bounds[1], "upper", np.inf, n, d)
    if (lower >= upper).any():
        raise wording.bounds_crossed(*np.broadcast_arrays(lower, upper))
    return lower, upper


def check_within(t: Array, lower: Array, upper: Array, labels: tuple[str, ...]) -> None:
    """Refuse a treatment t (n, d) outside its bounds, each (1, d) or (n, d)."""
    for j, label in enumerate(labels):
        column, low, high = t[:, j], lower[:, j], upper[:, j]
        if (column < low).any() or (column > high).any():
            raise wording.outside_bounds(label, column, low, high)


def _finite(column: Array) -> bool:
    """Return whether all entries are finite; their sum settles most cases without a mask."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(column.sum()) or np.isfinite(column).all())


def _bound(bound: Bound, side: str, none: float, n: int, d: int) -> Array:
    if isinstance(bound, str):
        raise wording.bounds_not_a_number(side, bound)
    array = floats(_filled(bound, none), f"{side} bound")
    if np.isnan(array).any():
        raise wording.bounds_not_a_number(side, np.nan)
    if array.ndim == 0:
        return np.full((1, d), array)
    if d == 1 and array.shape == (n,):
        return array[:, None]
    if array.shape == (d,):
        return array[None, :]
    if array.shape == (n, d):
        return array
    raise wording.bounds_shape(side, array.shape, n, d)


def _filled(bound: Bound, none: float) -> ArrayLike:
    """Return the bound with `none` for each None."""
    if isinstance(bound, (list, tuple)):
        return [none if entry is None else entry for entry in bound]
    return none if bound is None else cast("ArrayLike", bound)
