"""Point masses: doses that many rows have exactly, such as 0, a cap or a list price.

At such a dose T has a probability, not a density: T is aₖ with P(aₖ | x), and elsewhere it has a
density. They are found by counting, in one look at the doses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from titrant import _check
from titrant.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

Atoms: TypeAlias = "Iterable[float] | None"

SHARE, ROWS = 0.02, 20
"""The least share and number of rows that make a value a point mass,"""
TIMES, WITHIN = 5.0, 0.3
"""if it has 5 times the rows of the mean other value within .3 of the spread: values of a rounded
dose have neighbors like themselves."""
NEARLY_ALL = 0.9
"""From this share on, doses are levels, and rows at other values are left aside."""
FEW_VALUES, ROWS_OF_A_VALUE = 12, 10
"""So are so few values, if each has this many rows on average."""
FEWEST_BETWEEN = 20
"""Rows without a point mass, without which no density is learned: then all doses are levels."""
FEWEST = 50
"""Rows without which no point mass is looked for: models of probabilities need as many."""
SAME, ROUNDING = 1e-6, 1e-9
"""Doses that differ from a point mass by less than this share of it, or of the largest one, are the
same: a column of 32 bits holds .7 to 2e-8, and 0 exactly."""


def reach_of(values: Array) -> Array:
    """Return how near a dose is to each of these point masses (K,) to be the same."""
    size = np.abs(values)
    return np.asarray(np.maximum(SAME * size, ROUNDING * size.max(initial=0.0)))


@dataclass(frozen=True, slots=True)
class PointMasses:
    """Doses a₁ < … < a_K that many rows have exactly; `levels` if (nearly) all rows have one."""

    values: Array
    """a (K,), increasing."""
    shares: Array
    """The share of rows at each (K,)."""
    levels: bool
    low: float
    """A point mass at the least dose bounds the other doses; −inf if there is none,"""
    high: float
    """and one at the greatest dose; +inf."""
    rare: Array = field(default_factory=lambda: np.empty(0))
    """Where doses are levels, the doses of rows that have none (R,), increasing."""
    rare_shares: Array = field(default_factory=lambda: np.empty(0))
    """The share of rows at each (R,)."""

    def index(self, t: Array) -> NDArray[np.intp]:
        """Return which point mass each dose (n,) is, −1 for none."""
        return _index_among(self.values, t)

    def side(self, t: Array) -> NDArray[np.intp]:
        """Return on which side of the levels doses (n,) are: 0 below, 1 between, 2 above them."""
        return np.where(t < self.values[0], 0, np.where(t > self.values[-1], 2, 1))

    def rare_at(self, t: Array) -> Array:
        """Return of the rows without a level the share at each dose (n,), by side (n, 3)."""
        # −1, for none of them, is the last row.
        return np.asarray(np.vstack([self._by_side, np.zeros(3)])[_index_among(self.rare, t)])

    def rare_up_to(self, t: Array) -> Array:
        """Return of the rows without a level the share up to each dose (n,), by side (n, 3)."""
        reached = np.vstack([np.zeros(3), np.cumsum(self._by_side, axis=0)])
        return np.asarray(reached[np.searchsorted(self.rare, t, side="right")])

    @property
    def _by_side(self) -> Array:
        """Of the rows without a level on each side, the share at each dose (R, 3)."""
        own = np.eye(3)[self.side(self.rare)] * self.rare_shares[:, None]
        total = own.sum(axis=0)
        return np.asarray(own / np.where(total > 0.0, total, 1.0))

    @property
    def spacing(self) -> Array:
        """How many doses each level stands for (K,): half the way to its neighbors on each side."""
        if len(self.values) == 1:
            return np.full(1, np.inf)
        gaps = np.diff(self.values)
        return np.asarray((np.append(gaps, gaps[-1]) + np.append(gaps[0], gaps)) / 2.0)

    def gap(self, t: Array) -> Array:
        """Return how far apart the levels around each dose (n,) are; beyond the last, how far."""
        after = np.searchsorted(self.values, t)
        beyond = np.maximum(self.values[0] - t, t - self.values[-1])
        inner = np.clip(after, 1, max(len(self.values) - 1, 1)) % len(self.values)
        between = self.values[inner] - self.values[inner - 1]
        return np.where(beyond > 0.0, beyond, between)

    def told(self) -> str:
        """Return what was found, in words."""
        return _listed(self.values, self.shares, levels=self.levels)


def point_masses(doses: Array, atoms: tuple[float, ...] | None = None) -> PointMasses | None:
    """Return the point masses of doses (n,): those given, or found; None if there are none."""
    if atoms is not None and not atoms:
        return None
    if len(doses) < FEWEST:
        if atoms:
            raise DataError(
                f"Of {len(doses):,} rows, probabilities of point masses are not learned; they need "
                f"{FEWEST}. Leave `atoms` out."
            )
        return None
    values, counts = np.unique(doses, return_counts=True)
    # A part of a log need not have all that are named.
    chosen = found(values, counts) if atoms is None else np.isin(values, atoms)
    if not chosen.any():
        return None
    n = len(doses)
    other = n - int(counts[chosen].sum())
    levels = other <= (1.0 - NEARLY_ALL) * n or other < FEWEST_BETWEEN
    low = values[0] if chosen[0] and not levels else -np.inf
    high = values[-1] if chosen[-1] and not levels else np.inf
    ends = float(low), float(high)
    rare = levels & (_index_among(values[chosen], values) < 0)
    return PointMasses(
        values[chosen], counts[chosen] / n, levels, *ends, values[rare], counts[rare] / n
    )


def _index_among(values: Array, t: Array) -> NDArray[np.intp]:
    """Return which of these values (K,), increasing, each dose (n,) is, −1 for none."""
    if not len(values):
        return np.full(len(t), -1)
    after = np.searchsorted(values, t)
    left, right = np.clip(after - 1, 0, len(values) - 1), np.clip(after, 0, len(values) - 1)
    nearest = np.where(np.abs(t - values[left]) <= np.abs(t - values[right]), left, right)
    same = np.abs(t - values[nearest]) <= reach_of(values)[nearest]
    return np.where(same, nearest, -1)


def check_given(atoms: tuple[float, ...] | None, doses: Array) -> None:
    """Refuse point masses that none of the doses (n, d) is."""
    for value in atoms or ():
        if not (doses == value).any():
            raise DataError(
                f"No logged dose is {value:.6g}, one of `atoms`; doses run from "
                f"{doses.min():.6g} to {doses.max():.6g}. Name doses that rows have."
            )


def found(values: Array, counts: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which distinct values (m,), increasing and with their counts, are point masses.

    Those that heap; or all, if they are few.
    """
    if len(values) <= min(FEW_VALUES, int(counts.sum()) / ROWS_OF_A_VALUE):
        return np.ones(len(values), dtype=bool)
    return heaps(values, counts)


