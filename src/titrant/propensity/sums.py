"""Linear-Gaussian propensities from sums over rows, for logs that are read part by part.

Least squares needs no more of the rows than the means and co-moments of doses and contexts, and
these add up. The result is that of fitting on all rows, up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import DataError
from titrant.propensity.gaussian import LinearGaussian
from titrant.propensity.linear import Affine, Design, degrees_of_freedom
from titrant.propensity.multivariate import MultivariateGaussian, cholesky
from titrant.scaling import ROUNDING

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.moments import Moments

_ROUNDING = 1e-12
"""A residual variance below this share of the doses' own is rounding."""
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

    def _design(self) -> Design:
        d, n = self.doses, self.moments.n
        c_xx = self.moments.comoment[d:, d:]
        spread = np.sqrt(np.diagonal(c_xx) / n)
        scale = np.where(spread > ROUNDING * self.largest, spread, np.inf)
        shares, directions = np.linalg.eigh(c_xx / n / np.outer(scale, scale))
        keep = shares > _COLLINEAR * max(float(shares.max(initial=0.0)), 1.0)
        projection = directions[:, keep] / np.sqrt(shares[keep]) / scale[:, None]
        return Design(self.moments.mean[d:], projection)


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
    model.cholesky_ = cholesky(model.covariance_, sds, sums.moments.n)
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
