"""The linear-Gaussian propensity of vector treatments."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Self

import numpy as np
from scipy.linalg import solve_triangular

from titrant.errors import DataError, InvalidArgument
from titrant.propensity.base import Propensity
from titrant.propensity.linear import Affine, residual_sd

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from titrant._types import Array

# Residual correlations this close to ±1 leave no density in d dimensions.
_SINGULAR = 1e-10


class MultivariateGaussian(Propensity):
    """T | x ~ N_d(a + Bx, S): least squares for each component, full residual covariance.

    S = Σ e eᵀ/(n − rank). Treatments are (n, d); (n,) is read as (n, 1).

    Fitted: `mean_` (affine, d outputs), `covariance_` (d, d).
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to contexts X (n, p) and treatments y (n, d)."""
        X, t = self._training_rows(X, y, vector=True)
        t = t.reshape(len(X), -1)
        self.mean_ = Affine.least_squares(X, t)
        e = t - self.mean_.predict(X)
        rank = self.mean_.design.rank
        sds = [residual_sd(e[:, j], t[:, j], rank) for j in range(t.shape[1])]
        self.covariance_ = e.T @ e / (len(t) - rank)
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
