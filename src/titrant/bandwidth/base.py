"""What a bandwidth selector is: a choice of h for a problem, with its reasons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.estimators import Problem


CLEAR_KINK = 0.1
"""Evidence of a kink from which on it counts in full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """A chosen bandwidth and why it was chosen."""

    h: Array
    """One number (), one a dose (d,), or a matrix H (d, d)."""
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


class BandwidthSelector(ABC):
    """Chooses the bandwidth of a problem from logged data alone."""

    @abstractmethod
    def select(self, problem: Problem) -> Bandwidth:
        """Return the bandwidth for this problem."""


def as_bandwidth(factor: float, problem: Problem) -> Array:
    """Return ``factor`` × sd(T): a number for one dose, a vector (d,) for several."""
    return np.squeeze(factor * problem.spread)


def as_selector(bandwidth: BandwidthSelector | ArrayLike) -> BandwidthSelector:
    """Return a selector as it is, and a number, vector or matrix as a fixed choice."""
    from titrant.bandwidth.fixed import Fixed  # noqa: PLC0415  (it derives from this module)

    return bandwidth if isinstance(bandwidth, BandwidthSelector) else Fixed(bandwidth)
