"""What an interval is, and what the intervals of several estimates on one log rest on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.estimators import Joint, JointPass


class Interval(ABC):
    """A confidence interval at any level."""

    center: float
    se: float
    method: str
    note: str | None
    """What kept the method from its ordinary way, or what it does not cover."""

    @abstractmethod
    def at(self, level: float) -> tuple[float, float]:
        """Return the bounds at a level such as 0.95."""

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return the interval at ``level`` as plain values."""
        low, high = self.at(level)
        return {
            "method": self.method,
            "center": self.center,
            "se": self.se,
            "level": level,
            "low": low,
            "high": high,
            "note": self.note,
        }


class Inference(ABC):
    """What the intervals of m estimates on one log, and of their differences, rest on."""

    @abstractmethod
    def interval(self, i: int) -> Interval:
        """Return the interval of estimate i."""

    @abstractmethod
    def contrast(self, a: int, b: int) -> Interval:
        """Return the interval of a − b, which knows that both used the same rows."""

    def only(self, kept: Sequence[int]) -> Inference:
        """Return the inference about some of the estimates, in the order of ``kept``."""
        return Subset(self, tuple(kept))


@dataclass(frozen=True, slots=True)
class Subset(Inference):
    """Some of the estimates of an inference, numbered anew."""

    whole: Inference
    kept: tuple[int, ...]

    def interval(self, i: int) -> Interval:
        """Return the interval of estimate i."""
        return self.whole.interval(self.kept[i])

    def contrast(self, a: int, b: int) -> Interval:
        """Return the interval of a − b."""
        return self.whole.contrast(self.kept[a], self.kept[b])


class IntervalMethod(ABC):
    """How intervals are made around the answers to several questions on one log."""

    @abstractmethod
    def infer(self, point: Joint, over_rows: JointPass) -> Inference:
        """Return what the intervals of the answers rest on."""


@dataclass(frozen=True, slots=True)
class StudentInterval(Interval):
    """center ± t_ν·se; ν = ∞ is the normal interval."""

    center: float
    se: float
    degrees: float
    method: str
    note: str | None = None

    def at(self, level: float) -> tuple[float, float]:
        """Return the bounds at a level such as 0.95."""
        return self.around(0.5 + _check.probability(level, "level", "interval") / 2)

    def around(self, p: float) -> tuple[float, float]:
        """Return center ± (p-quantile of t_ν)·se."""
        half = self.se * quantile(p, self.degrees)
        return self.center - half, self.center + half


@dataclass(frozen=True, slots=True)
class StudentInference(Inference):
    """m centers (m,) with their joint covariance (m, m) and degrees of freedom (m,)."""

    method: str
    centers: Array
    covariance: Array
    degrees: Array
    notes: tuple[str | None, ...]

    def only(self, kept: Sequence[int]) -> StudentInference:
        """Return the inference about some of the estimates."""
        return StudentInference(
            self.method,
            self.centers[kept],
            self.covariance[np.ix_(kept, kept)],
            self.degrees[kept],
            tuple(self.notes[i] for i in kept),
        )

    def interval(self, i: int) -> StudentInterval:
        """Return the interval of estimate i."""
        se = float(np.sqrt(max(self.covariance[i, i], 0.0)))
        return StudentInterval(
            float(self.centers[i]), se, float(self.degrees[i]), self.method, self.notes[i]
        )

    def contrast(self, a: int, b: int) -> StudentInterval:
        """Return the interval of a − b, with the smaller degrees of freedom of the two."""
        difference = float(self.centers[a] - self.centers[b])
        se = difference_se(self.covariance, a, b)
        degrees = float(min(self.degrees[a], self.degrees[b]))
        note = self.notes[a] or self.notes[b]
        return StudentInterval(difference, se, degrees, self.method, note)


def difference_se(covariance: Array, a: int, b: int) -> float:
    """Return the standard error of estimate a − estimate b from their joint covariance."""
    variance = covariance[a, a] + covariance[b, b] - 2 * covariance[a, b]
    return float(np.sqrt(max(variance, 0.0)))


def quantile(p: float, degrees: float) -> float:
    """Return the p-quantile of Student's t, normal when the degrees of freedom are infinite."""
    from scipy.special import ndtri, stdtrit  # noqa: PLC0415

    return float(ndtri(p) if math.isinf(degrees) else stdtrit(degrees, p))
