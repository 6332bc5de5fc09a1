"""Ridge regressions of the outcome on features of context and dose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from sklearn.base import clone

from titrant import _check
from titrant.data.masses import reach_of
from titrant.moments import Moments
from titrant.outcome.base import OutcomeModel, blocks, inputs, scaled_weights, some, training
from titrant.scaling import ONE_VALUE, Standard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.outcome.base import Curves
    from titrant.outcome.crossfit import Folds

    Columns = NDArray[np.intp]

# Ridge regression from sufficient statistics, its penalty by generalized cross-validation.
#
# The statistics are the moments of the columns [features, y]. They add up, so the ridge fit without
# a fold is the fit of the sum of the other folds' moments: no row is visited again.


PENALTIES = np.geomspace(1e-6, 1e3, 55)
"""λ in units of the features' variance: from next to none to next to nothing left."""
SATURATED = 0.9
"""Fits that spend more than this share of the rows on parameters are not considered: GCV is 0/0."""
EXACT = 1e-13
"""Residual variances below this share of Var(y) are rounding and count as equal."""
FLAT = 1e-9
"""A feature with less than this sd, in units where features are of order one, is constant."""
WIDE = 500
"""Features beyond which fits without a fold take the penalty of the fit to all rows.

An eigenvalue problem a fold costs minutes then, and a Cholesky factor a tenth of it.
"""


@dataclass(frozen=True, slots=True)
class Ridge:
    """ŷ = intercept + coef'f."""

    intercept: float
    coef: Array
    """(F,), on the features' own scale."""
    penalty: float
    """λ, relative to features of variance one and to n: the one of least GCV."""
    df: float
    """Effective number of parameters, the intercept included."""
    score: float
    """GCV(λ)/Var(y): one minus a cross-validated R²."""

    def predict(self, features: Array) -> Array:
        """Return ŷ for features (n, F)."""
        return features @ self.coef + self.intercept


def ridge_gcv(moments: Moments) -> Ridge:
    """Return the ridge fit of least GCV from the moments of [features, y] (F + 1 columns).

    With features standardized, R = VDV' their correlation and r their correlation with y,

        β(λ) = V(D + λ)⁻¹V'r,   RSS/(n Var y) = 1 − Σ aⱼ²(dⱼ + 2λ)/(dⱼ + λ)²,  a = V'r,
        df = 1 + Σ dⱼ/(dⱼ + λ),   GCV(λ) = RSS/n / (1 − df/n)².

    One eigendecomposition serves all λ (Golub, Heath & Wahba 1979).
    """
    correlation, inverse, sd = _correlation(moments)
    d, v = np.linalg.eigh(correlation[:-1, :-1])
    d, a = np.maximum(d, 0.0), v.T @ correlation[:-1, -1]
    df, score = _gcv(d, a, moments.n)
    best = int(np.argmin(score))
    coef = v @ (a / (d + PENALTIES[best])) * inverse[:-1] * sd
    found = float(PENALTIES[best]), float(df[best]), float(score[best])
    return Ridge(_intercept(moments, coef), coef, *found)


def ridge_at(moments: Moments, penalty: float) -> Ridge:
    """Return the ridge fit at a penalty λ, from the moments of [features, y] (F + 1 columns).

    With C the Cholesky factor of R + λ and b = (R + λ)⁻¹r in units of the standardized features,
    RSS/(n Var y) = 1 − b'r − λb'b and df = 1 + F − λ tr (R + λ)⁻¹: no eigenvalue is needed.
    """
    correlation, inverse, sd = _correlation(moments)
    shrunk, r = correlation[:-1, :-1], correlation[:-1, -1]
    shrunk[np.diag_indices_from(shrunk)] += penalty
    factor = cho_factor(shrunk, lower=True)
    b = cho_solve(factor, r)
    root = solve_triangular(factor[0], np.eye(len(r)), lower=True)
    df = 1.0 + len(r) - penalty * float(np.sum(root**2))
    rss, n = max(float(1.0 - b @ r - penalty * b @ b), EXACT), max(moments.n, 2.0)
    coef = b * inverse[:-1] * sd
    return Ridge(_intercept(moments, coef), coef, penalty, df, rss / (1.0 - df / n) ** 2)


