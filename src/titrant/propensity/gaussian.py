"""The linear-Gaussian propensity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from titrant.propensity.base import NormalModel
from titrant.propensity.linear import Affine, residual_sd
from titrant.propensity.normal import NormalMixture

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant._types import Array


class LinearGaussian(NormalModel):
    """T | x ~ N(a + b·x, s²): ordinary least squares and its residual standard deviation.

    s² = Σe²/(n − rank), rank counting the intercept: the unbiased divisor, because too small
    an s makes densities too peaked when there are many columns. Collinear columns are allowed.
    For an unconditional density pass one constant column. Treatments that were cut off at
    bounds bias a, b and s (`titrant.propensity.truncate` only renormalizes the fitted law).

    Fitted: `mean_` (its `slopes` and `intercept` are b and a), `sd_`.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to contexts X (n, p) and treatments y (n,)."""
        X, t = self._training_rows(X, y)
        self.mean_ = Affine.least_squares(X, t)
        self.sd_ = residual_sd(t - self.mean_.predict(X), t, self.mean_.design.rank)
        self.components_ = 1
        return self

    def _law(self, X: Array) -> NormalMixture:
        mean = self.mean_.predict(X)[:, None]
        return NormalMixture(np.zeros((1, 1)), mean, np.full((1, 1), self.sd_))
