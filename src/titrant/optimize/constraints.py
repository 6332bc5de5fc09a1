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

    Limits = tuple[Array, float]
    """Lower and upper bounds and what counts for the norm (3, P), and the limit of the norm."""


class Constraint(ABC):
    """A closed convex set of parameters; the projection is all that one of your own needs."""

    @abstractmethod
    def project(self, params: Array) -> Array:
        """Return the nearest points (m, P) of the set to points (m, P)."""


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
        lower, upper = np.asarray(self.lower, np.float64), np.asarray(self.upper, np.float64)
        if lower.shape != upper.shape or lower.ndim != 1 or not np.all(lower <= upper):
            raise _check.invalid("upper", "Box", "at least `lower`, and as long", self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    def project(self, params: Array) -> Array:
        """Return the points cut to the box."""
        size = params.shape[1]
        return np.clip(params, _as_long(self.lower, size), _as_long(self.upper, size))

    def limits(self, size: int) -> Limits:
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

    def limits(self, size: int) -> Limits:
        """Return what counts for the norm, and its limit."""
        limits = _limits(size)
        limits[2] = 1.0 if self.counted is None else _as_long(self.counted, size)
        return limits, float(self.radius)


@dataclass(frozen=True, slots=True)
class Scaled(Constraint):
    """{γ : scale·γ in the set}: a box may have a scale for each parameter, any other set has one.

    Only then is the nearest point in one unit the nearest one in the other.
    """

    inside: Constraint
    scale: float | Array

    def project(self, params: Array) -> Array:
        """Return the nearest points (m, P) of the set."""
        return self.inside.project(params * self.scale) / self.scale


def limits_of(constraint: Constraint, size: int) -> Limits | None:
    """Return a box or a ball as compiled steps take it; None for a set known by its projection.

    A subclass may project in another way, so only the classes themselves count.
    """
    if isinstance(constraint, Scaled):
        inside = limits_of(constraint.inside, size)
        return None if inside is None else _rescaled(inside, constraint.scale)
    if type(constraint) is Free:
        return _limits(size), np.inf
    if isinstance(constraint, Box) and type(constraint) is Box:
        return constraint.limits(size)
    if isinstance(constraint, Ball) and type(constraint) is Ball:
        return constraint.limits(size)
    return None


def ties_no_parameters(constraint: Constraint) -> bool:
    """Whether each parameter is constrained by itself, so that each may have a unit of its own.

    Of a set known by its projection nobody knows.
    """
    return type(constraint) in (Free, Box)


def _rescaled(inside: Limits, scale: float | Array) -> Limits:
    limits, radius = inside
    limits[:2] /= scale
    return limits, float(radius / np.max(scale))


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


def mean_box(context: Array, treatment: Array) -> Box:
    """Return bounds on the coefficients of τ = β'x: 0 ≤ βⱼ ≤ mean dose/mean xⱼ.

    context (n, p), treatment (n,). At its end a context alone gives the mean dose on average. Where
    a mean is negative the interval is the other way round; a context whose mean is 0 has no bound.
    These are not the paper's bounds, ± largest dose/(0.25·p·mean xⱼ).
    """
    ends = np.full(context.shape[1], np.inf)
    mean = context.mean(axis=0)
    np.divide(treatment.mean(), mean, out=ends, where=mean != 0)
    centered = np.isinf(ends)
    return Box(
        np.where(centered, -np.inf, np.minimum(ends, 0.0)),
        np.where(centered, np.inf, np.maximum(ends, 0.0)),
    )