def _correlation(moments: Moments) -> tuple[Array, Array, float]:
    """Return the correlation of [features, y], one over their sds (0 for none), and sd(y)."""
    sd = np.sqrt(np.diagonal(moments.covariance))
    inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0.0)
    inverse[:-1][sd[:-1] <= FLAT] = 0.0
    return moments.covariance * np.outer(inverse, inverse), inverse, float(sd[-1])


def _intercept(moments: Moments, coef: Array) -> float:
    return float(moments.mean[-1] - moments.mean[:-1] @ coef)


def _gcv(d: Array, a: Array, n: float) -> tuple[Array, Array]:
    """Return df(λ) and GCV(λ)/Var(y) for all penalties (L,)."""
    n = max(n, 2.0)  # weighted rows may be worth less than two
    shifted = d + PENALTIES[:, None]
    df = 1.0 + np.sum(d / shifted, axis=1)
    rss = 1.0 - np.sum(a**2 * (shifted + PENALTIES[:, None]) / shifted**2, axis=1)
    allowed = df <= max(SATURATED * n, df[-1])
    score = np.full_like(df, np.inf)
    score[allowed] = np.maximum(rss[allowed], EXACT) / (1.0 - df[allowed] / n) ** 2
    return df, score


def unexplained(moments: Moments, targets: int) -> Array:
    """Return the sd that ridge regressions on the features leave of each target (m,).

    `moments` are those of [features, targets], the last `targets` columns. The sd is the root of
    the least GCV, so it does not vanish where there are more features than rows.
    """
    sd = np.sqrt(np.diagonal(moments.covariance))
    inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > FLAT)
    correlation = moments.covariance * np.outer(inverse, inverse)
    d, v = np.linalg.eigh(correlation[:-targets, :-targets])
    projected = v.T @ correlation[:-targets, -targets:]
    shares = [float(np.min(_gcv(np.maximum(d, 0.0), a, moments.n)[1])) for a in projected.T]
    return np.asarray(sd[-targets:] * np.sqrt(shares), dtype=np.float64)


def leverages(
    moments: Moments, ridge: Ridge, features: Array, weights: Array | None = None
) -> Array:
    """Return hᵢᵢ = ∂ŷᵢ/∂yᵢ of training features (n, F), moments being those of [features, y] (n,).

    With z the standardized features and R their correlation, hᵢᵢ = (1 + zᵢ'(R + λ)⁻¹zᵢ)/n, times ωᵢ
    if rows have weights. The residual without row i, at the same λ and units, is eᵢ/(1 − hᵢᵢ).
    """
    sd = np.sqrt(np.diagonal(moments.covariance))[:-1]
    inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > FLAT)
    shrunk = moments.covariance[:-1, :-1] * np.outer(inverse, inverse)
    shrunk[np.diag_indices_from(shrunk)] += ridge.penalty
    z = (features - moments.mean[:-1]) * inverse
    half = solve_triangular(np.linalg.cholesky(shrunk), z.T, lower=True)
    share = np.asarray((1.0 + np.sum(half**2, axis=0)) / moments.n)
    return share if weights is None else share * weights


# Outcome models that are linear in features of (x, t), fitted by ridge regression.

BLOCK = 8192
"""Rows whose features are computed at a time."""
KEPT = 8_000_000
"""Features, of all rows together, up to which they are kept: 64 MB."""


class Features(ABC):
    """Functions of (x, t), each a product of a function of x and one of t.

    So is their sum, c'f(x, t) = level(x) + Σⱼ heightⱼ(x)·bⱼ(t): predictions at many doses take
    what each row and each dose gives alone, and no feature of a pair.
    """

    __slots__ = ()

    @abstractmethod
    def __call__(self, x: Array, t: Array) -> Array:
        """Return the features (n, F) of x (n, p) and t (n, d)."""

    @abstractmethod
    def of_dose(self, t: Array) -> Array:
        """Return b (n, m) at doses t (n, d)."""

    @abstractmethod
    def of_context(self, x: Array, coef: Array) -> tuple[Array, Array]:
        """Return level (n,) and heights (n, m) of c'f at x (n, p), coefficients c (F,)."""