def heaps(values: Array, counts: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which distinct values (m,), increasing and with their counts, many rows heap at.

    Those with enough rows, many more than other values close by.
    """
    many = has_many(counts)
    if not many.any():
        return many
    reach = WITHIN * _spread(values, counts) * (1.0 + ROUNDING)
    first = np.searchsorted(values, values - reach, side="left")
    last = np.searchsorted(values, values + reach, side="right")
    total = np.append(0, np.cumsum(counts))
    others = np.maximum(last - first - 1, 1)
    return np.asarray(many & (counts * others >= TIMES * (total[last] - total[first] - counts)))


def has_many(counts: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which distinct values, by their counts (m,), have the rows of a point mass."""
    return np.asarray((counts >= ROWS) & (counts >= SHARE * int(counts.sum())))


def _spread(values: Array, counts: NDArray[np.intp]) -> float:
    """Return min(sd, IQR/1.349) of values with counts; the sd if half of the rows are one value."""
    mean = np.average(values, weights=counts)
    sd = float(np.sqrt(np.average((values - mean) ** 2, weights=counts)))
    reached = np.cumsum(counts) / counts.sum()
    low, high = (values[np.searchsorted(reached, level)] for level in (0.25, 0.75))
    return min(sd, float(high - low) / 1.349) if high > low else sd


def checked_atoms(atoms: Atoms, dimension: int, owner: str) -> tuple[float, ...] | None:
    """Return the point masses that a user names, increasing; None to look for them."""
    if atoms is None:
        return None
    if isinstance(cast("object", atoms), str) or not isinstance(atoms, Iterable):
        rule = "a list of doses, () for none, or None to look for them"
        raise _check.invalid("atoms", owner, rule, atoms)
    given = tuple(atoms)
    if given and dimension > 1:
        rule = "left out for a treatment of several doses, of which point masses are not known"
        raise _check.invalid("atoms", owner, rule, given)
    values = _check.finite_array(given, "atoms", owner, ndim=1)
    return tuple(sorted({float(value) for value in values}))


_SHOWN = 6


def _listed(values: Array, shares: Array, *, levels: bool) -> str:
    if not levels:
        largest = np.sort(np.argsort(-shares, kind="stable")[:_SHOWN])
        each = zip(values[largest], 100 * shares[largest], strict=True)
        parts = [f"{s:.2g} % of doses are exactly {a:.6g}" for a, s in each]
        left = len(values) - len(parts)
        more = f" and {left} smaller point mass{'es' if left > 1 else ''}" if left else ""
        return ", ".join(parts) + more
    named = ", ".join(f"{a:.6g}" for a in values[: 2 * _SHOWN])
    more = f" and {len(values) - 2 * _SHOWN} more" if len(values) > 2 * _SHOWN else ""
    return f"doses are {len(values)} levels: {named}{more}"
