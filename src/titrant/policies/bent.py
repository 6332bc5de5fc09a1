"""Doses that bend: a smooth curve for each context, or squares and products of contexts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant import _check, _drawing
from titrant.policies.base import ParametricPolicy
from titrant.policies.formats.formulas import Number, Product, Ratio, Sum, Within, each_dose, linear
from titrant.policies.formats.saving import context, feature_names, matrix, parameters, read_only
from titrant.policies.linear import intercept_for
from titrant.policies.points import points_of, round_below

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from titrant._drawing import Axes
    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.policies.formats.formulas import Formula
    from titrant.policies.points import Points

CURVE = 201
"""Values at which a curve is drawn."""
HELD = 3.0
"""Squares and products are those of contexts within so many sizes of their centers."""


class Bent(ParametricPolicy):
    """τ(x) = intercept + coef'x + bends'b(x), b (K,) what a class bends a line by.

    coef (p,) and bends (K,), or (p, d) and (K, d) for d doses at once. The parameters are the
    intercept, the coefficients and the bends (row by row); what makes b stays.
    """

    __slots__ = ()
    coef: Array
    intercept: float | Array
    bends: Array

    @abstractmethod
    def basis(self, x: Array) -> Array:
        """Return b(x) (n, K) of contexts x (n, p)."""

    @abstractmethod
    def basis_formulas(self, contexts: tuple[Formula, ...]) -> tuple[tuple[Formula, ...], Array]:
        """Return formulas (L,) and a matrix (L, K) with b(x) = formulas'matrix."""

    def formulas(self, contexts: tuple[Formula, ...]) -> tuple[Formula, ...]:
        """Return intercept + coef'x + bends'b(x) for each dose."""
        parts, mixed = self.basis_formulas(contexts)
        slopes = np.concatenate([self.coef, mixed @ self.bends])
        weights = slopes.reshape(len(slopes), -1).T
        levels = each_dose(self.intercept, len(weights))
        every = (*contexts, *parts)
        return tuple(linear(b, own, every) for b, own in zip(levels, weights, strict=True))

    def __call__(self, X: object) -> Array:
        """Return the doses for contexts X, an array (n, p) or a table: (n,) or (n, d)."""
        x = self._context(X)
        return x @ self.coef + self.basis(x) @ self.bends + self.intercept

    @property
    def params(self) -> Array:
        """The parameters β = (intercept, coef, bends) (1 + p + K,), times d."""
        return np.concatenate([np.ravel(self.intercept), self.coef.ravel(), self.bends.ravel()])

    def with_params(self, params: Array) -> Self:
        """Return the policy with another intercept, other coefficients and bends."""
        d, size = np.size(self.intercept), self.coef.size
        owner = type(self).__name__
        new = parameters(params, d + size + self.bends.size, owner)
        return replace(  # type: ignore[type-var]  # every policy is a dataclass
            self,
            intercept=new[:d] if np.ndim(self.intercept) else new[0],
            coef=new[d : d + size].reshape(self.coef.shape),
            bends=new[d + size :].reshape(self.bends.shape),
        )

    def vjp(self, X: Array, g: Array) -> Array:
        """Return (Σᵢ gᵢ, Σᵢ xᵢgᵢ, Σᵢ b(xᵢ)gᵢ) (P,)."""
        x = self._context(X)
        sums = np.sum(g, axis=0), x.T @ g, self.basis(x).T @ g
        return np.concatenate([np.ravel(part) for part in sums])

    def _context(self, X: object) -> Array:
        return context(X, len(self.coef), type(self).__name__, self.features)


