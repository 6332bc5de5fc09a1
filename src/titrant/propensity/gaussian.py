"""Linear-Gaussian propensities of one dose and of several, from rows or from sums."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Self

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.exceptions import ConvergenceWarning

from titrant.errors import DataError, InvalidArgument
from titrant.outcome.base import mean_of, worth
from titrant.propensity.base import NormalMixture, NormalModel, Propensity
from titrant.scaling import ROUNDING, Held, spread_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from titrant._types import Array
    from titrant.moments import Moments

# Affine functions of the context, fitted by least squares on a whitened design.


# A residual spread below this share of the range of treatments is rounding, not randomness.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Whitened:
    """The whitened context: (1, (x − center) P), with ZᵀZ = n·I on the training rows.

    Collinear and constant columns of X leave through P, so every later solve is well posed.
    `center` is (k,), `projection` P is (k, r), r the rank of the centered context; k is p and the
    number of codes that `hold` makes columns of.
    """

    center: Array
    projection: Array
    hold: Held | None = None

    @classmethod
    def of(cls, X: Array) -> Self:
        """Return the design of training contexts X (n, p)."""
        hold = Held.of(X)
        held = hold(X)
        center, spread = held.mean(axis=0), spread_of(held)
        # A column that varies by rounding only is constant: its direction is noise.
        scale = np.where(spread > 0.0, spread, np.inf)
        triangle = np.linalg.qr((held - center) / scale, mode="r")
        _, singular, directions = np.linalg.svd(triangle, full_matrices=False)
        keep = singular > np.finfo(np.float64).eps * max(X.shape) * max(singular.max(), 1.0)
        projection = directions[keep].T / singular[keep] * np.sqrt(len(X)) / scale[:, None]
        return cls(center, projection, hold)

    @property
    def rank(self) -> int:
        """The number of coefficients the training rows determine, with the intercept."""
        return 1 + int(self.projection.shape[1])

    def __call__(self, X: Array) -> Array:
        """Return Z (n, rank) for contexts X (n, p)."""
        held = X if self.hold is None else self.hold(X)
        return np.column_stack([np.ones(len(X)), (held - self.center) @ self.projection])


@dataclass(frozen=True, slots=True)
class Affine:
    """An affine function of the context, Z(x)·coef, with `coef` (rank,) or (rank, d)."""

    design: Whitened
    coef: Array

    @classmethod
    def least_squares(cls, X: Array, t: Array, weights: Array | None = None) -> Self:
        """Return the least squares fit of t (n,) or (n, d) on X (n, p), rows by weights (n,)."""
        design, w = Whitened.of(X), np.ones(len(X)) if weights is None else weights
        return cls(design, weighted_least_squares(design(X), t, w))

    def predict(self, X: Array) -> Array:
        """Return the function's values, (n,) or (n, d)."""
        return np.asarray(self.design(X) @ self.coef, dtype=np.float64)

    @property
    def slopes(self) -> Array:
        """The coefficients of the columns of X, held, (k,) or (k, d); 0 if constant."""
        return np.asarray(self.design.projection @ self.coef[1:], dtype=np.float64)

    @property
    def intercept(self) -> Array:
        """The value at x = 0, () or (d,)."""
        return np.asarray(self.coef[0] - self.design.center @ self.slopes, dtype=np.float64)


def weighted_least_squares(Z: Array, t: Array, w: Array) -> Array:
    """Return argmin_b Σ w_i (t_i − z_i·b)², the shortest one if several.

    Z is (n, k), t is (n,) or (n, d), w is (n,); the result is (k,) or (k, d).
    """
    # √w on both sides: the product of a matrix with itself takes half the work.
    root = np.sqrt(w)
    A = Z * root[:, None]
    target = t * root if t.ndim == 1 else t * root[:, None]
    return np.asarray(np.linalg.lstsq(A.T @ A, A.T @ target, rcond=None)[0])


def degrees_of_freedom(n: float, coefficients: int) -> float:
    """Return n − coefficients, the rows left to estimate the spread of the treatment."""
    if n <= coefficients:
        raise DataError(
            f"The {n:,.6g} rows cannot determine {coefficients:,} coefficients and a spread of the "
            f"treatment. Use more than {coefficients:,} rows or fewer context columns."
        )
    return n - coefficients


def residual_sd(
    residuals: Array, t: Array, coefficients: int, weights: Array | None = None
) -> float:
    """Return √(Σe²/(n − coefficients)), refusing a treatment that the context determines.

    With weights (n,), Σωe² and Σω as `scaled_weights` scales them.
    """
    n, squares = len(t), residuals**2
    total = np.sum(squares) if weights is None else weights @ squares
    sd = float(np.sqrt(total / degrees_of_freedom(worth(weights, n), coefficients)))
    if sd <= max(_ROUNDING * float(np.ptp(t)), ROUNDING * float(np.abs(t).max())):
        raise DataError(
            f"The treatment is constant or an exact linear function of the context in all {n:,} "
            f"rows (residual sd {sd:.3g}), so it has no density given the context. Remove the "
            "context columns that determine it, or log treatments that vary."
        )
    return sd


