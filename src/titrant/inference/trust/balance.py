"""Covariate balance: whether the weighted rows look like all rows.

As E[w | x] = 1 when the propensities are right, weighting must not move the mean of any context.
The weighted mean less the plain one is the mean of (w/w̄ − 1)(x − x̄), whose spread is its error.
Nor may it move the share of rows in any bin of a context, which a mean need not show: a U shape
leaves the mean where it was.

An estimate with an outcome model may survive imbalance. What it costs is seen by *leveling*: each
bin's weighted residuals count by the bin's share of all rows instead of its share of the weight.
Where either the weights or the outcome model are right this changes next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant.scaling import spread_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.scaling import Held

    Codes = NDArray[np.intp]

PARTS = 6
"""Bins of a context with many values: enough for a bend or a step, few enough to hold rows."""
FEW_LEVELS, MOST_LEVELS, LEVEL_ROWS = 12, 50, 100
"""Up to 12 different values each is a bin of its own; up to 50, which may be the numbers of
clinics, if each has a hundred rows on average: leveling so many bins of few rows is all noise."""
FEWEST_ROWS, LEAST_SHARE = 5, 0.01
"""Rows, and share of all, below which the weight in a bin says nothing of the propensities."""
HARDLY_ANY = 0.1
"""A bin with less than this part of its due weight has too few rows to know its residuals by."""


@dataclass(frozen=True, slots=True)
class Contexts:
    """The contexts of all n rows: their names, means (p,) and standard deviations (p,)."""

    n: int
    names: tuple[str, ...]
    center: Array
    spread: Array
    """0 for a constant one."""
    hold: Held | None
    """How far values are held, so that one cell cannot be all of a context's spread; None where
    all of them pass as they are."""

    @classmethod
    def of(cls, x: Array, names: tuple[str, ...], hold: Held | None) -> Self:
        """Return the summary of contexts x (n, p)."""
        held = _held(x, hold)
        return cls(len(x), names, held.mean(axis=0), spread_of(held), hold)


@dataclass(frozen=True, slots=True)
class Imbalance:
    """How far weighting moves each context: in its own sd and in standard errors, each (p,)."""

    in_sd: Array
    in_se: Array


def balance_sums(
    w: Array, x: Array, mean_weight: float, contexts: Contexts, omega: Array | float = 1.0
) -> Array:
    """Return Σz and Σz² (2, p), z = ω(w/w̄ − 1)(x − x̄), of weights w (n,) and contexts x (n, p)."""
    u = omega * (w / mean_weight - 1.0)
    d = _held(x, contexts.hold) - contexts.center
    return np.stack([u @ d, (u * u) @ (d * d)])


def _held(x: Array, hold: Held | None) -> Array:
    return x if hold is None else hold.columns(x)


def imbalance(sums: Array, contexts: Contexts, design_effect: float = 1.0) -> Imbalance:
    """Return |Σz|/(n·sd(x)) and |Σz|/√(D·Σz²), D the design effect; 0 for a constant context."""
    total, squares = np.abs(sums[0]), design_effect * sums[1]
    varies = (contexts.spread > 0.0) & (squares > 0.0)
    zero = np.zeros_like(total)
    return Imbalance(
        np.divide(total, contexts.n * contexts.spread, out=zero.copy(), where=varies),
        np.divide(total, np.sqrt(squares), out=zero.copy(), where=varies),
    )


@dataclass(frozen=True, slots=True)
class BinnedContext:
    """One context in bins: its sextiles, or its values where it has few.

    A value is in the bin whose number is that of the edges below it.
    """

    name: str
    edges: Array
    """Increasing; those of single values lie halfway between them."""
    levels: Array | None = None
    """The values, one a bin, if they are few."""

    @classmethod
    def of(cls, name: str, values: Array) -> Self:
        """Return the bins of a context with these values (n,)."""
        levels = np.unique(values)
        many = len(levels) <= MOST_LEVELS and len(values) >= LEVEL_ROWS * len(levels)
        if len(levels) <= FEW_LEVELS or many:
            return cls(name, (levels[1:] + levels[:-1]) / 2.0, levels)
        # Edges are values themselves, and below the greatest: then no bin is empty.
        cuts = np.quantile(values, np.arange(1, PARTS) / PARTS, method="inverted_cdf")
        return cls(name, np.unique(cuts[cuts < levels[-1]]))

    @property
    def size(self) -> int:
        """The number of bins."""
        return len(self.edges) + 1

    def words(self, k: int) -> str:
        """Return which rows are in bin k."""
        if self.levels is not None:
            return f"{self.name!r} = {self.levels[k]:.6g}"
        if k == 0:
            return f"{self.name!r} up to {self.edges[0]:.4g}"
        if k == len(self.edges):
            return f"{self.name!r} above {self.edges[-1]:.4g}"
        return f"{self.name!r} from {self.edges[k - 1]:.4g} to {self.edges[k]:.4g}"


@dataclass(frozen=True)
class Bins:
    """The bins of all contexts, side by side."""

    cuts: tuple[BinnedContext, ...]
    hold: Held | None
    """How far values are held; None where all of them pass as they are."""

    @classmethod
    def of(cls, x: Array, names: Sequence[str], hold: Held | None) -> Self:
        """Return the bins of contexts x (n, p), or of a log of which these rows are a sample."""
        columns = zip(names, _held(x, hold).T, strict=True)
        return cls(tuple(BinnedContext.of(name, values) for name, values in columns), hold)

    @cached_property
    def starts(self) -> Codes:
        """The number of each context's first bin, then that of all bins (p + 1,)."""
        return np.cumsum([0, *(cut.size for cut in self.cuts)])

    def codes(self, x: Array) -> Codes:
        """Return the bin of each row in each context (n, p), as numbered among all bins."""
        held = np.ascontiguousarray(_held(x, self.hold).T)
        found = np.empty(held.shape, dtype=np.intp)
        for j, cut in enumerate(self.cuts):
            below = np.zeros(len(x), dtype=np.uint8)
            for edge in cut.edges:  # they are few, so that comparing is faster than searching
                below += (held[j] > edge).view(np.uint8)
            np.add(below, self.starts[j], out=found[j])
        return found.T

    def of_context(self, j: int) -> slice:
        """Return which bins are those of context j."""
        return slice(int(self.starts[j]), int(self.starts[j + 1]))

    def place(self, k: int) -> tuple[int, str]:
        """Return the context of bin k, and in words which rows are in it."""
        j = int(np.searchsorted(self.starts, k, side="right")) - 1
        return j, self.cuts[j].words(k - int(self.starts[j]))