# A smooth curve for each context.


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Additive(Bent):
    """τ(x) = intercept + Σⱼ (coefⱼ·xⱼ + sⱼ(xⱼ)), sⱼ a natural cubic spline.

    sⱼ runs through the ``bends`` at its ``knots``, which are listed context by context; a context
    without knots has a line. Beyond its outer knots sⱼ goes on as a line for ``reach`` and then
    stays: what is far from all rows is dosed by the line alone.

    >>> Additive([0.1], 5.0, knots=[[0, 1, 2]], bends=[0, 1, 0], reach=[1.0])(np.array([[1.0]]))
    array([6.1])
    """

    coef: Array
    intercept: float | Array
    knots: tuple[Array, ...]
    bends: Array
    reach: Array
    features: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __init__(
        self,
        coef: ArrayLike,
        intercept: ArrayLike = 0.0,
        *,
        knots: Sequence[ArrayLike],
        bends: ArrayLike,
        reach: ArrayLike,
        features: Sequence[str] | None = None,
    ) -> None:
        slopes = matrix(coef, "coef", "Additive", ndim=(1, 2))
        places = _knots(knots, len(slopes))
        heights = _bends(bends, sum(map(len, places)), slopes, "a number for each knot", "Additive")
        far = _each(reach, len(slopes), "reach", "Additive")
        if np.any(far < 0.0):
            raise _check.invalid("reach", "Additive", "made of numbers ≥ 0", reach)
        object.__setattr__(self, "coef", slopes)
        object.__setattr__(self, "intercept", intercept_for(slopes, intercept, "Additive"))
        object.__setattr__(self, "knots", places)
        object.__setattr__(self, "bends", heights)
        object.__setattr__(self, "reach", far)
        object.__setattr__(self, "features", feature_names(features, len(slopes), "Additive"))

    def basis(self, x: Array) -> Array:
        """Return the splines that are 1 at one knot and 0 at the others (n, K)."""
        return spline_basis(x, self.knots, self.reach)

    def basis_formulas(self, contexts: tuple[Formula, ...]) -> tuple[tuple[Formula, ...], Array]:
        """Return 1, v and ((v − knot)₊)³ of each context v, held and in units of its knots."""
        parts: list[Formula] = []
        blocks = []
        for x, knots, far in zip(contexts, self.knots, self.reach, strict=True):
            if len(knots):
                held = Within(x, float(knots[0] - far), float(knots[-1] + far))
                unit = float(knots[-1] - knots[0])
                places = [Ratio(Sum((held, Number(-float(k)))), unit) for k in knots]
                beyond = [Within(place, 0.0, np.inf) for place in places]
                parts += [Number(1.0), places[0], *(Product((b, b, b)) for b in beyond)]
                blocks.append(_powers((knots - knots[0]) / unit))
        mixed = np.zeros((len(parts), len(self.bends)))
        row = column = 0
        for block in blocks:
            mixed[row : row + len(block), column : column + block.shape[1]] = block
            row, column = row + len(block), column + block.shape[1]
        return tuple(parts), mixed

    def curve(self, j: int, x: Array) -> Array:
        """Return coefⱼ·x + sⱼ(x) for values x (n,) of context j: (n,) or (n, d)."""
        values = np.asarray(x, dtype=np.float64)
        first = sum(len(k) for k in self.knots[:j])
        mine = self.bends[first : first + len(self.knots[j])]
        bent = spline_basis(values[:, None], self.knots[j : j + 1], self.reach[j : j + 1]) @ mine
        return np.asarray(np.multiply.outer(values, self.coef[j]) + bent)

    def middle(self, j: int) -> float:
        """Return the round value near the middle knot of context j, 0 if it has a line."""
        knots = self.knots[j]
        if not len(knots):
            return 0.0
        near = float(knots[len(knots) // 2])
        # So fine that it stays between the outer knots, however far these are on one side.
        unit = round_below(min(near - knots[0], knots[-1] - near) / 3.0)
        return float(f"{round(near / unit) * unit:.12g}")

    def added(self, j: int, x: Array) -> Array:
        """Return what values x (n,) of context j add to the dose of its middle: (n,) or (n, d)."""
        return np.asarray(self.curve(j, x) - self.curve(j, np.array([self.middle(j)])))

    @property
    def start(self) -> Array:
        """The dose where every curve is at its middle and the other contexts are 0 (d,)."""
        middles = (self.curve(j, np.array([self.middle(j)])) for j in range(len(self.knots)))
        return np.ravel(self.intercept) + sum(map(np.ravel, middles))

    def points(self, log: LoggedData) -> Points:
        """Return what contexts add to the dose, at round values of those in a log.

        It is 0 at the middle of each. With straight lines between points nobody's dose in the log
        moves by more than a hundredth of the doses' sd.
        """
        return points_of(self, log)

    def plot(self, context: str | int, ax: Axes | None = None, *, dose: int = 0) -> Axes:
        """Draw what a context, by name or place, adds to the dose, with its knots; return the axes.

        ``dose`` says which, if there are several.
        """
        known: list[str | int] = list(self.features or range(len(self.coef)))
        if context not in known:
            rule = f"one of {', '.join(map(str, known))}"
            raise _check.invalid("context", "Additive.plot", rule, context)
        j = known.index(context)
        knots = self.knots[j] if len(self.knots[j]) else np.array([0.0, 1.0])
        ends = knots[0] - self.reach[j], knots[-1] + self.reach[j]
        x = np.linspace(*ends, CURVE)
        heights = [self.added(j, at).reshape(len(at), -1)[:, dose] for at in (x, knots)]
        drawn = _drawing.new_axes(ax)
        return _drawing.rule_curve(drawn, (x, heights[0]), (knots, heights[1]), str(context))


def spline_basis(x: Array, knots: Sequence[Array], reach: Array) -> Array:
    """Return cardinal natural splines of the columns of x (n, p), held beyond reach: (n, K)."""
    parts = [
        cardinal(k, np.clip(x[:, j], k[0] - reach[j], k[-1] + reach[j]))
        for j, k in enumerate(knots)
        if len(k)
    ]
    return np.column_stack([np.empty((len(x), 0)), *parts])


def cardinal(knots: Array, x: Array) -> Array:
    """Return the natural cubic splines with value 1 at one of m knots and 0 at the others (n, m).

    Between knots k₀ and k₁ with a = (k₁ − x)/H, b = (x − k₀)/H, H = k₁ − k₀, and second derivatives
    M: a·y₀ + b·y₁ + H²((a³ − a)·M₀ + (b³ − b)·M₁)/6. Beyond the outer knots they are lines.
    """
    unit = knots[-1] - knots[0]
    k, z = (knots - knots[0]) / unit, (x - knots[0]) / unit
    second, gap = _second_derivatives(k), np.diff(k)
    inside = np.clip(z, 0.0, 1.0)
    cell = np.clip(np.searchsorted(k, inside, side="right") - 1, 0, len(k) - 2)
    h = gap[cell][:, None]
    a, b = (k[cell + 1] - inside)[:, None] / h, (inside - k[cell])[:, None] / h
    one = np.eye(len(k))
    bent = (a**3 - a) * second[cell] + (b**3 - b) * second[cell + 1]
    value = a * one[cell] + b * one[cell + 1] + h**2 * bent / 6.0
    # M = 0 at the ends: the slopes there.
    first = (one[1] - one[0]) / gap[0] - gap[0] * second[1] / 6.0
    last = (one[-1] - one[-2]) / gap[-1] + gap[-1] * second[-2] / 6.0
    below, above = np.minimum(z, 0.0)[:, None], np.maximum(z - 1.0, 0.0)[:, None]
    return np.asarray(value + below * first + above * last)


def _powers(k: Array) -> Array:
    """Return the cardinal splines of knots k (m,) as 1, z and ((z − k)₊)³: (2 + m, m).

    The cube at a knot changes the third derivative there from that of the cell before it.
    """
    second, one, gap = _second_derivatives(k), np.eye(len(k)), np.diff(k)[:, None]
    slope = (one[1] - one[0]) / gap[0] - gap[0] * second[1] / 6.0
    third = np.vstack([0.0 * one[:1], np.diff(second, axis=0) / gap, 0.0 * one[:1]])
    return np.vstack([one[0] - slope * k[0], slope, np.diff(third, axis=0) / 6.0])


def _second_derivatives(k: Array) -> Array:
    """Return M (m, m), the second derivatives at the knots of each cardinal natural spline."""
    m, gap = len(k), np.diff(k)
    matrix_, jumps = np.eye(m), np.zeros((m, m))
    for i in range(1, m - 1):
        matrix_[i, i - 1 : i + 2] = gap[i - 1], 2.0 * (gap[i - 1] + gap[i]), gap[i]
        jumps[i, i - 1 : i + 2] = 1 / gap[i - 1], -1 / gap[i - 1] - 1 / gap[i], 1 / gap[i]
    return np.asarray(np.linalg.solve(matrix_, 6.0 * jumps))


def _knots(knots: Sequence[ArrayLike], columns: int) -> tuple[Array, ...]:
    rule = f"{columns} lists of numbers that grow, each with none or at least 3"
    try:
        found = tuple(np.array(k, dtype=np.float64) for k in knots)
    except (TypeError, ValueError):
        raise _check.invalid("knots", "Additive", rule, knots) from None
    right = all(
        k.ndim == 1 and len(k) not in {1, 2} and np.isfinite(k).all() and np.all(np.diff(k) > 0)
        for k in found
    )
    if len(found) != columns or not right:
        raise _check.invalid("knots", "Additive", rule, knots)
    return tuple(map(read_only, found))


# Squares and products of contexts.


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Products(Bent):
    """τ(x) = intercept + coef'x + Σ bendsⱼₖ·uⱼ·uₖ, u = (x − center)/size held within ±3.

    ``pairs`` are the places (j, k) of the contexts that are multiplied, (j, j) for a square.

    >>> rule = Products([1.0, 0.0], 2.0, pairs=[(0, 1)], bends=[0.5], center=[0, 0], size=[1, 1])
    >>> rule(np.array([[1.0, 2.0]]))
    array([4.])
    """

    coef: Array
    intercept: float | Array
    pairs: tuple[tuple[int, int], ...]
    bends: Array
    center: Array
    size: Array
    features: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __init__(
        self,
        coef: ArrayLike,
        intercept: ArrayLike = 0.0,
        *,
        pairs: Sequence[Sequence[int]],
        bends: ArrayLike,
        center: ArrayLike,
        size: ArrayLike,
        features: Sequence[str] | None = None,
    ) -> None:
        slopes = matrix(coef, "coef", "Products", ndim=(1, 2))
        p = len(slopes)
        places = _pairs(pairs, p)
        factors = _bends(bends, len(places), slopes, "a number for each pair", "Products")
        unit = _each(size, p, "size", "Products")
        if np.any(unit <= 0.0):
            raise _check.invalid("size", "Products", "made of numbers > 0", size)
        object.__setattr__(self, "coef", slopes)
        object.__setattr__(self, "intercept", intercept_for(slopes, intercept, "Products"))
        object.__setattr__(self, "pairs", places)
        object.__setattr__(self, "bends", factors)
        object.__setattr__(self, "center", _each(center, p, "center", "Products"))
        object.__setattr__(self, "size", unit)
        object.__setattr__(self, "features", feature_names(features, p, "Products"))

    def basis(self, x: Array) -> Array:
        """Return uⱼ·uₖ for each pair (n, K)."""
        return product_basis((x - self.center) / self.size, self.pairs)

    def basis_formulas(self, contexts: tuple[Formula, ...]) -> tuple[tuple[Formula, ...], Array]:
        """Return uⱼ·uₖ for each pair."""
        u = [
            Within(Ratio(Sum((x, Number(-float(c)))), float(s)), -HELD, HELD)
            for x, c, s in zip(contexts, self.center, self.size, strict=True)
        ]
        return tuple(Product((u[j], u[k])) for j, k in self.pairs), np.eye(len(self.pairs))


def product_basis(z: Array, pairs: Sequence[tuple[int, int]]) -> Array:
    """Return products of the columns of z (n, p), held within ±3, for each pair (n, K)."""
    u = np.clip(z, -HELD, HELD)
    j, k = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    return np.asarray(u[:, j] * u[:, k])


def _pairs(pairs: Sequence[Sequence[int]], columns: int) -> tuple[tuple[int, int], ...]:
    rule = f"a list of pairs of whole numbers from 0 to {columns - 1}"
    try:
        found = np.array(pairs, dtype=np.float64).reshape(len(pairs), 2)
    except (TypeError, ValueError):
        raise _check.invalid("pairs", "Products", rule, pairs) from None
    if not np.isin(found, np.arange(columns)).all():
        raise _check.invalid("pairs", "Products", rule, pairs)
    return tuple((int(j), int(k)) for j, k in found)


def _bends(bends: ArrayLike, size: int, coef: Array, rule: str, owner: str) -> Array:
    """Return the bends (K,) beside coef (p,), (K, d) beside coef (p, d)."""
    wanted = (size, *coef.shape[1:])
    array = _check.finite_array(bends, "bends", owner, ndim=coef.ndim)
    if array.shape != wanted:
        raise _check.invalid("bends", owner, f"{rule}, of shape {wanted}", bends)
    return read_only(array)


def _each(value: ArrayLike, columns: int, name: str, owner: str) -> Array:
    array = _check.finite_array(value, name, owner, ndim=1)
    if len(array) != columns:
        raise _check.invalid(name, owner, f"{columns} numbers, one for each context", value)
    return read_only(array)
