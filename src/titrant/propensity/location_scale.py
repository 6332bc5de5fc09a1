"""The propensity with a mean and a scale by any regressor and a free shape of the residual."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from titrant._check import count
from titrant.outcome.base import mean_of, some, weighed
from titrant.propensity.base import NormalMixture, NormalModel
from titrant.propensity.gaussian import Affine, residual_sd
from titrant.propensity.kernel_conditional import KernelDensity

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant._types import Array

# A residual counts as no smaller than this share of the residual sd before its logarithm.
_RESOLUTION = 1e-3


class Regressor(Protocol):
    """Any regressor of scikit-learn's manners."""

    def fit(self, X: Array, y: Array) -> Self:
        """Learn y (n,) from X (n, p)."""

    def predict(self, X: Array) -> Array:
        """Return predictions, (n,)."""


class LocationScale(NormalModel):
    """T = m(x) + s(x)·Z with the density of Z by a Gaussian kernel estimate.

    `mean` is any regressor of scikit-learn's manners for m (None: least squares); `scale` is
    one for log|t − m(x)|, whose exponential is s (None: constant). The regressors given are
    cloned; their residuals are out of fold (`folds`, shuffled by `seed`), because in-sample
    residuals of a flexible regressor are too small. s stays within its range over the training
    rows. The kernel's bandwidth is Silverman's; beyond 1,000 rows residuals are binned.

    The tails are those of the kernel, so densities of rare treatments are uncertain: use it
    with a floor. Fitted: `mean_`, `scale_` (None if constant), `residual_`, `scale_range_`.
    """

    def __init__(
        self,
        mean: Regressor | None = None,
        scale: Regressor | None = None,
        *,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.mean = mean
        self.scale = scale
        self.folds = folds
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to contexts X (n, p) and treatments y (n,); regressors are told weights they take."""
        count(self.folds, "folds", "LocationScale", at_least=2)
        X, t = self._training_rows(X, y)
        w = self._weights(sample_weight, len(t))
        residuals = self._fit_mean(X, t, w)
        scales = self._fit_scale(X, residuals, w)
        self.scale_range_ = float(scales.min()), float(scales.max())
        self.residual_ = KernelDensity.of(residuals / scales, w)
        self.components_ = len(self.residual_.centers)
        return self

    def _fit_mean(self, X: Array, t: Array, w: Array | None) -> Array:
        if self.mean is None:
            line = Affine.least_squares(X, t, w)
            self.mean_: Regressor | Affine = line
            residuals = t - line.predict(X)
            residual_sd(residuals, t, line.design.rank, w)
            return residuals
        self.mean_ = weighed(clone(self.mean).fit, X, t, weights=w)
        residuals = t - self._out_of_fold(self.mean, X, t, w)
        residual_sd(residuals, t, 1, w)
        return residuals

    def _fit_scale(self, X: Array, residuals: Array, w: Array | None) -> Array:
        sd = float(np.sqrt(mean_of(residuals**2, w)))
        if self.scale is None:
            self.scale_ = None
            return np.full(len(residuals), sd)
        logs = np.log(np.maximum(np.abs(residuals), _RESOLUTION * sd))
        self.scale_ = weighed(clone(self.scale).fit, X, logs, weights=w)
        return np.exp(self._out_of_fold(self.scale, X, logs, w))

    def _out_of_fold(self, regressor: Regressor, X: Array, target: Array, w: Array | None) -> Array:
        folds = KFold(min(self.folds, len(X)), shuffle=True, random_state=self.seed)
        predicted = np.empty(len(X))
        for train, test in folds.split(X):
            model = weighed(clone(regressor).fit, X[train], target[train], weights=some(w, train))
            predicted[test] = np.asarray(model.predict(X[test]), dtype=np.float64).ravel()
        return predicted

    def _law(self, X: Array) -> NormalMixture:
        mean = np.asarray(self.mean_.predict(X), dtype=np.float64).reshape(len(X), 1)
        scale = self._scales(X)[:, None]
        z = self.residual_
        return NormalMixture(
            np.log(z.weights)[None, :], mean + scale * z.centers, scale * z.bandwidth
        )

    def _scales(self, X: Array) -> Array:
        low, high = self.scale_range_
        if self.scale_ is None:
            return np.full(len(X), low)
        logs = np.asarray(self.scale_.predict(X), dtype=np.float64).reshape(len(X))
        return np.clip(np.exp(np.minimum(logs, np.log(high))), low, high)
