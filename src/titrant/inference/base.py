"""What an interval is, and what the intervals of several estimates on one log rest on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant.estimators.joint import answered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.estimators import Joint, JointPass
    from titrant.estimators.joint import Search


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
    def search(self, point: Joint) -> Search[Inference]:
        """Ask for passes over the rows, and return what the intervals of the answers rest on."""

    def infer(self, point: Joint, over_rows: JointPass) -> Any:  # noqa: ANN401  (of each method)
        """Return what `search` finds, in passes of its own."""
        return answered(self.search(point), over_rows)


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
        between, se = paired(self.centers, self.covariance, a, b)
        degrees = float(min(self.degrees[a], self.degrees[b]))
        note = self.notes[a] or self.notes[b]
        return StudentInterval(between, se, degrees, self.method, note)


EPSILON = float(np.finfo(np.float64).eps)
ROUNDING = 1e-12
"""Differences below this share of the size of what is subtracted are rounding: they count as 0."""


def difference(values: Array, covariance: Array, a: int, b: int) -> float:
    """Return estimate a − estimate b; 0 where that is rounding, as of two rules that are one."""
    spread = np.sqrt(max(covariance[a, a], 0.0)) + np.sqrt(max(covariance[b, b], 0.0))
    size = float(abs(values[a]) + abs(values[b]) + spread)
    return without_rounding(float(values[a] - values[b]), size)


def without_rounding(number: float, size: float) -> float:
    """Return the number, 0 if it is rounding of numbers of a size."""
    return 0.0 if abs(number) <= ROUNDING * size else number


def difference_se(covariance: Array, a: int, b: int) -> float:
    """Return the standard error of estimate a − estimate b from their joint covariance.

    The variance of two estimates that are all but one is known to the rounding of their own, and
    counts as no less.
    """
    if a == b:
        return 0.0
    own = covariance[a, a] + covariance[b, b]
    return float(np.sqrt(max(own - 2 * covariance[a, b], EPSILON * own)))


def paired(values: Array, covariance: Array, a: int, b: int) -> tuple[float, float]:
    """Return estimate a − estimate b and its standard error, 0 and 0 for two rules that are one."""
    between, se = difference(values, covariance, a, b), difference_se(covariance, a, b)
    own = float(covariance[a, a] + covariance[b, b])
    return between, 0.0 if between == 0.0 and se**2 <= ROUNDING * own else se


def quantile(p: float, degrees: float) -> float:
    """Return the p-quantile of Student's t, normal when the degrees of freedom are infinite."""
    from scipy.special import ndtri, stdtrit  # noqa: PLC0415

    return float(ndtri(p) if math.isinf(degrees) else stdtrit(degrees, p))


# The naive interval: estimate ± z·SE, as if smoothing had no bias.


@dataclass(frozen=True, slots=True)
class Normal(IntervalMethod):
    """v̂ ± z·SE by the delta method. It ignores the smoothing bias: 95 % may cover 75 %."""

    def search(self, point: Joint) -> Search[StudentInference]:
        """Return the estimates themselves, with infinite degrees of freedom."""
        yield from ()
        m = len(point.values)
        infinite = np.full(m, np.inf)
        return StudentInference("normal", point.values, point.covariance, infinite, (None,) * m)


# Intervals that hold for many estimates at once.
#
# The multiplier bootstrap perturbs the joint influence functions by independent normal numbers:
# Σᵢ ξᵢφᵢ/n. Given the data that is exactly normal with the joint covariance, so the largest
# |t| is drawn from it directly, without going back to the rows.

DRAWS = 20_000
"""Draws of the largest |t|: a 95 % quantile is then known to about half a percent."""


def simultaneous_probability(covariance: Array, level: float, seed: int = 0) -> float:
    """Return p such that all |z_i| stay below the normal p-quantile with probability ``level``.

    z ~ N(0, R), R the correlation of ``covariance`` (m, m). For m = 1 p is (1 + level)/2.
    """
    from scipy.special import ndtr  # noqa: PLC0415

    _check.probability(level, "level", "simultaneous")
    sd = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    moving = sd > 0
    if moving.sum() <= 1:
        return 0.5 + level / 2
    correlation = covariance[np.ix_(moving, moving)] / np.outer(sd[moving], sd[moving])
    eigenvalues, v = np.linalg.eigh(correlation)
    # The symmetric root is unique. Eigenvectors are not: their signs, and where eigenvalues are
    # equal all of them, depend on the processor, and so would the draws.
    root = (v * np.sqrt(np.maximum(eigenvalues, 0.0))) @ v.T
    z = np.random.default_rng(seed).standard_normal((DRAWS, len(correlation))) @ root
    return float(ndtr(np.quantile(np.abs(z).max(axis=1), level)))
