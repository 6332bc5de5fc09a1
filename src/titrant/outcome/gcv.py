"""Ridge regression from sufficient statistics, its penalty by generalized cross-validation.

The statistics are the moments of the columns [features, y]. They add up, so the ridge fit without
a fold is the fit of the sum of the other folds' moments: no row is visited again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.moments import Moments

PENALTIES = np.geomspace(1e-6, 1e3, 55)
"""λ in units of the features' variance: from next to none to next to nothing left."""
SATURATED = 0.9
"""Fits that spend more than this share of the rows on parameters are not considered: GCV is 0/0."""
EXACT = 1e-13
"""Residual variances below this share of Var(y) are rounding and count as equal."""
FLAT = 1e-9
"""A feature with less than this sd, in units where features are of order one, is constant."""


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
    sd = np.sqrt(np.diagonal(moments.covariance))
    inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0.0)
    inverse[:-1][sd[:-1] <= FLAT] = 0.0
    correlation = moments.covariance * np.outer(inverse, inverse)
    d, v = np.linalg.eigh(correlation[:-1, :-1])
    d, a = np.maximum(d, 0.0), v.T @ correlation[:-1, -1]
    df, score = _gcv(d, a, moments.n)
    best = int(np.argmin(score))
    coef = v @ (a / (d + PENALTIES[best])) * inverse[:-1] * sd[-1]
    intercept = float(moments.mean[-1] - moments.mean[:-1] @ coef)
    return Ridge(intercept, coef, float(PENALTIES[best]), float(df[best]), float(score[best]))


def _gcv(d: Array, a: Array, n: int) -> tuple[Array, Array]:
    """Return df(λ) and GCV(λ)/Var(y) for all penalties (L,)."""
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


def leverages(moments: Moments, ridge: Ridge, features: Array) -> Array:
    """Return hᵢᵢ = ∂ŷᵢ/∂yᵢ of training features (n, F), moments being those of [features, y] (n,).

    With z the standardized features and R their correlation, hᵢᵢ = (1 + zᵢ'(R + λ)⁻¹zᵢ)/n. The
    residual without row i, at the same λ and units, is eᵢ/(1 − hᵢᵢ).
    """
    sd = np.sqrt(np.diagonal(moments.covariance))[:-1]
    inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > FLAT)
    shrunk = moments.covariance[:-1, :-1] * np.outer(inverse, inverse)
    shrunk[np.diag_indices_from(shrunk)] += ridge.penalty
    z = (features - moments.mean[:-1]) * inverse
    half = solve_triangular(np.linalg.cholesky(shrunk), z.T, lower=True)
    return np.asarray((1.0 + np.sum(half**2, axis=0)) / moments.n)