# The linear-Gaussian propensity.


class LinearGaussian(NormalModel):
    """T | x ~ N(a + b·x, s²): ordinary least squares and its residual standard deviation.

    s² = Σe²/(n − rank), rank counting the intercept: the unbiased divisor, because too small
    an s makes densities too peaked when there are many columns. Collinear columns are allowed.
    For an unconditional density pass one constant column. Treatments that were cut off at
    bounds bias a, b and s (`titrant.propensity.laws` only renormalizes the fitted law).

    Fitted: `mean_` (its `slopes` and `intercept` are b and a), `sd_`.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to contexts X (n, p) and treatments y (n,)."""
        X, t = self._training_rows(X, y)
        w = self._weights(sample_weight, len(t))
        self.mean_ = Affine.least_squares(X, t, w)
        self.sd_ = residual_sd(t - self.mean_.predict(X), t, self.mean_.design.rank, w)
        self.components_ = 1
        return self

    def _law(self, X: Array) -> NormalMixture:
        mean = self.mean_.predict(X)[:, None]
        return NormalMixture(np.zeros((1, 1)), mean, np.full((1, 1), self.sd_))


# Linear-Gaussian propensities from sums over rows, for logs that are read part by part.
#
# Least squares needs no more of the rows than the means and co-moments of doses and contexts, and
# these add up. The result is that of fitting on all rows, up to rounding.

_COLLINEAR = 1e-12
"""So is a share of the variance of standardized contexts below this: sums of squares tell no more.
"""


@dataclass(frozen=True, slots=True)
class LinearSums:
    """d doses and p contexts of n rows: their joint moments, and the largest |x| (p,)."""

    moments: Moments
    """Of (t, x), d + p columns."""
    doses: int
    largest: Array

    def regression(self) -> tuple[Affine, Array]:
        """Return the least squares of t on x, and Σeeᵀ (d, d) of what is left."""
        d, n = self.doses, self.moments.n
        c_tt, c_tx = self.moments.comoment[:d, :d], self.moments.comoment[:d, d:]
        design = self._design()
        slopes = design.projection.T @ c_tx.T / n  # ZᵀZ = n·I
        coef = np.vstack([self.moments.mean[:d], slopes])
        return Affine(design, coef[:, 0] if d == 1 else coef), c_tt - n * slopes.T @ slopes

    def _design(self) -> Whitened:
        d, n = self.doses, self.moments.n
        c_xx = self.moments.comoment[d:, d:]
        spread = np.sqrt(np.diagonal(c_xx) / n)
        scale = np.where(spread > ROUNDING * self.largest, spread, np.inf)
        shares, directions = np.linalg.eigh(c_xx / n / np.outer(scale, scale))
        keep = shares > _COLLINEAR * max(float(shares.max(initial=0.0)), 1.0)
        projection = directions[:, keep] / np.sqrt(shares[keep]) / scale[:, None]
        return Whitened(self.moments.mean[d:], projection)


def linear_gaussian(sums: LinearSums) -> LinearGaussian:
    """Return the linear-Gaussian model of one dose, fitted."""
    mean, squares = sums.regression()
    model = LinearGaussian()
    model.mean_, model.components_ = mean, 1
    model.sd_ = float(np.sqrt(_covariance(sums, mean, squares)[0, 0]))
    model.n_features_in_ = len(sums.largest)
    return model


def multivariate_gaussian(sums: LinearSums) -> MultivariateGaussian:
    """Return the linear-Gaussian model of d doses, fitted."""
    mean, squares = sums.regression()
    model = MultivariateGaussian()
    if mean.coef.ndim == 1:
        mean = Affine(mean.design, mean.coef[:, None])
    model.mean_, model.covariance_ = mean, _covariance(sums, mean, squares)
    sds = np.sqrt(np.diagonal(model.covariance_))
    model.cholesky_ = cholesky(model.covariance_, sds, sums.moments.rows)
    model.n_features_in_ = len(sums.largest)
    return model


def _covariance(sums: LinearSums, mean: Affine, squares: Array) -> Array:
    """Return Σeeᵀ/(n − rank), refusing doses that the context determines."""
    n, own = sums.moments.n, np.diagonal(sums.moments.comoment)[: sums.doses]
    left = degrees_of_freedom(n, mean.design.rank)
    if (np.diagonal(squares) <= _ROUNDING * own).any():
        raise DataError(
            f"The treatment is constant or an exact linear function of the context in all {n:,} "
            "rows, so it has no density given the context. Remove the context columns that "
            "determine it, or log treatments that vary."
        )
    return squares / left


