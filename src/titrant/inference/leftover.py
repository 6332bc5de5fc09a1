"""What models leave: a bias that rows alike in a few contexts show together.

Where models of dose and outcome both miss how contexts act, rows that are alike in these contexts
share a weight that is off, a = w/w̄ − 1, and a residual that is off, e = y − r. Given the contexts
one of the two has mean 0 if either model is right, so their products over *different* rows of a
cell estimate what is left of confounding in the value, without the noise that the two share in one
row:

    b̂ = (1/n)·Σ_c Σ_{i≠j∈c} aᵢeⱼ/(n_c − 1),
    Var b̂ ≈ (1/n²)·Σ_c Σ_{i≠j∈c} (aᵢ²eⱼ² + aᵢeᵢaⱼeⱼ)/(n_c − 1)².

Cells are bins of equally many rows of one context, of two, or of three.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from titrant._types import Array

    Places = NDArray[np.intp]

CELL_ROWS = (12, 48)
"""Rows of a cell: small cells see fine patterns, large ones more of a coarse one."""
MOST_CONTEXTS = {1: 200, 2: 20, 3: 8}
"""Of how many contexts all cells are looked at, by how many make a cell."""
FEWEST_ROWS = 150
"""Rows from which on it is looked for."""
RESIDUAL_TAIL = 0.005
"""Residuals beyond these quantiles are held to them: one outcome is no pattern."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """The bias of one estimate that rows alike in some contexts show, where it is clearest."""

    bias: float
    se: float
    contexts: tuple[int, ...]
    """The places of the contexts that make the cells."""
    looks: int
    """How many sets of cells were looked at."""

    @property
    def p_value(self) -> float:
        """How likely chance shows as much in any of the looks."""
        from scipy.special import ndtr  # noqa: PLC0415

        return float(min(1.0, 2.0 * self.looks * ndtr(-abs(self.bias) / self.se)))


def leftovers(x: Array, a: Array, e: Array, omega: Array, unit: Places | None) -> list[Leftover]:
    """Return what is left in each of m estimates, or nothing where no cell can show it.

    x (n, p) are contexts, a (n, m) weights over their mean less 1, e (n,) residuals, omega (n,) how
    much rows count; rows of one ``unit`` (n,), such as a patient, are not independent.
    """
    if len(e) < FEWEST_ROWS:
        return []
    held = np.clip(e, *np.quantile(e, [RESIDUAL_TAIL, 1.0 - RESIDUAL_TAIL]))
    held = held - np.average(held, weights=omega)
    found = [(biases(cell, a, held, omega, unit), at) for cell, at in cells(x)]
    found = [((b, se), at) for (b, se), at in found if (se > 0.0).all()]
    if not found:
        return []
    bias, se = (np.stack([both[k] for both, _ in found]) for k in (0, 1))
    best = np.argmax(np.abs(bias) / se, axis=0)
    return [
        Leftover(float(bias[k, i]), float(se[k, i]), found[k][1], len(found))
        for i, k in enumerate(best)
    ]


def cells(x: Array) -> Iterator[tuple[Places, tuple[int, ...]]]:
    """Yield sets of cells: the cell of each row (n,), and the contexts that make them."""
    from scipy.stats import rankdata  # noqa: PLC0415

    n, p = x.shape
    # Midpoints of the ranks on (0, 1); equal values have one place.
    places = (rankdata(x, axis=0) - 0.5) / n
    varying = [j for j in range(p) if np.ptp(places[:, j]) > 0.0]
    for rows in CELL_ROWS:
        for size, most in MOST_CONTEXTS.items():
            if len(varying) > most:
                continue
            bins = max(2, round((n / rows) ** (1.0 / size)))
            of_context = np.floor(places * bins).astype(np.intp)
            for chosen in combinations(varying, size):
                yield np.ravel_multi_index(of_context[:, chosen].T, (bins,) * size), chosen


def biases(
    cell: Places, a: Array, e: Array, omega: Array, unit: Places | None = None
) -> tuple[Array, Array]:
    """Return b̂ and its standard error, each (m,), of weights a (n, m) and residuals e (n,).

    Rows of a unit in a cell are added up first, so that products are of different units. With row
    weights, ω·a and ω·e are added up, and n counts ω.
    """
    terms = np.column_stack([omega, omega * e, omega[:, None] * a])
    if unit is None:
        order = np.argsort(cell, kind="stable")
        place, items = cell[order], terms[order]
    else:
        order = np.lexsort((unit, cell))
        starts = _starts(cell[order], unit[order])
        place, items = cell[order][starts], np.add.reduceat(terms[order], starts)
    starts = _starts(place)
    count, residual, weight = items[:, :1], items[:, 1:2], items[:, 2:]
    both = weight * residual

    def in_cells(values: Array) -> Array:
        return np.add.reduceat(values, starts)

    m = np.diff([*starts, len(place)])[:, None]
    # 1/(n_c − 1); a cell of one unit has no pairs.
    over = np.divide(m, in_cells(count) * (m - 1), out=np.zeros(m.shape), where=m > 1)
    own = in_cells(both**2)
    crossed = in_cells(weight) * in_cells(residual) - in_cells(both)
    squared = in_cells(weight**2) * in_cells(residual**2) - own + in_cells(both) ** 2 - own
    total = omega.sum()
    variance = np.maximum(np.sum(over**2 * squared, axis=0), 0.0)
    return np.sum(over * crossed, axis=0) / total, np.sqrt(variance) / total


def _starts(*sorted_by: Places) -> Places:
    """Return where runs of equal values begin."""
    new = np.any([np.diff(column) != 0 for column in sorted_by], axis=0)
    return np.flatnonzero(np.r_[True, new])
