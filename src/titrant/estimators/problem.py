"""One policy on one log: what a bandwidth selector, an interval or a trust check may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from titrant.kernels import Scale

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.estimators.smoothed import SmoothedEstimator

S = TypeVar("S")
"""A statistic that adds up over rows."""


class Pass(Protocol):
    """One pass over the rows of a problem, wherever they are."""

    def __call__(self, statistic: Callable[[Rows], S]) -> S:
        """Return the sum of ``statistic`` over all blocks of rows, added in their order."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A policy's value by ``estimator``, at a bandwidth still to be chosen."""

    estimator: SmoothedEstimator
    n: int
    spread: Array
    """sd(T) of each dose (d,): the unit of bandwidths."""
    over_rows: Pass
    rows: Callable[[], Rows]
    """All rows at once (a seeded sample of them where they do not fit in memory)."""

    def scale(self, factor: float) -> Scale:
        """Return the bandwidth ``factor`` × sd(T) of each dose."""
        return Scale.of(factor * self.spread, len(self.spread))
