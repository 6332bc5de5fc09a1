"""What models leave: a bias that rows alike in a few contexts show together.

Where models of dose and outcome both miss how contexts act, rows that are alike in these contexts
share a weight that is off, a = w/w̄ − 1, and a residual that is off, e = y − r. Given the contexts
one of the two has mean 0 if either model is right, so their products over *different* rows of a
cell estimate what is left of confounding in the value, without the noise that the two share in one
row:

    b̂ = (1/n)·Σ_c Σ_{i≠j∈c} aᵢeⱼ/(n_c − 1),
    Var b̂ ≈ (1/n²)·Σ_c Σ_{i≠j∈c} (aᵢ²eⱼ² + aᵢeᵢaⱼeⱼ)/(n_c − 1)².

Cells are made of one context, of two, or of three (`alike.py`). Of very many contexts, pairs and
triples are made of those that show most alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.inference.trust.alike import Looks

if TYPE_CHECKING:
    from collections.abc import Collection

    from titrant._types import Array
    from titrant.inference.trust.alike import Places

CELL_ROWS = (12, 48)
"""Rows of a cell: small cells see fine patterns, large ones more of a coarse one."""
MOST_TOGETHER = 3
"""Contexts that make a cell."""
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
    among: tuple[int, ...] = ()
    """Of how many contexts singles, pairs and triples were looked at."""

    @property
    def p_value(self) -> float:
        """How likely chance shows as much in any of the looks."""
        from scipy.special import ndtr  # noqa: PLC0415

        return float(min(1.0, 2.0 * self.looks * ndtr(-abs(self.bias) / self.se)))


def leftovers(
    x: Array,
    a: Array,
    e: Array,
    omega: Array,
    unit: Places | None,
    *,
    nominal: Collection[int] = (),
) -> list[Leftover]:
    """Return what is left in each of m estimates, or nothing where no cell can show it.

    x (n, p) are contexts, a (n, m) weights over their mean less 1, e (n,) residuals, omega (n,) how
    much rows count; rows of one ``unit`` (n,), such as a patient, are not independent. Contexts at
    the places ``nominal`` are numbers of levels that have no order.
    """
    if len(e) < FEWEST_ROWS:
        return []
    held = np.clip(e, *np.quantile(e, [RESIDUAL_TAIL, 1.0 - RESIDUAL_TAIL]))
    held = held - np.average(held, weights=omega)
    look = Looks(x, frozenset(nominal))
    found = []
    alone = dict.fromkeys(look.varying, 0.0)
    for together in range(1, MOST_TOGETHER + 1):
        chosen = look.among(together, alone)
        for cell, at in look.cells(together, chosen, CELL_ROWS):
            bias, se = biases(cell, a, held, omega, unit)
            if (se > 0.0).all():
                found.append((bias, se, at))
                if together == 1:
                    alone[at[0]] = max(alone[at[0]], float(np.max(np.abs(bias) / se)))
    if not found:
        return []
    bias, se = (np.stack([one[k] for one in found]) for k in (0, 1))
    best = np.argmax(np.abs(bias) / se, axis=0)
    among = tuple(len(look.among(size, alone)) for size in range(1, MOST_TOGETHER + 1))
    return [
        Leftover(float(bias[k, i]), float(se[k, i]), found[k][2], len(found), among)
        for i, k in enumerate(best)
    ]


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
