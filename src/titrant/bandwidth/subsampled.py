"""Choose on some rows, rescale for all of them, as the paper does.

A best bandwidth shrinks like n^(−1/(d+4)), so the choice h₀ of n₀ rows becomes
h = h₀·(n₀/n)^{1/(d+4)}; its bias and its standard error both shrink by (n₀/n)^{2/(d+4)}.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from titrant import _check
from titrant.bandwidth.averaged_bias_path import AveragedBiasPath
from titrant.bandwidth.base import Bandwidth, BandwidthSelector
from titrant.bandwidth.sample import sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant.estimators import Problem, Rows

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Subsampled(BandwidthSelector):
    """The choice of ``selector`` on ``rows`` rows drawn by ``seed``, rescaled to all n rows."""

    selector: BandwidthSelector = field(default_factory=AveragedBiasPath)
    rows: int = 5_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.selector, BandwidthSelector):
            raise _check.invalid(
                "selector", "Subsampled", "a selector such as PlugIn()", self.selector
            )
        _check.count(self.rows, "rows", "Subsampled")
        _check.count(self.seed, "seed", "Subsampled", at_least=0)

    def select(self, problem: Problem) -> Bandwidth:
        """Return the subsample's choice, rescaled; the plain choice when there are few rows."""
        if problem.n <= self.rows:
            return self.selector.select(problem)
        part = subproblem(problem, self.rows, self.seed)
        chosen, n0 = self.selector.select(part), part.n
        ratio = (n0 / problem.n) ** (1.0 / (len(problem.spread) + 4))
        return replace(
            chosen,
            h=chosen.h * ratio,
            selector=f"Subsampled({chosen.selector})",
            reason=f"{chosen.reason} That is for {n0:,} of {problem.n:,} rows; × {ratio:.3g}.",
            bias=None if chosen.bias is None else chosen.bias * ratio**2,
            se=None if chosen.se is None else chosen.se * ratio**2,
        )


def subproblem(problem: Problem, size: int, seed: int) -> Problem:
    """Return the problem on ``size`` of its rows, with the spread of all of them."""
    everything = problem.rows()
    some = everything.take(sample(len(everything.y), size, seed))

    def over_rows(statistic: Callable[[Rows], S]) -> S:
        return statistic(some)

    return replace(problem, n=len(some.y), over_rows=over_rows, rows=lambda: some)
