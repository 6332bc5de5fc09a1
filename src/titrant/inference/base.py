"""What an interval rests on: centers, their joint covariance, and a reference distribution."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators import Joint, JointPass


@dataclass(frozen=True, slots=True)
class Interval:
    """center ± t_ν·se: an interval at any level; ν = ∞ is the normal one."""

    center: float
    se: float
    degrees: float
    method: str
    note: str | None = None
    """What kept the method from its ordinary way, if anything did."""

    def at(self, level: float) -> tuple[float, float]:
        """Return the bounds at a level such as 0.95."""
        half = self.se * quantile(
            0.5 + _check.probability(level, "level", "interval") / 2, self.degrees
        )
        return self.center - half, self.center + half

    def to_dict(self) -> dict[str, object]:
        """Return the interval as plain values."""
        low, high = self.at(0.95)
        return {
            "method": self.method,
            "center": self.center,
            "se": self.se,
            "degrees_of_freedom": self.degrees if math.isfinite(self.degrees) else None,
            "low_95": low,
            "high_95": high,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Inference:
    """m centers (m,) with their joint covariance (m, m) and degrees of freedom (m,)."""

    method: str
    centers: Array
    covariance: Array
    degrees: Array
    notes: tuple[str | None, ...]

    def interval(self, i: int) -> Interval:
        """Return the interval of estimate i."""
        se = float(np.sqrt(max(self.covariance[i, i], 0.0)))
        return Interval(
            float(self.centers[i]), se, float(self.degrees[i]), self.method, self.notes[i]
        )

    def contrast(self, a: int, b: int) -> Interval:
        """Return the interval of a − b, which knows that both used the same rows."""
        c = self.covariance
        se = float(np.sqrt(max(c[a, a] + c[b, b] - 2 * c[a, b], 0.0)))
        degrees = float(min(self.degrees[a], self.degrees[b]))
        note = self.notes[a] or self.notes[b]
        return Interval(float(self.centers[a] - self.centers[b]), se, degrees, self.method, note)


class IntervalMethod(ABC):
    """How intervals are made around the answers to several questions on one log."""

    @abstractmethod
    def infer(self, point: Joint, over_rows: JointPass) -> Inference:
        """Return what the intervals of the answers rest on."""


def quantile(p: float, degrees: float) -> float:
    """Return the p-quantile of Student's t, normal when the degrees of freedom are infinite."""
    from scipy.special import ndtri, stdtrit  # noqa: PLC0415

    return float(ndtri(p) if math.isinf(degrees) else stdtrit(degrees, p))
