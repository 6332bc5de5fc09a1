"""Classes that bend a line: a curve for each context, or squares and products of contexts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np

from titrant.data.columns import places
from titrant.errors import InvalidArgument
from titrant.learn.classes.base import (
    FittedClass,
    PolicyClass,
    slope_of,
    used_columns,
    varying,
)
from titrant.learn.classes.linear import FittedLinear, LinearClass
from titrant.policies.bent import Additive, Products, product_basis, spline_basis
from titrant.scaling import Held, spread_of

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.policies.bent import Bent

BEND_RIDGE = 3.0
"""The ridge of bends over that of lines: a rule stays straight unless the rows say otherwise."""
KNOTS = (0.05, 0.275, 0.5, 0.725, 0.95)
"""The quantiles of a context at which its curve has knots."""
FEWEST_KNOTS = 3
MORE_THAN = 5
"""A context with more values than this has a curve, else a line."""
REACH = 1.5
"""How far beyond its outer knots a curve goes on, in sds of the context."""
MOST_CONTEXTS = 12
"""Contexts whose squares and products are learned: 90 of them."""
NARROWEST = 0.8
"""Narrower kernels took twice the time, and none of 31 rules of seen problems gained by them."""
NOTHING = 1e-6
"""A bend that a line follows up to this share of its size is none."""


class FittedBent(FittedClass):
    """φ = (1, z, b(x)·T − (1, z)·C): bends of which a line explains nothing, of variance 1."""

    __slots__ = ()
    linear: FittedLinear
    turn: Array
    """T (K, Q)."""
    lines: Array
    """C (1 + p, Q), the least squares of b·T on (1, z)."""

    @abstractmethod
    def basis(self, x: Array) -> Array:
        """Return b (n, K) for the contexts that the policy uses (n, p), held."""

    @abstractmethod
    def bent(self, coef: Array, intercept: Array | float, bends: Array) -> Bent:
        """Return the policy with these coefficients."""

    def features(self, X: Array) -> Array:
        """Return φ (n, 1 + p + Q)."""
        straight = self.linear.features(X)
        bends = self.basis(held(self.linear, X)) @ self.turn - straight @ self.lines
        return np.column_stack([straight, bends])

    def policy(self, params: Array) -> Bent:
        """Return the policy on the user's scale."""
        size = len(self.lines)
        bends = params[size:]
        coef, intercept = self.linear.scaled(params[:size] - self.lines @ bends)
        return self.bent(coef, intercept, self.turn @ bends)

    @property
    def narrowest(self) -> float:
        """The bandwidth by which classes are compared."""
        return NARROWEST

    @property
    def penalized(self) -> Array:
        """All but the intercept."""
        return np.append(0.0, np.ones(sum(self.lines.shape) - 1))

    @property
    def roughness(self) -> Array:
        """Bends count more than lines."""
        straight, bends = self.lines.shape
        return np.asarray(self.penalized * np.repeat([1.0, BEND_RIDGE], [straight, bends]))


def held(linear: FittedLinear, X: Array) -> Array:
    """Return the contexts that a class uses, far values held."""
    x = used_columns(X, linear.places)
    return x if linear.hold is None else linear.hold.columns(x)


def straightened(straight: Array, bends: Array) -> tuple[Array, Array]:
    """Return the least squares C (1 + p, K) of bends (n, K) on (1, z), and its residuals."""
    lines = np.asarray(np.linalg.lstsq(straight, bends, rcond=None)[0], dtype=np.float64)
    return lines, bends - straight @ lines


# A smooth curve for each context.


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveClass(PolicyClass):
    """One smooth curve a context: a line and, of more than 5 values, three bends.

    The bends are those of a natural cubic spline with five knots. ``features`` are the contexts of
    the log that the policy uses, in its order; all unless given. Those in ``straight`` have a line.
    """

    features: tuple[str, ...] | None = None
    straight: tuple[str, ...] = ()

    def on(self, log: LoggedData) -> FittedAdditive:
        """Return the class with the knots of a log."""
        places(self.straight, log.names, "policy to learn")
        used = varying(self.features, log, "An additive policy")
        linear = LinearClass(features=tuple(log.names[j] for j in used)).on(log)
        x = held(linear, log.context)
        knots = tuple(
            np.empty(0) if name in self.straight else knots_of(column)
            for name, column in zip(linear.names, x.T, strict=True)
        )
        reach = REACH * spread_of(x)
        z = linear.features(log.context)
        blocks = [_bends(knots, reach, z, x, j) for j in range(len(knots))]
        turn = np.zeros((sum(map(len, knots)), sum(t.shape[1] for t, _ in blocks)))
        lines = np.zeros((z.shape[1], turn.shape[1]))
        row = column = 0
        for j, (t, c) in enumerate(blocks):
            to = slice(column, column + t.shape[1])
            turn[row : row + len(t), to] = t
            lines[0, to], lines[1 + j, to] = c
            row, column = row + len(t), column + t.shape[1]
        return FittedAdditive(linear, turn, lines, knots, reach)


