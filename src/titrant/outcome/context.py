"""What models see of the context: features that bend and interact."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.interpolate import BSpline
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.moments import Moments
from titrant.outcome.base import (
    OutcomeModel,
    curve_of,
    given_of,
    inputs,
    training,
    weighed,
)
from titrant.outcome.repeated import sums_by
from titrant.outcome.ridge import (
    Basis,
    Features,
    bends,
    heights,
    pair_products,
    quantile_knots,
    unexplained,
)
from titrant.scaling import Standard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.outcome.base import Curves
    from titrant.outcome.crossfit import Folds

    Codes = NDArray[np.intp]
    Columns = NDArray[np.intp]

# Features of the context that bend and interact: φ(x).


PRODUCTS_UP_TO = 15
"""Contexts up to which all products are features; of more, the products of so many."""
BENDS_UP_TO = 30
"""Contexts up to which all columns get splines: beyond, they would outnumber the rows of most logs
and take most of the time, so that only the columns with products do."""
LEVEL_PRODUCTS = 150
"""Products of levels with other contexts, at most."""
TELLING_BINS = 8
"""Groups of rows by the value of a context, to see whether predictions differ between them."""
LEVELS_UP_TO = 12
"""A column with this many values or fewer is a category: its levels get indicators."""
LEVEL_ROWS, LEVEL_SHARE = 5, 0.01
"""A level has an indicator if it is held by this many rows and this share of them."""
TOLD = 0.05
"""A prediction that differs from a function of φ by less, in sds of its target, tells nothing."""
TOLD_ROWS = 5_000
"""About as many rows are enough to see that."""


@dataclass(frozen=True, slots=True)
class Bends:
    """Cubic B-splines of a column, continued as straight lines beyond the outer knots."""

    knots: Array
    splines: BSpline = field(init=False, repr=False)

    def __post_init__(self) -> None:
        padded = np.r_[[self.knots[0]] * 3, self.knots, [self.knots[-1]] * 3]
        object.__setattr__(self, "splines", BSpline(padded, np.eye(len(self.knots) + 2), 3))

    def __call__(self, z: Array) -> Array:
        """Return the splines at z (n,), (n, m + 2) for m knots."""
        return self._continued(self.splines, z)

    def summed(self, z: Array, coef: Array) -> Array:
        """Return Σₖ cₖ·splineₖ(z) (n,) of coefficients c (m + 2,), which is one spline."""
        return self._continued(BSpline.construct_fast(self.splines.t, coef, 3), z)

    def _continued(self, splines: BSpline, z: Array) -> Array:
        ends = self.knots[[0, -1]]
        inside = np.clip(z, *ends)
        values, beyond = np.asarray(splines(inside)), z - inside
        if beyond.any():
            low, high = splines(ends, nu=1)
            slopes = np.where((beyond < 0.0).reshape(-1, *[1] * low.ndim), low, high)
            values += (slopes.T * beyond).T
        return values


@dataclass(frozen=True, slots=True)
class Levels:
    """Indicators of the common values of a column."""

    values: Array

    def __call__(self, x: Array) -> Array:
        """Return 1 where x (n,) is a level (n, L); a level that is rare or new has none."""
        return np.asarray(x[:, None] == self.values, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class ContextMap:
    """φ(x) in fixed units, with fixed knots and levels; see `ContextFeatures`."""

    extra: int
    """Columns at the end of x that enter as they are."""
    told: Array
    """1 for an extra column that tells something of its own, 0 for one that does not (extra,)."""
    units: Standard
    """z: contexts in sds, far values held, codes in columns of their own."""
    levels: dict[int, Levels]
    bends: dict[int, Bends]
    crossed: Columns
    """The columns of z whose products are features, those that tell most first where some do."""

    @classmethod
    def of(cls, x: Array, extra: int = 0) -> Self:
        """Lay the features out over contexts x (n, p + extra)."""
        p = x.shape[1] - extra
        context, predictions = x[:, :p], x[:, p:]
        units = Standard.of_contexts(context)
        z, varying = units(context), np.flatnonzero(units.inverse[:p]).tolist()
        found = {j: np.unique(context[:, j], return_counts=True) for j in varying}
        fewest = max(LEVEL_ROWS, LEVEL_SHARE * len(x))
        levels = {
            j: Levels(values[rows >= fewest])
            for j, (values, rows) in found.items()
            if 2 < len(values) <= LEVELS_UP_TO  # noqa: PLR2004  (two values are a line)
        }
        crossed = np.arange(z.shape[1])
        if p > PRODUCTS_UP_TO or beside_levels(levels) < len(crossed):
            crossed = telling(z, predictions)
        if p > PRODUCTS_UP_TO:
            crossed = crossed[: PRODUCTS_UP_TO if extra else 0]
        bends = {
            j: Bends(np.unique(np.quantile(z[:, j], [0.0, 0.25, 0.5, 0.75, 1.0])))
            for j, (values, _) in found.items()
            if len(values) > LEVELS_UP_TO and (p <= BENDS_UP_TO or j in crossed)
        }
        bare = cls(0, np.empty(0), units, levels, bends, crossed)
        return cls(extra, bare.told_by(context, predictions), *bare.layout)

    @property
    def layout(self) -> tuple[Standard, dict[int, Levels], dict[int, Bends], Columns]:
        """Everything but the extra columns."""
        return self.units, self.levels, self.bends, self.crossed

    def lines(self, phi: Array) -> Array:
        """Return (z, extra columns) (n, k + extra) of φ (n, F): what the dose interacts with."""
        k = len(self.units.center)
        return np.hstack([phi[:, :k], phi[:, phi.shape[1] - self.extra :]])

    def summed(self, x: Array, coef: Array) -> tuple[Array, Array]:
        """Return φ(x)'c (n,) of coefficients c (F,), and `lines` of φ(x); φ is not computed.

        A sum of splines is a spline, and one of products a quadratic form.
        """
        z, extra = self._parts(x)
        each = iter(np.split(coef, np.cumsum(self._widths)))
        total = z @ next(each)
        levels = {j: level(x[:, j]) for j, level in self.levels.items()}
        for own in levels.values():
            total += own @ next(each)
        for j, bend in self.bends.items():
            total += bend.summed(z[:, j], next(each))
        crossed = z[:, self.crossed]
        form = np.zeros((crossed.shape[1], crossed.shape[1]))
        form[np.triu_indices(len(form))] = next(each)
        total += np.einsum("ij,ij->i", crossed @ form, crossed)
        for j, own in levels.items():
            beside = z[:, self._beside(j)]
            slopes = next(each).reshape(own.shape[1], beside.shape[1])
            total += np.einsum("ij,ij->i", own, beside @ slopes.T)
        return total + extra @ next(each), np.hstack([z, extra])

    @property
    def width(self) -> int:
        """The number of features, F."""
        return sum(self._widths) + self.extra

    @property
    def _widths(self) -> list[int]:
        """How many features each part has: z, levels, splines, products, those of levels."""
        levels = {j: len(level.values) for j, level in self.levels.items()}
        splines = [len(bend.knots) + 2 for bend in self.bends.values()]
        products = len(self.crossed) * (len(self.crossed) + 1) // 2
        by_level = [size * len(self._beside(j)) for j, size in levels.items()]
        return [len(self.units.center), *levels.values(), *splines, products, *by_level]

    def _beside(self, j: int) -> Columns:
        """Return the columns that have products with the levels of column j."""
        beside = self.crossed[: beside_levels(self.levels)]
        return np.asarray(beside[beside != j])

    def _parts(self, x: Array) -> tuple[Array, Array]:
        p = x.shape[1] - self.extra
        return self.units(x[:, :p]), x[:, p:] * self.told

    def __call__(self, x: Array) -> Array:
        """Return φ(x) and the extra columns (n, F) at contexts x (n, p + extra)."""
        z, extra = self._parts(x)
        levels = {j: level(x[:, j]) for j, level in self.levels.items()}
        bends = [bend(z[:, j]) for j, bend in self.bends.items()]
        j, k = (self.crossed[side] for side in np.triu_indices(len(self.crossed)))
        by_level = [
            (own[:, :, None] * z[:, None, self._beside(j)]).reshape(len(z), -1)
            for j, own in levels.items()
        ]
        return np.hstack([z, *levels.values(), *bends, z[:, j] * z[:, k], *by_level, extra])

    def names(self, columns: Sequence[str]) -> list[str]:
        """Return the names of the features, made of those of the columns (p + extra)."""
        p = len(columns) - self.extra
        codes = len(self.units.center) - p
        z = [*columns[:p], *(f"code {k}" for k in range(codes))]
        levels = {
            j: [f"{z[j]} = {value:g}" for value in own.values] for j, own in self.levels.items()
        }
        sides = (self.crossed[side] for side in np.triu_indices(len(self.crossed)))
        return [
            *z,
            *(name for own in levels.values() for name in own),
            *(f"{z[j]} spline {k}" for j, b in self.bends.items() for k in range(len(b.knots) + 2)),
            *(f"{z[j]} × {z[k]}" for j, k in zip(*sides, strict=True)),
            *(f"{n} × {z[k]}" for j, own in levels.items() for n in own for k in self._beside(j)),
            *columns[p:],
        ]

    def told_by(self, context: Array, extra: Array) -> Array:
        """Return 1 for each extra column (n, e) that is no function of φ(context), else 0 (e,).

        The out-of-bag mean of a row lacks the row's own value. Where nothing else moves a
        prediction, that alone remains, and a regression would take it for a cause.
        """
        if not extra.shape[1]:
            return np.empty(0)
        some = slice(None, None, max(1, len(context) // TOLD_ROWS))
        columns = np.column_stack([self(context[some]), extra[some]])
        left = unexplained(Moments.of(columns), extra.shape[1])
        return np.asarray(left > TOLD, dtype=np.float64)


def beside_levels(levels: Mapping[int, Levels]) -> int:
    """Return how many contexts have products with all levels."""
    return LEVEL_PRODUCTS // max(sum(len(level.values) for level in levels.values()), 1)


def telling(z: Array, predictions: Array) -> Columns:
    """Return the columns of contexts z (n, k), those first along which predictions (n, e) differ.

    Predictions, their squares and products are compared between groups of rows with like values of
    a context. A context that acts only beside another one moves no mean, but it moves squares.
    Without predictions the columns keep their order.
    """
    columns = np.arange(z.shape[1])
    if not predictions.shape[1]:
        return columns
    some = slice(None, None, max(1, len(z) // TOLD_ROWS))
    z, u = z[some], predictions[some] - predictions[some].mean(axis=0)
    a, b = np.triu_indices(u.shape[1])
    u = np.hstack([u, u[:, a] * u[:, b]])
    u = u - u.mean(axis=0)
    total = np.maximum(np.sum(u**2, axis=0), np.finfo(float).tiny)
    shares = np.zeros(len(columns))
    for j in columns:
        cuts = np.quantile(z[:, j], np.arange(1, TELLING_BINS) / TELLING_BINS)
        group = np.searchsorted(np.unique(cuts), z[:, j], side="right")
        rows = np.maximum(np.bincount(group), 1)
        sums = sums_by(group, u, len(rows))
        shares[j] = np.sum(np.sum(sums**2 / rows[:, None], axis=0) / total)
    return np.argsort(-shares, kind="stable")


class ContextFeatures(TransformerMixin, BaseEstimator):
    """φ(x): what a regression needs to follow contexts that act nonlinearly.

    Each column in its sds, z, far values held: one absurd cell does not flatten it. A column with
    3 to 12 values adds indicators of the levels held by at least 5 rows and 1 %, and their products
    with other contexts; one with more adds cubic B-splines with knots at its minimum, quartiles and
    maximum, linear beyond. Up to 15 contexts, all products zⱼzₖ (j ≤ k) are added. Of more, the
    products of the 15 along which the extra columns differ most; beyond 30, splines of these alone.

    Parameters
    ----------
    extra : columns at the end of X that enter as they are: predictions of another model for the
        training rows, in sds of their target. One that differs from a function of φ by less than
        .05 is left out (its values are 0).

    Fitted: `map_`.
    """

    def __init__(self, *, extra: int = 0) -> None:
        self.extra = extra

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002 (the interface)
        """Lay units, levels and knots out over contexts X (n, p)."""
        x = np.asarray(validate_data(self, X, dtype=np.float64, ensure_min_samples=2))
        self.map_ = ContextMap.of(x, extra_columns(self.extra, x, "ContextFeatures"))
        return self

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return the names of the features (F,), made of those of the columns."""
        check_is_fitted(self)
        return np.asarray(self.map_.names(_feature_names(self, input_features)), dtype=object)

    def transform(self, X: ArrayLike) -> Array:
        """Return φ(x) (n, F)."""
        check_is_fitted(self)
        return self.map_(np.asarray(validate_data(self, X, reset=False, dtype=np.float64)))


