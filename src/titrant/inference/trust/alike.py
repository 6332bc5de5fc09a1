"""Rows that are alike in a few contexts: the cells that they make, and doses that none of them had.

Cells are bins of equally many rows of one context, of two, or of three; of a text they are its
levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array

    Places = NDArray[np.intp]

LOOKS = 400
"""Sets of cells of pairs, and of triples, that are looked at: all of 28 contexts, and of 14."""
LEVELS = 2
"""Levels of a text that are kept apart, in multiples of the bins of a number; the others, with the
fewest rows, are one."""
CELL_ROWS = (32, 64)
"""Rows of the cells in which a dose may be unheard of."""
FEWEST_UNITS = 12
"""Rows, or groups of them, of which a cell says something."""
FAR = 5.0
"""Sds of the doses in a cell from their mean, beyond which a dose is unheard of there: at 4, and in
cells of 16 rows, most logs with long-tailed doses that are rare but given would be warned of."""
NEAR = 0.5
"""Sds of all doses within which none of a cell was given, besides."""
MOST_TOGETHER = 2
"""Contexts that make such a cell."""


@dataclass(frozen=True, slots=True)
class NeverGiven:
    """Rows for whom a policy has a dose that nobody like them was given, where they are most."""

    share: float
    """Of all rows, by their weights."""
    rows: int
    contexts: tuple[int, ...]
    """The places of the contexts that make the cells; none if it is the dose expected of them."""


def never_given(
    x: Array,
    t: Array,
    tau: Array,
    omega: Array,
    unit: Places | None,
    *,
    nominal: Collection[int] = (),
    expected: Array | None = None,
) -> list[NeverGiven]:
    """Return for each of m policies the rows for whom its dose is unheard of.

    x (n, p) are contexts, t (n,) doses, tau (n, m) those of the policies, omega (n,) how much rows
    count; of rows of one ``unit`` (n,), such as a patient, a cell counts one. A dose τᵢ is unheard
    of in the cell c of row i if, with the mean t̄_c and the sd s_c of its doses,

        |τᵢ − t̄_c| > 5·s_c   and   |tⱼ − τⱼ| > sd(t)/2 for all j ∈ c.

    No fitted law is asked, which would lend to few rows the doses of the others. People whom no two
    contexts tell from others may be alike in the dose that is ``expected`` of them (n,) by a model
    that has not seen them: cells along it are looked at, too.
    """
    look = Looks(x, frozenset(nominal))
    near = np.abs(t[:, None] - tau) <= NEAR * t.std()
    best = [NeverGiven(0.0, 0, ())] * tau.shape[1]
    for cell, at in _cells(look, t, expected):
        n = np.bincount(cell)
        mean = np.bincount(cell, t) / np.maximum(n, 1)
        sd = np.sqrt(np.bincount(cell, (t - mean[cell]) ** 2) / np.maximum(n - 1, 1))
        tells = (n if unit is None else _units(cell, unit)) >= FEWEST_UNITS
        for k, found in enumerate(best):
            empty = tells & (np.bincount(cell, near[:, k]) == 0.0)
            if not empty.any():
                continue
            never = empty[cell] & (np.abs(tau[:, k] - mean[cell]) > FAR * sd[cell])
            share = float(omega @ never / omega.sum())
            if share > found.share:
                best[k] = NeverGiven(share, int(np.count_nonzero(never)), at)
    return best


def _cells(
    look: Looks, t: Array, expected: Array | None
) -> Iterator[tuple[Places, tuple[int, ...]]]:
    """Yield sets of cells: of contexts, and of rows of whom alike doses are expected."""
    # Of very many contexts, pairs are made of those whose cells differ most in their doses.
    alone = dict.fromkeys(look.varying, 0.0)
    for cell, (j,) in look.cells(1, look.varying, CELL_ROWS[1:]):
        n = np.bincount(cell)
        mean = np.bincount(cell, t - t.mean()) / np.maximum(n, 1)
        alone[j] = float(n @ mean**2)
    for together in range(1, MOST_TOGETHER + 1):
        yield from look.cells(together, look.among(together, alone), CELL_ROWS)
    if expected is not None and np.ptp(expected) > 0.0:
        along = Looks(expected[:, None])
        yield from ((cell, ()) for cell, _ in along.cells(1, [0], CELL_ROWS))


def _units(cell: Places, unit: Places) -> Places:
    """Return how many units each cell has."""
    pairs = np.unique(np.column_stack([cell, unit]), axis=0)
    return np.bincount(pairs[:, 0], minlength=int(cell.max()) + 1)


@dataclass(frozen=True)
class Looks:
    """The sets of cells that contexts x (n, p) make."""

    x: Array
    nominal: frozenset[int] = frozenset()

    @cached_property
    def varying(self) -> list[int]:
        """The places of the contexts that are not constant."""
        return [j for j in range(self.x.shape[1]) if np.ptp(self.x[:, j]) > 0.0]

    def among(self, together: int, alone: Mapping[int, float]) -> list[int]:
        """Return the contexts that are taken so many at a time: all, or those that show most."""
        most = together
        while comb(most + 1, together) <= LOOKS:
            most += 1
        first = sorted(self.varying, key=lambda j: -alone[j])[:most]
        return sorted(first)

    def cells(
        self, together: int, chosen: Sequence[int], rows: Sequence[int]
    ) -> Iterator[tuple[Places, tuple[int, ...]]]:
        """Yield sets of cells: the cell of each row (n,), and the contexts that make them.

        ``rows`` are how many a cell should have: small ones first, then larger ones.
        """
        for size in rows:
            bins = max(2, round((len(self.x) / size) ** (1.0 / together)))
            own = {j: self._bins(j, bins) for j in chosen}
            for at in combinations(chosen, together):
                sizes = tuple(int(own[j].max()) + 1 for j in at)
                yield np.ravel_multi_index(tuple(own[j] for j in at), sizes), at

    def _bins(self, context: int, bins: int) -> Places:
        """Return the bin of each row (n,), or its level."""
        if context not in self.nominal:
            return np.floor(self._places[:, context] * bins).astype(np.intp)
        level, rows = np.unique(self.x[:, context], return_inverse=True, return_counts=True)[1:]
        place = np.empty_like(rows)
        place[np.argsort(-rows, kind="stable")] = np.arange(len(rows))
        return np.minimum(place, LEVELS * bins - 1)[level].astype(np.intp)

    @cached_property
    def _places(self) -> Array:
        """Midpoints of the ranks on (0, 1) (n, p); equal values have one place."""
        from scipy.stats import rankdata  # noqa: PLC0415

        return np.asarray((rankdata(self.x, axis=0) - 0.5) / len(self.x))
