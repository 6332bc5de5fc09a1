"""A dose that varies smoothly with the context: a ball of a reproducing-kernel Hilbert space."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.policies.base import ParametricPolicy
from titrant.policies.formats.formulas import (
    Exponential,
    Number,
    Product,
    Ratio,
    Sum,
    each_dose,
    linear,
)
from titrant.policies.formats.saving import (
    context,
    feature_names,
    matrix,
    number_or_vector,
    parameters,
)
from titrant.policies.linear import intercept_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.policies.formats.formulas import Formula

BLOCK = 4096
"""Rows whose similarities to all centers are held in memory at a time."""


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class RBF(ParametricPolicy):
    """τ(x) = intercept + Σⱼ coefⱼ k(x, cⱼ), k(x, c) = exp(−Σₖ((xₖ − cₖ)/scaleₖ)²/2).

    Centers c (m, p), coef (m,), or (m, d) for d doses at once. The parameters are the intercept
    and then the coefficients (row by row); centers and scale stay. `scale` is one number a column,
    or one for all if they are in comparable units. Without `coef` it is a template for a learner.
    """

    centers: Array
    coef: Array | None = None
    scale: float | Array = field(kw_only=True)
    intercept: float | Array = field(default=0.0, kw_only=True)
    features: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __init__(
        self,
        centers: ArrayLike,
        coef: ArrayLike | None = None,
        *,
        scale: ArrayLike,
        intercept: ArrayLike = 0.0,
        features: Sequence[str] | None = None,
    ) -> None:
        points = matrix(centers, "centers", "RBF", ndim=2)
        weights = None if coef is None else matrix(coef, "coef", "RBF", ndim=(1, 2))
        if weights is not None and len(weights) != len(points):
            rule = f"an array with {len(points)} rows, one for each center"
            raise _check.invalid("coef", "RBF", rule, coef)
        object.__setattr__(self, "centers", points)
        object.__setattr__(self, "coef", weights)
        object.__setattr__(self, "scale", scales_of(scale, points.shape[1], "RBF"))
        object.__setattr__(self, "intercept", intercept_for(weights, intercept, "RBF"))
        object.__setattr__(self, "features", feature_names(features, points.shape[1], "RBF"))

    def __call__(self, X: object) -> Array:
        """Return the doses for contexts X, an array (n, p) or a table: (n,) or (n, d)."""
        coef, x = self._filled(), self._context(X)
        parts = [self._similarity(x[rows]) @ coef for rows in _blocks(len(x))]
        return np.concatenate([np.empty((0, *coef.shape[1:])), *parts]) + self.intercept

    @property
    def params(self) -> Array:
        """The parameters β = (intercept, coef) (1 + m,) or (d + m·d,)."""
        return np.append(self.intercept, self._filled())

    def with_params(self, params: Array) -> RBF:
        """Return the policy with another intercept and other coefficients."""
        coef = self._filled()
        d = np.size(self.intercept)
        new = parameters(params, d + coef.size, "RBF")
        intercept = new[:d] if np.ndim(self.intercept) else new[0]
        return RBF(
            self.centers,
            new[d:].reshape(coef.shape),
            scale=self.scale,
            intercept=intercept,
            features=self.features,
        )

    def vjp(self, X: Array, g: Array) -> Array:
        """Return (Σᵢ gᵢ, Σᵢ k(xᵢ, cⱼ)gᵢ for each center j) (P,)."""
        x, total = self._context(X), np.zeros_like(self._filled())
        for rows in _blocks(len(x)):
            total += self._similarity(x[rows]).T @ g[rows]
        return np.append(np.sum(g, axis=0), total)

    def formulas(self, contexts: tuple[Formula, ...]) -> tuple[Formula, ...]:
        """Return intercept + Σⱼ coefⱼ k(x, cⱼ) for each dose."""
        coef = self._filled()
        scale = np.broadcast_to(self.scale, self.centers.shape[1:])
        bumps = tuple(_bump(contexts, center, scale) for center in self.centers)
        weights = coef.reshape(len(coef), -1).T
        levels = each_dose(self.intercept, len(weights))
        return tuple(linear(b, own, bumps) for b, own in zip(levels, weights, strict=True))

    def norm(self) -> float | Array:
        """Return the RKHS norm of τ − intercept, one per dose: (coef'K coef)^½, Kᵢⱼ = k(cᵢ, cⱼ)."""
        coef = self._filled()
        squared = np.sum(coef * (self._similarity(self.centers) @ coef), axis=0)
        root = np.sqrt(np.maximum(squared, 0.0))  # K is semidefinite up to rounding
        return root if coef.ndim > 1 else float(root)

    def _similarity(self, x: Array) -> Array:
        """Return k(xᵢ, cⱼ) (n, m)."""
        # Distances do not depend on the origin; one amid the centers keeps the expansion of the
        # square from canceling.
        origin = self.centers.mean(axis=0)
        a, c = (x - origin) / self.scale, (self.centers - origin) / self.scale
        squared: Array = np.sum(a**2, axis=1)[:, None] - 2.0 * (a @ c.T) + np.sum(c**2, axis=1)
        similarity: Array = np.exp(-0.5 * np.maximum(squared, 0.0))
        return similarity

    def _context(self, X: object) -> Array:
        return context(X, self.centers.shape[1], "RBF", self.features)

    def _filled(self) -> Array:
        if self.coef is None:
            raise InvalidArgument(
                "`RBF` without `coef` is a template: it has no doses yet. Give coefficients, "
                f"one for each of its {len(self.centers)} centers, or let a learner fill it."
            )
        return self.coef


def _bump(contexts: tuple[Formula, ...], center: Array, scale: Array) -> Formula:
    """Return exp(−Σₖ((xₖ − cₖ)/scaleₖ)²/2)."""
    apart = [
        Ratio(Sum((x, Number(-c))), s)
        for x, c, s in zip(contexts, center.tolist(), scale.tolist(), strict=True)
    ]
    return Exponential(Sum(tuple(Product((Number(-0.5), z, z)) for z in apart)))


def scales_of(scale: ArrayLike, columns: int | None, owner: str) -> float | Array:
    """Return a number > 0, or one for each of the columns (where their number is known)."""
    value = number_or_vector(scale, "scale", owner)
    right = np.ndim(value) == 0 or columns in {None, np.size(value)}
    if not right or np.any(np.asarray(value) <= 0.0):
        each = "each context" if columns is None else f"each of {columns} columns"
        rule = f"a finite number > 0, or one for {each}"
        raise _check.invalid("scale", owner, rule, scale)
    return value


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, n, BLOCK))
