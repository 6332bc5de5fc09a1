"""What a bandwidth selector is: a choice of h for a problem, with its reasons."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.kernels import Scale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.estimators import Problem
    from titrant.estimators.joint import Search


CLEAR_KINK = 0.1
"""Evidence of a kink from which on it counts in full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """A chosen bandwidth and why it was chosen."""

    h: Array
    """One number (), one per dose (d,), or a matrix H (d, d)."""
    selector: str
    reason: str
    """One sentence that explains the choice."""
    bias: float | None = None
    """Estimated smoothing bias at h, where the selector estimates one."""
    se: float | None = None
    """Estimated standard error at h, where the selector estimates one."""
    kink: float = 0.0
    """Evidence, 0 to 1, that the outcome has a kink at the policy's dose; 0 if nobody looked."""
    flag: str | None = None
    """What kept the selector from its ordinary choice, if anything did."""

    def __post_init__(self) -> None:
        h = _check.finite_array(self.h, "h", "Bandwidth", ndim=(0, 1, 2))
        object.__setattr__(self, "h", h)

    def to_dict(self) -> dict[str, object]:
        """Return the choice as plain values."""
        return {
            "h": self.h.tolist(),
            "selector": self.selector,
            "reason": self.reason,
            "bias": self.bias,
            "se": self.se,
            "kink": self.kink,
            "flag": self.flag,
        }


class BandwidthSelector:
    """Chooses the bandwidth of a problem from logged data alone.

    A class defines `search`, which asks for passes over the rows that many policies share; or
    `select`, if it needs none or makes its own.
    """

    def __init_subclass__(cls) -> None:
        if cls.search is BandwidthSelector.search and cls.select is BandwidthSelector.select:
            raise TypeError(f"`{cls.__name__}` must define `search`, or `select`.")

    def search(self, problem: Problem) -> Search[Bandwidth]:
        """Ask for passes over the rows (``path = yield from path_search(problem)``); return h."""
        yield from ()
        return self.select(problem)

    def select(self, problem: Problem) -> Bandwidth:
        """Return the bandwidth for this problem, in passes of its own."""
        return problem.answered(self.search(problem))


def as_bandwidth(factor: float, problem: Problem) -> Array:
    """Return ``factor`` × sd(T): a number for one dose, a vector (d,) for several."""
    return np.squeeze(factor * problem.spread)


def as_selector(bandwidth: BandwidthSelector | ArrayLike) -> BandwidthSelector:
    """Return a selector as it is, and a number, vector or matrix as a fixed choice."""
    return bandwidth if isinstance(bandwidth, BandwidthSelector) else Fixed(bandwidth)


# Bias against variance: the bandwidth at which a squared bias B²g⁴ and a variance V/gᵈ balance.


def rate(problem: Problem) -> float:
    """Return n^(−1/(d+4)), the rate of the best bandwidth in units of sd(T)."""
    return float(problem.n ** (-1 / (len(problem.spread) + 4)))


def best_factor(squared_slope: float, variance: float, d: int) -> float:
    """Return argmin_g B²g⁴ + V/gᵈ = (d·V/(4B²))^{1/(d+4)}; infinite when there is no bias."""
    if squared_slope <= 0.0:
        return math.inf
    return float((d * variance / (4.0 * squared_slope)) ** (1.0 / (d + 4)))


# The user's own bandwidth.


@dataclass(frozen=True, slots=True)
class Fixed(BandwidthSelector):
    """A number, one number a dose, or a matrix H in squared dose units."""

    bandwidth: ArrayLike

    def select(self, problem: Problem) -> Bandwidth:
        """Return the user's bandwidth, checked."""
        Scale.of(self.bandwidth, len(problem.spread))
        h = np.asarray(self.bandwidth, dtype=np.float64)
        return Bandwidth(h=h, selector="Fixed", reason="The bandwidth was given.")