def _feature_names(model: ContextFeatures, given: ArrayLike | None) -> list[str]:
    """Return the names of the columns that a model was fitted to, checked against those given."""
    p, known = model.n_features_in_, getattr(model, "feature_names_in_", None)
    if given is None:
        return [f"x{j}" for j in range(p)] if known is None else list(known)
    names = [str(name) for name in np.asarray(given, dtype=object)]
    if known is not None and names != list(known):
        raise InvalidArgument(
            f"input_features is not equal to feature_names_in_: got {names}, fitted to "
            f"{list(known)}. Leave it out."
        )
    if len(names) != p:
        raise InvalidArgument(
            f"input_features should have length equal to number of features ({p}), got "
            f"{len(names)}. Give one name a column."
        )
    return names


def extra_columns(extra: object, x: Array, owner: str) -> int:
    """Return how many of the columns of x (n, p) are extra, checked to be so many."""
    number = _check.count(extra, "extra", owner, at_least=0)
    if number > x.shape[1]:
        raise _check.invalid("extra", owner, f"at most the {x.shape[1]} columns there are", extra)
    return number


# An outcome model that does not see the columns that a forest appended to the context.


class ContextsOnly(OutcomeModel):
    """r̂ of the contexts without their last `extra` columns.

    Parameters
    ----------
    model : the outcome model; it is cloned, never changed.
    extra : columns at the end of the contexts that the model does not see.
    """

    def __init__(self, model: OutcomeModel, *, extra: int) -> None:
        self.model = model
        self.extra = extra

    def fit(self, X: Array, t: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Learn from contexts X (n, p + extra), doses t (n,) or (n, d) and outcomes y (n,)."""
        x, doses, outcome = training(X, t, y, "ContextsOnly")
        fit = clone(self.model).fit
        self.model_ = weighed(fit, self._seen(x), doses, outcome, weights=sample_weight)
        return self

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        x, doses = inputs(X, t, "ContextsOnly")
        return self.given(x)(doses)

    def given(self, X: Array) -> Curves:
        """Return t ↦ r̂(tᵢ, xᵢ) (n,) for contexts X (n, p + extra)."""
        curves: Curves = given_of(self.model_, self._seen(X))
        return curves

    def out_of_fold(
        self, X: Array, t: Array, y: Array, fold: Folds, *, sample_weight: Array | None = None
    ) -> Array:
        """Return predictions (n,) that saw no outcome of the row's fold."""
        x, doses, outcome = training(X, t, y, "ContextsOnly")
        rows = self._seen(x), doses, outcome, fold
        return weighed(self.model.out_of_fold, *rows, weights=sample_weight)

    def fit_out_of_fold(
        self, X: Array, t: Array, y: Array, fold: Folds, *, sample_weight: Array | None = None
    ) -> Array:
        """Fit, and return what `out_of_fold` does."""
        x, doses, outcome = training(X, t, y, "ContextsOnly")
        self.model_ = clone(self.model)
        rows = self._seen(x), doses, outcome, fold
        prediction: Array = weighed(self.model_.fit_out_of_fold, *rows, weights=sample_weight)
        return prediction

    def curve(self, X: Array, doses: Array) -> Array:
        """Return r̂(doses[j], xᵢ) (n, G) for a grid of scalar doses (G,)."""
        curves: Array = curve_of(self.model_, self._seen(X), doses)
        return curves

    def _seen(self, x: Array) -> Array:
        return x[:, : x.shape[1] - extra_columns(self.extra, x, "ContextsOnly")]


# ── Features that bend with the context as well as with the dose ──────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothContext(Basis):
    """φ(x), b(s) and all bⱼ(s)zₖ: φ of `ContextMap`, b the splines of `Spline`.

    The last `extra` columns of x, predictions that `FoldForests` appends, enter as they are, alone
    and in the place of a z.
    """

    knots: int = 5
    extra: int = 0

    def __post_init__(self) -> None:
        _check.count(self.knots, "knots", "SmoothContext", at_least=3)
        _check.count(self.extra, "extra", "SmoothContext", at_least=0)

    def on(self, x: Array, t: Array) -> SmoothFeatures:
        """Return the features in units of contexts x (n, p), knots laid out over doses t (n, d)."""
        dose = Standard.of_doses(t)
        knots = tuple(quantile_knots(s, self.knots) for s in dose(t).T)
        extra = extra_columns(self.extra, x, "SmoothContext")
        return SmoothFeatures(ContextMap.of(x, extra), dose, knots)

    def telling(self, x: Array) -> Columns:
        """Return the columns of contexts x (n, p) that tell most: predictions, then by these."""
        if not self.extra:
            return np.arange(0)
        p = x.shape[1] - extra_columns(self.extra, x, "SmoothContext")
        z = Standard.of_contexts(x[:, :p])(x[:, :p])[:, :p]
        return np.append(np.arange(p, x.shape[1]), telling(z, x[:, p:]))


@dataclass(frozen=True, slots=True)
class SmoothFeatures(Features):
    """The features in fixed units, with fixed knots and levels."""

    context: ContextMap
    dose: Standard
    knots: tuple[Array, ...]
    """The knots of each dose."""

    def __call__(self, x: Array, t: Array) -> Array:
        """Return the features (n, F) of x (n, p) and t (n, d)."""
        phi, b = self.context(x), self.of_dose(t)
        crossed = (b[:, :, None] * self.context.lines(phi)[:, None, :]).reshape(len(phi), -1)
        return np.hstack([phi, b, crossed])

    def of_dose(self, t: Array) -> Array:
        """Return the splines b (n, m) at doses t (n, d)."""
        return bends(self.dose(t), self.knots)

    def of_context(self, x: Array, coef: Array) -> tuple[Array, Array]:
        """Return level (n,) and heights (n, m) at x (n, p), coefficients (F,)."""
        own, of_dose = np.split(coef, [self.context.width])
        level, z = self.context.summed(x, own)
        return level, heights(z, of_dose)


@dataclass(frozen=True, slots=True)
class Varying(Basis):
    """φ(x), s, all sⱼsₖ, all sⱼφ(x) and all sⱼsₖzₗ: φ of `ContextMap`, doses s and z in their sds.

    The other bases let a context tilt the curve of the dose along a line only. A loss (t − g(x))²
    with g in the span of φ, such as a bend or a product of contexts, needs sⱼφ(x).
    """

    def on(self, x: Array, t: Array) -> VaryingFeatures:
        """Return the features in units of contexts x (n, p) and doses t (n, d)."""
        return VaryingFeatures(ContextMap.of(x), Standard.of_doses(t))


@dataclass(frozen=True, slots=True)
class VaryingFeatures(Features):
    """The features in fixed units, with fixed knots and levels."""

    context: ContextMap
    dose: Standard

    def __call__(self, x: Array, t: Array) -> Array:
        """Return the features (n, F) of x (n, p) and t (n, d)."""
        phi, s = self.context(x), self.dose(t)
        squares = pair_products(s)
        z = self.context.lines(phi)
        return np.hstack([phi, _each(s, phi), s, squares, _each(squares, z)])

    def of_dose(self, t: Array) -> Array:
        """Return s and all sⱼsₖ (n, m) at doses t (n, d)."""
        s = self.dose(t)
        return np.hstack([s, pair_products(s)])

    def of_context(self, x: Array, coef: Array) -> tuple[Array, Array]:
        """Return level (n,) and heights (n, m) at x (n, p), coefficients (F,)."""
        d, width = len(self.dose.center), self.context.width
        bends, rest = np.split(coef, [(1 + d) * width])
        own, *crossed = bends.reshape(1 + d, width)
        level, z = self.context.summed(x, own)
        tilts = [self.context.summed(x, bend)[0] for bend in crossed]
        return level, np.column_stack([rest[:d] + np.stack(tilts, axis=1), heights(z, rest[d:])])


def _each(b: Array, a: Array) -> Array:
    """Return all bⱼaₖ (n, m·k), those of b₁ first."""
    return np.asarray((b[:, :, None] * a[:, None, :]).reshape(len(a), -1))