@dataclass(frozen=True, slots=True)
class FittedAdditive(FittedBent):
    """The bends of each context are whitened: their ridge is on the variance of the doses."""

    linear: FittedLinear
    turn: Array
    lines: Array
    knots: tuple[Array, ...]
    reach: Array

    def slope(self, context: str) -> int | None:
        """Return the place of a context's coefficient, if it has a line."""
        place = slope_of(self.linear, context)
        if place is None or not len(self.knots[self.linear.names.index(context)]):
            return place
        return FittedBent.slope(self, context)

    def basis(self, x: Array) -> Array:
        """Return the splines of all contexts (n, K)."""
        return spline_basis(x, self.knots, self.reach)

    def bent(self, coef: Array, intercept: Array | float, bends: Array) -> Additive:
        """Return the policy with these coefficients."""
        names = self.linear.names
        return Additive(
            coef, intercept, knots=self.knots, bends=bends, reach=self.reach, features=names
        )


def knots_of(column: Array) -> Array:
    """Return the knots of a context (n,); none where it has few values."""
    if len(np.unique(column)) <= MORE_THAN:
        return np.empty(0)
    knots = np.unique(np.quantile(column, KNOTS))
    return knots if len(knots) >= FEWEST_KNOTS else np.empty(0)


def has_curves(log: LoggedData, used: tuple[int, ...]) -> bool:
    """Whether any of these contexts would have a curve."""
    x = used_columns(log.context, used)
    return any(len(knots_of(column)) for column in Held.of(x).columns(x).T)


def _bends(
    knots: tuple[Array, ...], reach: Array, z: Array, x: Array, j: int
) -> tuple[Array, Array]:
    """Return T (m, Q) and C (2, Q) of context j: bends without a line in them, whitened."""
    mine = knots[j]
    if not len(mine):
        return np.empty((0, 0)), np.empty((2, 0))
    # Heights at the knots in which there is no line: m − 2 of them.
    unit = (mine - mine[0]) / (mine[-1] - mine[0])
    line = np.column_stack([np.ones_like(unit), unit])
    heights = np.linalg.qr(line, mode="complete")[0][:, 2:]
    bends = spline_basis(x[:, j : j + 1], (mine,), reach[j : j + 1]) @ heights
    lines, rest = straightened(z[:, [0, 1 + j]], bends)
    variance, axes = np.linalg.eigh(rest.T @ rest / len(rest))
    there = variance > NOTHING**2
    white = axes[:, there] / np.sqrt(variance[there])
    return heights @ white, lines @ white


# Squares and products of contexts.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductsClass(PolicyClass):
    """A line, squares and products of contexts, for at most 12 of them.

    ``features`` are the contexts of the log that the policy uses, in its order; all unless given.
    """

    features: tuple[str, ...] | None = None

    def on(self, log: LoggedData) -> FittedProducts:
        """Return the class with centers and sizes of the contexts and their products."""
        used = varying(self.features, log, "A policy with products")
        if len(used) > MOST_CONTEXTS:
            raise InvalidArgument(
                f"Squares and products of {len(used)} contexts are more than can be learned. "
                f"Name at most {MOST_CONTEXTS} by `features`."
            )
        linear = LinearClass(features=tuple(log.names[j] for j in used)).on(log)
        z = linear.features(log.context)
        pairs = tuple(combinations_with_replacement(range(len(used)), 2))
        bends = product_basis(z[:, 1:], pairs)
        lines, rest = straightened(z, bends)
        size = rest.std(axis=0)
        there = np.flatnonzero(size > NOTHING)
        turn = np.diag(1.0 / size[there])
        kept = tuple(pairs[i] for i in there)
        return FittedProducts(linear, turn, lines[:, there] / size[there], kept)


@dataclass(frozen=True, slots=True)
class FittedProducts(FittedBent):
    """Each square and product has variance 1."""

    linear: FittedLinear
    turn: Array
    lines: Array
    pairs: tuple[tuple[int, int], ...]

    def basis(self, x: Array) -> Array:
        """Return the products (n, K)."""
        return product_basis((x - self.linear.center) / self.linear.size, self.pairs)

    def bent(self, coef: Array, intercept: Array | float, bends: Array) -> Products:
        """Return the policy with these coefficients."""
        size = self.linear.size
        return Products(
            coef,
            intercept,
            pairs=self.pairs,
            bends=bends,
            center=self.linear.center,
            size=np.where(np.isfinite(size), size, 1.0),  # a constant context is in no pair
            features=self.linear.names,
        )