class Basis(ABC):
    """A recipe for features; its units and knots come from contexts and doses, never outcomes."""

    __slots__ = ()

    @abstractmethod
    def on(self, x: Array, t: Array) -> Features:
        """Return the features, laid out over contexts x (n, p) and doses t (n, d) of a log."""

    def telling(self, x: Array) -> Columns:  # noqa: ARG002
        """Return the columns of contexts x (n, p) that tell most, if any predictions say which."""
        return np.arange(0)


class RidgeModel(OutcomeModel):
    """r̂(t, x) = b₀ + b'f(x, t), the penalty on b by generalized cross-validation.

    Parameters
    ----------
    basis : the features f, `SecondOrder()` or `Spline()`.
    """

    def __init__(self, basis: Basis) -> None:
        self.basis = basis

    def fit(self, X: Array, t: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Learn from contexts X (n, p), doses t (n,) or (n, d) and outcomes y (n,)."""
        x, doses, outcome = training(X, t, y, "RidgeModel")
        weights = scaled_weights(sample_weight, len(x), "RidgeModel")
        self.features_ = self.basis.on(x, doses)
        self.ridge_ = ridge_gcv(_moments(self.features_, x, doses, outcome, weights))
        return self

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        x, doses = inputs(X, t, "RidgeModel")
        return self.given(x)(doses)

    def given(self, X: Array) -> Curves:
        """Return t ↦ r̂(tᵢ, xᵢ) (n,) for contexts X (n, p)."""
        level, heights = self._of_contexts(X)

        def at(t: Array) -> Array:
            b = self.features_.of_dose(t.reshape(len(t), -1))
            return np.asarray(level + np.einsum("ij,ij->i", heights, b))

        return at

    def curve(self, X: Array, doses: Array) -> Array:
        """Return r̂(doses[j], xᵢ) (n, G) for a grid of scalar doses (G,)."""
        level, heights = self._of_contexts(X)
        return np.asarray(level[:, None] + heights @ self.features_.of_dose(doses[:, None]).T)

    def _of_contexts(self, X: Array) -> tuple[Array, Array]:
        """Return level (n,) and heights (n, m), in blocks so that memory stays flat."""
        coef, none = self.ridge_.coef, X[:0]
        parts = [self.features_.of_context(X[rows], coef) for rows in blocks(len(X), BLOCK)]
        level, heights = zip(*(parts or [self.features_.of_context(none, coef)]), strict=True)
        return np.concatenate(level) + self.ridge_.intercept, np.concatenate(heights)

    def out_of_fold(
        self, X: Array, t: Array, y: Array, fold: Folds, *, sample_weight: Array | None = None
    ) -> Array:
        """Return predictions (n,) by fits that saw no outcome of the row's fold.

        Features are laid out once, over all rows: they know no outcomes. Each fit is that of the
        summed moments of the other folds.
        """
        fresh: RidgeModel = clone(self)
        return fresh.fit_out_of_fold(X, t, y, fold, sample_weight=sample_weight)

    def fit_out_of_fold(
        self, X: Array, t: Array, y: Array, fold: Folds, *, sample_weight: Array | None = None
    ) -> Array:
        """Fit, and return what `out_of_fold` does: the moments of all folds add up to the fit."""
        x, doses, outcome = training(X, t, y, "RidgeModel")
        weights = scaled_weights(sample_weight, len(x), "RidgeModel")
        self.features_ = self.basis.on(x, doses)
        table = FeatureTable.of(len(x), lambda rows: self.features_(x[rows], doses[rows]))
        total, parts = folded_moments(table, outcome, fold, weights)
        self.ridge_ = ridge_gcv(total)
        return predicted_by_others(table, parts, fold, self.ridge_)


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """Features of n rows, block by block: kept if they are few, else computed anew each time."""

    n: int
    size: int
    """Rows of a block."""
    features: Callable[[slice], Array]
    """Of a block of rows, (m, F)."""
    kept: tuple[Array, ...] | None

    @classmethod
    def of(cls, n: int, features: Callable[[slice], Array]) -> FeatureTable:
        """Return the table of n rows."""
        first, *others = blocks(n, BLOCK)
        known = features(first)
        small = n * known.shape[1] <= KEPT
        return cls(n, BLOCK, features, (known, *map(features, others)) if small else None)

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        """Yield rows beside their features (m, F)."""
        for i, rows in enumerate(blocks(self.n, self.size)):
            yield rows, self.features(rows) if self.kept is None else self.kept[i]


def folded_moments(
    table: FeatureTable, y: Array, fold: Folds, weights: Array | None = None
) -> tuple[Moments, dict[int, Moments]]:
    """Return the moments of [features, y] over all rows and over those of each fold."""
    parts: dict[int, Moments] = {}
    for rows, features in table:
        columns = np.column_stack([features, y[rows]])
        for k in np.unique(fold[rows]):
            held = fold[rows] == k
            own = Moments.of(columns[held], some(some(weights, rows), held))
            parts[int(k)] = parts[int(k)] + own if int(k) in parts else own
    return _total(list(parts.values())), parts


def predicted_by_others(
    table: FeatureTable, parts: dict[int, Moments], fold: Folds, whole: Ridge
) -> Array:
    """Return the prediction of each row (n,) by the ridge fit of all folds but its own.

    Each has the penalty of its least GCV. Beyond `WIDE` features it is that of the fit to the
    whole, λ·n/nₖ for the nₖ rows of other folds, as λ is relative to rows.
    """
    prediction = np.empty(table.n)
    n = sum(part.n for part in parts.values())
    ridges: dict[int, Ridge] = {}
    for k in parts:
        others = _total([part for j, part in parts.items() if j != k])
        narrow = len(whole.coef) <= WIDE
        ridges[k] = ridge_gcv(others) if narrow else ridge_at(others, whole.penalty * n / others.n)
    for rows, features in table:
        for k, ridge in ridges.items():
            own = np.flatnonzero(fold[rows] == k)
            prediction[rows][own] = ridge.predict(features[own])
    return prediction


def _moments(
    features: Features, x: Array, t: Array, y: Array, weights: Array | None = None
) -> Moments:
    """Return the moments of the columns [features, y], in blocks so that memory stays flat."""
    return _total(
        [
            Moments.of(np.column_stack([features(x[rows], t[rows]), y[rows]]), some(weights, rows))
            for rows in blocks(len(y), BLOCK)
        ]
    )


def _total(parts: list[Moments]) -> Moments:
    return sum(parts[1:], start=parts[0])


# Features that are quadratic in the dose, with interactions with the context.


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondOrder(Basis):
    """s, all sⱼsₖ, z, all sⱼzₖ, and all zⱼzₖ if there are at most `products_up_to` contexts.

    z and s are context and dose in their own standard deviations. A loss (t − g(x))² with linear
    g lies in their span.
    """

    products_up_to: int = 15

    def __post_init__(self) -> None:
        _check.count(self.products_up_to, "products_up_to", "SecondOrder", at_least=0)

    def on(self, x: Array, t: Array) -> SecondOrderFeatures:
        """Return the features in units of contexts x (n, p) and doses t (n, d)."""
        products = x.shape[1] <= self.products_up_to
        return SecondOrderFeatures(Standard.of_contexts(x), Standard.of_doses(t), products)


@dataclass(frozen=True, slots=True)
class SecondOrderFeatures(Features):
    """The features in fixed units."""

    context: Standard
    dose: Standard
    products: bool

    def __call__(self, x: Array, t: Array) -> Array:
        """Return the features (n, F) of x (n, p) and t (n, d)."""
        z, s = self.context(x), self.dose(t)
        crossed = (s[:, :, None] * z[:, None, :]).reshape(len(z), -1)
        squares = [pair_products(z)] if self.products else []
        return np.hstack([s, pair_products(s), z, crossed, *squares])

    def of_dose(self, t: Array) -> Array:
        """Return s and all sⱼsₖ (n, m) at doses t (n, d)."""
        s = self.dose(t)
        return np.hstack([s, pair_products(s)])

    def of_context(self, x: Array, coef: Array) -> tuple[Array, Array]:
        """Return level (n,) and heights (n, m) at x (n, p), coefficients (F,)."""
        z, d = self.context(x), len(self.dose.center)
        p, m = z.shape[1], d + d * (d + 1) // 2
        bend, own, crossed, rest = np.split(coef, [m, m + p, m + p + d * p])
        level = z @ own + (pair_products(z) @ rest if self.products else 0.0)
        slopes = bend[:d] + z @ crossed.reshape(d, p).T
        return level, np.hstack([slopes, np.broadcast_to(bend[d:], (len(z), m - d))])


def pair_products(a: Array) -> Array:
    """Return all aⱼaₖ, j ≤ k (n, k(k+1)/2)."""
    j, k = np.triu_indices(a.shape[1])
    return a[:, j] * a[:, k]


# Features that bend freely with the dose and are linear beyond the outer knots.


@dataclass(frozen=True, slots=True, kw_only=True)
class Spline(Basis):
    """z, b(s) and all bⱼ(s)zₖ, b the cubic splines of the dose that are linear beyond the knots.

    bⱼ is 1 at the j-th knot and 0 at the others, so the ridge is on the heights of the curve and
    knows no left from right. Knots lie at equally spaced quantiles of the logged doses, from 5 %
    to 95 % (for 5 knots the usual choice, Harrell 2001). Several doses get a spline each, added up.
    """

    knots: int = 5

    def __post_init__(self) -> None:
        _check.count(self.knots, "knots", "Spline", at_least=3)

    def on(self, x: Array, t: Array) -> SplineFeatures:
        """Return the features in units of contexts x (n, p), knots laid out over doses t (n, d)."""
        dose = Standard.of_doses(t)
        knots = tuple(quantile_knots(s, self.knots) for s in dose(t).T)
        return SplineFeatures(Standard.of_contexts(x), dose, knots)


@dataclass(frozen=True, slots=True)
class SplineFeatures(Features):
    """The features in fixed units, with fixed knots."""

    context: Standard
    dose: Standard
    knots: tuple[Array, ...]
    """The knots of each dose."""

    def __call__(self, x: Array, t: Array) -> Array:
        """Return the features (n, F) of x (n, p) and t (n, d)."""
        z, b = self.context(x), self.of_dose(t)
        return np.hstack([z, b, (b[:, :, None] * z[:, None, :]).reshape(len(z), -1)])

    def of_dose(self, t: Array) -> Array:
        """Return the splines b (n, m) at doses t (n, d)."""
        return bends(self.dose(t), self.knots)

    def of_context(self, x: Array, coef: Array) -> tuple[Array, Array]:
        """Return level (n,) and heights (n, m) at x (n, p), coefficients (F,)."""
        z = self.context(x)
        own, of_dose = np.split(coef, [z.shape[1]])
        return z @ own, heights(z, of_dose)


def heights(z: Array, coef: Array) -> Array:
    """Return the height cⱼ + eⱼ'z (n, m) of each of m splines; z is (n, k).

    The coefficients (m + m·k,) are c, then those of all products bⱼzₖ, e.
    """
    k = z.shape[1]
    own, crossed = np.split(coef, [len(coef) // (k + 1)])
    return np.asarray(own + z @ crossed.reshape(len(own), k).T)


def bends(s: Array, knots: tuple[Array, ...]) -> Array:
    """Return the splines of all doses s (n, d), side by side; `knots` are those of each dose."""
    return np.hstack([cardinal(s[:, j], of_dose) for j, of_dose in enumerate(knots)])


def cardinal(s: Array, knots: Array) -> Array:
    """Return at s (n,) the restricted cubic splines that are 1 at one knot, 0 at the rest (n, m).

    With fewer than three knots, s itself (n, 1): too few distinct doses to bend.
    """
    if len(knots) < 3:  # noqa: PLR2004
        return s[:, None]
    splines = np.linalg.solve(restricted_cubic(knots, knots).T, restricted_cubic(s, knots).T)
    return np.asarray(splines.T, dtype=np.float64)


def restricted_cubic(s: Array, knots: Array) -> Array:
    """Return the restricted cubic spline basis at s (n,) with knots k₁ < … < k_m (n, m).

    With (·)₊³ the cube of the positive part, l = k_{m−1} and k = k_m: 1, s, and for j = 1 … m − 2

        [(s − kⱼ)₊³ − (s − l)₊³(k − kⱼ)/(k − l) + (s − k)₊³(l − kⱼ)/(k − l)] / (k − k₁)²,

    which is 0 below kⱼ and a straight line above k.
    """
    cubes = np.maximum(s[:, None] - knots, 0.0) ** 3
    first, (near, last) = knots[:-2], knots[-2:]
    tail = cubes[:, [-1]] * (near - first) - cubes[:, [-2]] * (last - first)
    bends = (cubes[:, :-2] + tail / (last - near)) / (last - knots[0]) ** 2
    return np.column_stack([np.ones(len(s)), s, bends])


def quantile_knots(s: Array, number: int) -> Array:
    """Return distinct knots at quantiles of s (n,), or the doses themselves if there are as few."""
    doses = np.unique(s)
    few = len(doses) <= number
    knots = doses if few else np.quantile(s, np.linspace(0.05, 0.95, number))
    apart: Array = knots[1:][np.diff(knots) > ONE_VALUE]
    return np.append(knots[0], apart)


# ── Features that let the outcome jump at point masses of the dose ────────────────────────────────

JUMPS_UP_TO, JUMP_PRODUCTS = 1_000, 200
"""Products of jumps with contexts up to which all are features; of more, so many. Of ten point
masses and 217 contexts there are 2,170, and a call had not ended after eleven minutes of CPU."""


@dataclass(frozen=True, slots=True)
class Jumps(Basis):
    """The features of `basis`, and 1{t = aₖ} and its products with z for each point mass aₖ.

    Knots and units of the dose are those of the other doses: rows at a point mass count as if
    they were spread evenly over these. Where products would be more than `JUMPS_UP_TO`, only the
    columns have them that tell most, as far as the basis knows them.
    """

    basis: Basis
    at: tuple[float, ...]

    def on(self, x: Array, t: Array) -> JumpFeatures:
        """Return the features in units of contexts x (n, p), laid out over doses t (n, 1)."""
        massed = at_any(t[:, 0], self.at).any(axis=1)
        spread = t.copy()
        if not massed.all():
            ranks = (np.arange(int(massed.sum())) + 0.5) / max(int(massed.sum()), 1)
            spread[massed, 0] = np.quantile(t[~massed, 0], ranks)
        context = Standard.of_contexts(x)
        beside = np.arange(len(context.center))
        if len(self.at) * len(beside) > JUMPS_UP_TO:
            beside = self.basis.telling(x)[: JUMP_PRODUCTS // len(self.at)]
        return JumpFeatures(self.basis.on(x, spread), self.at, context, beside)


@dataclass(frozen=True, slots=True)
class JumpFeatures(Features):
    """The features in fixed units."""

    smooth: Features
    at: tuple[float, ...]
    context: Standard
    beside: Columns
    """The columns of z that have products with the jumps."""

    def __call__(self, x: Array, t: Array) -> Array:
        """Return the features (n, F) of x (n, p) and t (n, 1)."""
        jumps, z = at_any(t[:, 0], self.at), self.context(x)[:, self.beside]
        crossed = (jumps[:, :, None] * z[:, None, :]).reshape(len(z), -1)
        return np.hstack([self.smooth(x, t), jumps, crossed])

    def of_dose(self, t: Array) -> Array:
        """Return what depends on doses t (n, 1) alone (n, m)."""
        return np.hstack([self.smooth.of_dose(t), at_any(t[:, 0], self.at)])

    def of_context(self, x: Array, coef: Array) -> tuple[Array, Array]:
        """Return level (n,) and heights (n, m) at x (n, p), coefficients (F,)."""
        z = self.context(x)[:, self.beside]
        own = len(self.at) * (1 + z.shape[1])
        level, smooth = self.smooth.of_context(x, coef[:-own])
        return level, np.hstack([smooth, heights(z, coef[-own:])])


def at_any(t: Array, at: tuple[float, ...]) -> Array:
    """Return 1 where a dose (n,) is a point mass, for each of them (n, K)."""
    values = np.asarray(at)
    return np.asarray(np.abs(t[:, None] - values) <= reach_of(values), dtype=np.float64)
