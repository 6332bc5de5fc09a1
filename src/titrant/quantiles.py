"""Exact quantiles of a log that does not fit in memory, in one more pass over its rows.

The quantiles of the sample say nearly where those of all rows lie. One pass counts the rows below
that neighborhood and keeps those inside; the numbers sought are among them, in all but freak
cases, for which the neighborhood is widened.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from titrant.execute import BATCH, OverBatches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.source import Source
    from titrant.execute import Engine
    from titrant.survey import Sample

WIDTH = 6.0
"""Half the width of a neighborhood, in standard deviations of a rank,"""
FEWEST = 2.0
"""and as many rows of the sample more."""


@dataclass(frozen=True, slots=True)
class Neighborhood:
    """Rows below each of m intervals (m,), and the values inside each, in parts."""

    n: int
    below: Array
    inside: tuple[tuple[Array, ...], ...]

    def __add__(self, other: Neighborhood) -> Neighborhood:
        """Return the counts and values of both sets of rows."""
        inside = tuple(a + b for a, b in zip(self.inside, other.inside, strict=True))
        return Neighborhood(self.n + other.n, self.below + other.below, inside)


def quantiles(
    log: Source,
    sample: Sample,
    engine: Engine,
    column: Callable[[LoggedData], Array],
    levels: Sequence[float],
) -> Array:
    """Return the quantiles (levels, k) of columns (n, k) of a log, as `numpy.quantile` has them."""
    seen = column(sample.log)
    if sample.whole:
        return np.asarray(np.quantile(seen, levels, axis=0))
    targets = [(j, level) for level in levels for j in range(seen.shape[1])]
    found: dict[int, float] = {}
    width, fewest = WIDTH, FEWEST
    while len(found) < len(targets):
        missing = [i for i in range(len(targets)) if i not in found]
        edges = [(targets[i][0], *_around(seen, *targets[i], width, fewest)) for i in missing]
        task = OverBatches(partial(neighborhood, column, edges), BATCH)
        near = engine.add_up(task, log.partitions)
        for k, i in enumerate(missing):
            value = _order_statistics(near, k, targets[i][1])
            if value is not None:
                found[i] = value
        width, fewest = 4.0 * width + 1.0, 4.0 * fewest + 1.0
    return np.array([found[i] for i in range(len(targets))]).reshape(len(levels), -1)


def neighborhood(
    column: Callable[[LoggedData], Array],
    edges: Sequence[tuple[int, float, float]],
    log: LoggedData,
) -> Neighborhood:
    """Return the rows of a block below and inside intervals (column, from, to)."""
    values = column(log)
    below = np.array([np.count_nonzero(values[:, j] < low) for j, low, _ in edges], dtype=float)
    inside = [values[(values[:, j] >= low) & (values[:, j] <= high), j] for j, low, high in edges]
    return Neighborhood(len(values), below, tuple((part,) for part in inside))


def _around(seen: Array, j: int, level: float, width: float, fewest: float) -> tuple[float, float]:
    """Return an interval around a quantile of the sample, ± ``width`` sd of its rank and a bit."""
    ordered = np.sort(seen[:, j])
    m = len(ordered)
    reach = width * np.sqrt(m * level * (1.0 - level)) + fewest
    first, last = np.floor(level * (m - 1) - reach), np.ceil(level * (m - 1) + reach)
    low = -np.inf if first < 0 else float(ordered[int(first)])
    high = np.inf if last > m - 1 else float(ordered[int(last)])
    return low, high


def _order_statistics(near: Neighborhood, k: int, level: float) -> float | None:
    """Return the quantile by the two values around it, or None if they lie elsewhere."""
    ordered = np.sort(np.concatenate(near.inside[k]))
    at = (near.n - 1) * level
    lower = int(np.floor(at)) - int(near.below[k])
    upper = min(lower + 1, near.n - 1 - int(near.below[k]))
    if lower < 0 or upper >= len(ordered):
        return None
    a, b = ordered[lower], ordered[upper]
    share = at - np.floor(at)
    # As numpy interpolates, so that all rows in memory give the same bits.
    return float(a + (b - a) * share if share < 0.5 else b - (b - a) * (1.0 - share))  # noqa: PLR2004
