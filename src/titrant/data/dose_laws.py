"""Laws by which doses were logged in a simulated design: draw, density and cdf around a center."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from titrant import _check

if TYPE_CHECKING:
    from titrant._types import Array

LEAST_UNIFORM = 2.0**-54  # Generator.random may return 0, whose normal quantile is −inf


class DoseLaw(Protocol):
    """The law of a logged dose around a center (n,) or (n, d); coordinates are independent."""

    @property
    def lower(self) -> float:
        """The least possible dose."""

    @property
    def upper(self) -> float:
        """The greatest possible dose."""

    def sample(self, rng: np.random.Generator, center: Array) -> Array:
        """Return one dose for each center, in the shape of `center`."""

    def density(self, center: Array, t: Array) -> Array:
        """Return f(t | center), (n,)."""

    def cdf(self, center: Array, t: Array) -> Array:
        """Return P(T ≤ t | center) in every coordinate, (n,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalDose:
    """T ~ N(center, sd²) given that it lies in [lower, upper]."""

    sd: float
    lower: float = -np.inf
    upper: float = np.inf

    def __post_init__(self) -> None:
        """Refuse a standard deviation that is not positive."""
        _check.positive(self.sd, "sd", "NormalDose")

    def sample(self, rng: np.random.Generator, center: Array) -> Array:
        """Return center + sd·Φ⁻¹(a + U(b − a)), a and b the normal cdf at the bounds."""
        a, b = self._edges(center)
        z = ndtri(a + (b - a) * uniforms(rng, center.shape))
        return np.clip(center + self.sd * z, self.lower, self.upper)

    def density(self, center: Array, t: Array) -> Array:
        """Return φ((t − center)/sd) / (sd·(b − a)) within the bounds, 0 outside."""
        a, b = self._edges(center)
        bell = np.exp(-0.5 * ((t - center) / self.sd) ** 2) / (self.sd * np.sqrt(2 * np.pi))
        inside = (t >= self.lower) & (t <= self.upper)
        return _joint(np.where(inside, bell / (b - a), 0.0))

    def cdf(self, center: Array, t: Array) -> Array:
        """Return (Φ((t − center)/sd) − a) / (b − a), at most 1 and at least 0."""
        a, b = self._edges(center)
        return _joint(np.clip((ndtr((t - center) / self.sd) - a) / (b - a), 0.0, 1.0))

    def _edges(self, center: Array) -> tuple[Array, Array]:
        a, b = (ndtr((edge - center) / self.sd) for edge in (self.lower, self.upper))
        return a, b


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformDose:
    """T ~ U[lower, upper], whatever the center."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        """Refuse an empty range."""
        _check.positive(self.upper - self.lower, "upper - lower", "UniformDose")

    def sample(self, rng: np.random.Generator, center: Array) -> Array:
        """Return doses in the shape of `center`."""
        return rng.uniform(self.lower, self.upper, center.shape)

    def density(self, center: Array, t: Array) -> Array:
        """Return 1/(upper − lower) within the bounds, 0 outside."""
        inside = (t >= self.lower) & (t <= self.upper)
        return _joint(np.where(inside, 1.0 / (self.upper - self.lower), 0.0) + 0.0 * center)

    def cdf(self, center: Array, t: Array) -> Array:
        """Return (t − lower)/(upper − lower), at most 1 and at least 0."""
        share = (t - self.lower) / (self.upper - self.lower)
        return _joint(np.clip(share, 0.0, 1.0) + 0.0 * center)


def uniforms(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return numbers drawn from the open interval (0, 1)."""
    return np.maximum(rng.random(shape), LEAST_UNIFORM)


def _joint(each: Array) -> Array:
    """Return the product over independent coordinates, (n,) from (n,) or (n, d)."""
    return each if each.ndim == 1 else np.prod(each, axis=1)
