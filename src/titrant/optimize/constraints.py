"""Sets that parameters must stay in, each known by its projection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

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

    def free(self, params: Array, gradient: Array) -> NDArray[np.bool_]:  # noqa: ARG002
        """Return which parameters (m, P) may still move against the gradient; all by default."""
        return np.ones(params.shape, dtype=bool)


@dataclass(frozen=True, slots=True)
class Free(Constraint):
    """No constraint."""

    def project(self, params: Array) -> Array:
        """Return the points themselves."""
        return params


@dataclass(frozen=True, slots=True)
class Box(Constraint):
    """lower ≤ β ≤ upper, each (P,); infinite where there is no bound."""

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        if np.shape(self.lower) != np.shape(self.upper) or np.any(self.lower > self.upper):
            raise _check.invalid("upper", "Box", "at least `lower`, and as long", self.upper)

    def project(self, params: Array) -> Array:
        """Return the points cut to the box."""
        return np.clip(params, self.lower, self.upper)

    def free(self, params: Array, gradient: Array) -> NDArray[np.bool_]:
        """Return which parameters are not held at a bound by the gradient."""
        low = (params <= self.lower) & (gradient > 0)
        high = (params >= self.upper) & (gradient < 0)
        return ~(low | high)


@dataclass(frozen=True, slots=True)
class Ball(Constraint):
    """‖β‖₂ ≤ radius over the parameters that `counted` (P,) marks; an intercept is often free."""

    radius: float
    counted: Array | None = None

    def __post_init__(self) -> None:
        _check.positive(self.radius, "radius", "Ball")

    def project(self, params: Array) -> Array:
        """Return the points pulled toward the origin as far as needed."""
        counted = np.ones(params.shape[1]) if self.counted is None else self.counted
        norm = np.linalg.norm(params * counted, axis=1, keepdims=True)
        shrink = np.minimum(1.0, self.radius / np.maximum(norm, np.finfo(float).tiny))
        return np.where(counted > 0, params * shrink, params)
