"""The Gaussian propensity whose spread depends on the context."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from titrant.outcome.base import mean_of, worth
from titrant.propensity.base import NormalMixture, NormalModel
from titrant.propensity.gaussian import (
    Affine,
    degrees_of_freedom,
    residual_sd,
    weighted_least_squares,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from titrant._types import Array

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