@dataclass(frozen=True, slots=True)
class BinnedImbalance:
    """How far weighting moves the share of rows in each of B bins of p contexts."""

    share: Array
    """Of all rows (B,)."""
    weighted: Array
    """Of all weight (B,)."""
    in_sd: Array
    """|weighted − share| in sds of the bin's indicator (B,), 0 where there are too few rows."""
    in_se: Array
    """The same in standard errors (B,)."""
    tested: int
    """Bins with rows enough."""
    leveled: Array | None
    """How far leveling each context moves the value (p,); None if there are no residuals."""


def binned_sums(
    codes: Codes, bins: int, w: Array, we: Array | None, omega: Array | None = None
) -> Array:
    """Return rows, Σw, Σw² and Σw·e of each bin (4, B), from codes (n, p), w and w·e (n,).

    Rows count by ω (n,), which is in w and w·e already.
    """
    found = np.zeros((4, bins))
    found[0] = _in_bins(codes, bins, omega)
    carried = np.flatnonzero(w)  # most rows are far from the policy's dose
    columns = [w[carried], w[carried] ** 2]
    if we is not None:
        columns.append(we[carried])
    own = codes.T[:, carried].T
    for row, values in enumerate(columns, start=1):
        found[row] = _in_bins(own, bins, values)
    return found


def _in_bins(codes: Codes, bins: int, values: Array | None) -> Array:
    """Return the sum of values (n,) in each bin (B,), from codes (n, p); of rows without values."""
    each = None if values is None else np.tile(values, codes.shape[1])
    found = np.bincount(codes.T.ravel(), weights=each, minlength=bins)
    return np.asarray(found, dtype=np.float64)


def binned_imbalance(
    sums: Array, bins: Bins, *, residuals: bool, design_effect: float = 1.0
) -> BinnedImbalance:
    """Return the imbalance of each bin from its sums (4, B).

    With u = w/w̄ − 1 and p the bin's share of n rows, z = u·(1[in the bin] − p) has
    Σz = Σ_in u − p·Σu and Σz² = (1 − 2p)·Σ_in u² + p²·Σu².
    """
    rows, w, squares, _ = sums
    first = bins.of_context(0)
    n, total = float(rows[first].sum()), float(w[first].sum())
    mean = total / n
    u, u2 = w / mean - rows, squares / mean**2 - 2.0 * w / mean + rows
    p = rows / n
    moved = np.abs(u - p * u[first].sum())
    squared = np.maximum((1.0 - 2.0 * p) * u2 + p**2 * u2[first].sum(), 0.0)
    spread = np.sqrt(design_effect * squared)
    sd = np.sqrt(np.maximum(p * (1.0 - p), 0.0))  # weights may round p above 1
    enough = (rows >= max(FEWEST_ROWS, LEAST_SHARE * n)) & (rows < n) & (spread > 0.0)
    zero = np.zeros_like(p)
    return BinnedImbalance(
        p,
        w / total,
        np.divide(moved, n * sd, out=zero.copy(), where=enough),
        np.divide(moved, spread, out=zero.copy(), where=enough),
        int(np.count_nonzero(enough)),
        leveled_shifts(sums, bins) if residuals else None,
    )


def leveled_shifts(sums: Array, bins: Bins) -> Array:
    """Return Σ_b p_b ē_b − ē of each context (p,), ē = Σw·e/Σw over a bin b or all rows.

    A bin with hardly any weight is given the mean of all: nothing is known of it.
    """
    shifts = np.zeros(len(bins.cuts))
    for j in range(len(shifts)):
        rows, w, _, we = sums[:, bins.of_context(j)]
        p, share = rows / rows.sum(), w / w.sum()
        overall = we.sum() / w.sum()
        known = share > HARDLY_ANY * p
        residual = np.divide(we, w, out=np.full(len(w), overall), where=known)
        shifts[j] = p @ (residual - overall)
    return shifts