# The linear-Gaussian propensity of vector treatments.

# Residual correlations this close to ±1 leave no density in d dimensions.
_SINGULAR = 1e-10


class MultivariateGaussian(Propensity):
    """T | x ~ N_d(a + Bx, S): least squares for each component, full residual covariance.

    S = Σ e eᵀ/(n − rank). Treatments are (n, d); (n,) is read as (n, 1).

    Fitted: `mean_` (affine, d outputs), `covariance_` (d, d).
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to contexts X (n, p) and treatments y (n, d)."""
        X, t = self._training_rows(X, y, vector=True)
        t, w = t.reshape(len(X), -1), self._weights(sample_weight, len(X))
        self.mean_ = Affine.least_squares(X, t, w)
        e = t - self.mean_.predict(X)
        rank = self.mean_.design.rank
        sds = [residual_sd(e[:, j], t[:, j], rank, w) for j in range(t.shape[1])]
        counted = e if w is None else e * w[:, None]
        self.covariance_ = counted.T @ e / (worth(w, len(t)) - rank)
        self.cholesky_ = cholesky(self.covariance_, np.array(sds), len(t))
        return self

    def log_density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return −½(d log 2π + log|S| + (t − m)ᵀS⁻¹(t − m)), (n,); t is (n, d)."""
        X = self._context(X)
        e = self._doses(t, len(X)) - self.mean_.predict(X)
        z = solve_triangular(self.cholesky_, e.T, lower=True)
        log_root = np.sum(np.log(np.diag(self.cholesky_)))
        constant = 0.5 * len(z) * np.log(2.0 * np.pi) + log_root
        return np.asarray(-0.5 * np.sum(z * z, axis=0) - constant)

    def cdf(self, X: ArrayLike, t: ArrayLike) -> NoReturn:  # noqa: ARG002 (the interface)
        """Refuse: the distribution function of a vector treatment serves no estimator."""
        raise InvalidArgument(
            "`MultivariateGaussian` has no cdf: binned estimators and calibration by ranks are "
            "for scalar treatments. Use `LinearGaussian` on one component of the treatment."
        )

    def sample(self, X: ArrayLike, seed: int | np.random.Generator) -> Array:
        """Return one treatment drawn from f(·|x) for each row, (n, d)."""
        X, rng = self._context(X), np.random.default_rng(seed)
        z = rng.standard_normal((len(X), len(self.cholesky_)))
        return np.asarray(self.mean_.predict(X) + z @ self.cholesky_.T)

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that y may have several columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _doses(self, t: ArrayLike, n: int) -> Array:
        values = np.asarray(t, dtype=np.float64)
        d = len(self.cholesky_)
        if values.size != n * d or not np.isfinite(values).all():
            raise DataError(
                f"The treatments must be {n:,} rows of {d} finite numbers; got shape "
                f"{values.shape} with {int((~np.isfinite(values)).sum()):,} non-finite values."
            )
        return values.reshape(n, d)


def cholesky(covariance: Array, sds: Array, n: int) -> Array:
    """Return the factor of a residual covariance (d, d), refusing a singular one."""
    correlation = covariance / np.outer(sds, sds)
    smallest = float(np.linalg.eigvalsh(correlation)[0])
    if smallest < _SINGULAR:
        raise DataError(
            f"The {len(sds)} components of the treatment are linearly dependent given the "
            f"context in {n:,} rows (smallest eigenvalue of their correlation {smallest:.2g}), so "
            "they have no joint density. Drop the components that the others determine."
        )
    return np.asarray(np.linalg.cholesky(covariance))


# ── The Gaussian propensity whose spread depends on the context ───────────────────────────────────

# A treatment counts as recorded with an error of this share of the residual sd. It bounds the
# likelihood, which is infinite when one row alone carries a column (a rare indicator), and
# moves the sd of an ordinary row by a relative 5e-5, of a row ten times as sharp by 5e-3.
_RESOLUTION = 0.01
# Mean gradient at which scoring stops, in units where the residual sd is 1; sampling alone moves
# it by about 1/√n.
_TOLERANCE = 1e-7
_ITERATIONS = 2_000


class HeteroscedasticGaussian(NormalModel):
    """T | x ~ N(a + b·x, s(x)²) with log s(x) = c + g·x, by maximum likelihood.

    Fisher scoring with step halving: the mean by weighted least squares given s, then log s by
    a scoring step given the mean. s carries the factor √(n/(n − rank)) as in `LinearGaussian`,
    and beyond the training rows log s stays within the range it had on them. No s(x) falls below
    about 1 % of the residual sd. Wants some 20 rows for each context column.

    Fitted: `mean_`, `log_sd_` (affine functions), `log_sd_range_`, `n_iter_`.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to contexts X (n, p) and treatments y (n,)."""
        X, t = self._training_rows(X, y)
        w = self._weights(sample_weight, len(t))
        ols = Affine.least_squares(X, t, w)
        design, residuals = ols.design, t - ols.predict(X)
        sd = residual_sd(residuals, t, design.rank, w)
        found = maximize_likelihood(design(X), residuals / sd, w)
        n = worth(w, len(t))
        factor = np.sqrt(n / degrees_of_freedom(n, design.rank))
        level = np.zeros(design.rank)
        level[0] = np.log(sd * factor)
        self.mean_ = Affine(design, ols.coef + sd * found.mean)
        self.log_sd_ = Affine(design, level + found.log_sd)
        seen = self.log_sd_.predict(X)
        self.log_sd_range_ = float(seen.min()), float(seen.max())
        self.n_iter_ = found.iterations
        self.components_ = 1
        return self

    def _law(self, X: Array) -> NormalMixture:
        log_sd = np.clip(self.log_sd_.predict(X), *self.log_sd_range_)
        mean = self.mean_.predict(X)
        return NormalMixture(np.zeros((1, 1)), mean[:, None], np.exp(log_sd)[:, None])


@dataclass(frozen=True, slots=True)
class Scoring:
    """Coefficients of the mean and of the log sd, both (k,), and the steps taken."""

    mean: Array
    log_sd: Array
    iterations: int


def maximize_likelihood(Z: Array, r: Array, weights: Array | None = None) -> Scoring:
    """Return the maximizer of ℓ(b, g) for the whitened design Z (n, k) and residuals r (n,)."""
    omega = np.ones(len(r)) if weights is None else weights
    b, g = np.zeros(Z.shape[1]), _start(Z, r, omega)
    # The Fisher information of g: 2I without weights, since the design is whitened.
    root = None if weights is None else np.linalg.inv(Z.T @ (Z * omega[:, None]) / omega.sum())
    for iteration in range(_ITERATIONS):
        b = weighted_least_squares(Z, r, omega * np.exp(-2.0 * (Z @ g)))
        # With b optimal its gradient is 0, so the gradient in g decides.
        slope = log_likelihood_gradient(Z, r, b, g, weights)[1]
        if np.abs(slope).max() < _TOLERANCE:
            return Scoring(b, g, iteration)
        step = 0.5 * (slope if root is None else root @ slope)
        g = _climbed(g, step, partial(log_likelihood, Z, r, b, weights=weights))
    warnings.warn(
        f"HeteroscedasticGaussian took {_ITERATIONS} steps without settling (gradient "
        f"{np.abs(slope).max():.2g}); its densities are approximate. Drop rare context columns.",
        ConvergenceWarning,
        stacklevel=3,
    )
    return Scoring(b, g, _ITERATIONS)


def log_likelihood(Z: Array, r: Array, b: Array, g: Array, weights: Array | None = None) -> float:
    """Return ℓ(b, g) = −(1/n) Σ [z·g + ½((r − z·b)² + δ²) exp(−2 z·g)], δ the resolution.

    With weights, the mean is weighted.
    """
    eta = Z @ g
    # `errstate`: too bold a step overflows to ℓ = −inf and is then halved.
    with np.errstate(over="ignore"):
        return -float(mean_of(eta + 0.5 * _squares(Z, r, b) * np.exp(-2.0 * eta), weights))


def log_likelihood_gradient(
    Z: Array, r: Array, b: Array, g: Array, weights: Array | None = None
) -> tuple[Array, Array]:
    """Return ∂ℓ/∂b = Zᵀ(w e)/n and ∂ℓ/∂g = Zᵀ(w(e² + δ²) − 1)/n, w = exp(−2 z·g), both (k,)."""
    w, n = np.exp(-2.0 * (Z @ g)), worth(weights, len(r))
    counted = Z if weights is None else Z * weights[:, None]
    mean = counted.T @ (w * (r - Z @ b)) / n
    log_sd = counted.T @ (w * _squares(Z, r, b) - 1.0) / n
    return np.asarray(mean), np.asarray(log_sd)


def _climbed(g: Array, step: Array, height: Callable[[Array], float]) -> Array:
    """Return g after a step that is halved until it leads no lower."""
    before = height(g)
    for _ in range(60):
        if height(g + step) >= before:
            break
        step = step / 2.0
    return g + step


def _start(Z: Array, r: Array, omega: Array) -> Array:
    # log|residual| of a normal has mean log sd − 0.635.
    logs = 0.5 * np.log(_squares(Z, r, np.zeros(Z.shape[1]))) + 0.635
    return weighted_least_squares(Z, logs, omega)


def _squares(Z: Array, r: Array, b: Array) -> Array:
    return np.asarray((r - Z @ b) ** 2 + _RESOLUTION**2)
