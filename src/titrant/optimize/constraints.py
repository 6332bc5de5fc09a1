"""Sets that parameters must stay in, each known by its projection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array


class Constraint(ABC):
    """A closed convex set of parameters."""

    @abstractmethod
    def project(self, params: Array) -> Array:
        """Return the nearest points (m, P) of the set."""

    @abstractmethod
    def limits(self, size: int) -> tuple[Array, float]:
        """Return lower and upper bounds and what counts for the norm (3, P), and its limit."""


@dataclass(frozen=True, slots=True)
class Free(Constraint):
    """No constraint."""

    def project(self, params: Array) -> Array:
        """Return the points themselves."""
        return params

    def limits(self, size: int) -> tuple[Array, float]:
        """Return no limits."""
        return _limits(size), np.inf


@dataclass(frozen=True, slots=True)
class Box(Constraint):
    """lower ≤ β ≤ upper, each (P,); infinite where there is no bound."""

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        lower, upper = np.asarray(self.lower, np.float64), np.asarray(self.upper, np.float64)
        if lower.shape != upper.shape or lower.ndim != 1 or not np.all(lower <= upper):
            raise _check.invalid("upper", "Box", "at least `lower`, and as long", self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    def project(self, params: Array) -> Array:
        """Return the points cut to the box."""
        return np.clip(params, self.lower, self.upper)

    def limits(self, size: int) -> tuple[Array, float]:
        """Return the bounds."""
        limits = _limits(size)
        limits[0], limits[1] = _as_long(self.lower, size), _as_long(self.upper, size)
        return limits, np.inf


@dataclass(frozen=True, slots=True)
class Ball(Constraint):
    """‖β‖₂ ≤ radius over the parameters that `counted` (P,) marks; an intercept is often free."""

    radius: float
    counted: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        _check.positive(self.radius, "radius", "Ball")
        if self.counted is not None:
            object.__setattr__(self, "counted", np.asarray(self.counted, dtype=bool))

    def project(self, params: Array) -> Array:
        """Return the points pulled toward the origin as far as needed."""
        counted = self.limits(params.shape[1])[0][2]
        norm = np.linalg.norm(params * counted, axis=1, keepdims=True)
        shrink = self.radius / np.maximum(norm, self.radius)
        return np.where(counted > 0, params * shrink, params)

    def limits(self, size: int) -> tuple[Array, float]:
        """Return what counts for the norm, and its limit."""
        limits = _limits(size)
        limits[2] = 1.0 if self.counted is None else _as_long(self.counted, size)
        return limits, float(self.radius)


def _limits(size: int) -> Array:
    """Return bounds that never bind, and no parameter that counts (3, P)."""
    limits = np.zeros((3, size))
    limits[0], limits[1] = -np.inf, np.inf
    return limits


def _as_long(values: NDArray[Any], size: int) -> NDArray[Any]:
    if values.shape != (size,):
        raise _check.invalid(
            "constraint", "LBFGS", f"as long as the {size} parameters", values.shape
        )
    return values


def paper_box(context: Array, treatment: Array) -> Box:
    """Return the paper's bounds on the coefficients of τ = β'x: 0 ≤ βⱼ ≤ mean dose/mean xⱼ.

    context (n, p), treatment (n,). Where a mean is negative the interval is the other way round;
    a context whose mean is 0 has no bound.
    """
    ends = np.full(context.shape[1], np.inf)
    mean = context.mean(axis=0)
    np.divide(treatment.mean(), mean, out=ends, where=mean != 0)
    centered = np.isinf(ends)
    return Box(
        np.where(centered, -np.inf, np.minimum(ends, 0.0)),
        np.where(centered, np.inf, np.maximum(ends, 0.0)),
    )
