"""Propensities whose mean, and spread, bend with the context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from titrant._check import count
from titrant.errors import DataError
from titrant.outcome.base import blocks, mean_of, some, weighed
from titrant.outcome.context import ContextMap, extra_columns
from titrant.outcome.crossfit import fold_of
from titrant.outcome.ridge import (
    BLOCK,
    FeatureTable,
    Ridge,
    folded_moments,
    leverages,
    predicted_by_others,
    ridge_gcv,
)
from titrant.propensity.base import NormalMixture, NormalModel, SearchedModel
from titrant.propensity.gaussian import Affine, degrees_of_freedom, residual_sd
from titrant.propensity.kernel_conditional import KernelDensity
from titrant.propensity.mixture import GaussianMixture

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.outcome.base import Regressor

    Rows = NDArray[np.intp]

SAMPLE = 5_000
"""Rows that mixtures are learned from, at most; ridge regressions of mean and spread use all."""
STARTS = 3
"""First guesses of the residual's mixture: it has one context, so its valleys are few."""
# A residual counts as no smaller than this share of the residual sd before its logarithm.
_RESOLUTION = 1e-3
_RANGE = (0.01, 0.99)
_FOLDS = 5
# A scale is no further from the residual sd than by this factor's logarithm.
_WIDEST = 2.5


@dataclass(frozen=True, slots=True)
class ContextRidge:
    """A ridge regression on φ(x) and extra columns, its penalty by generalized cross-validation."""

    context: ContextMap
    ridge: Ridge

    def predict(self, x: Array) -> Array:
        """Return the fitted values at x (n, p + extra), (n,)."""
        coef = self.ridge.coef
        parts = [self.context.summed(x[rows], coef)[0] for rows in blocks(len(x), BLOCK)]
        return np.concatenate([np.empty(0), *parts]) + self.ridge.intercept


@dataclass(frozen=True, slots=True)
class Regressed:
    """A regression, and what it would say of its training rows had it not seen them, each (n,).

    `mean` is by fits without the row's fold, `residual` by the fit without the row. Both are
    needed: a mean without the row alone is a function of its target where contexts are few
    values, and in-sample means follow the noise of their targets.
    """

    line: ContextRidge
    mean: Array
    residual: Array


def regressed(
    x: Array, target: Array, *, extra: int, seed: int, weights: Array | None = None
) -> Regressed:
    """Return the ridge regression of the target (n,) on φ of contexts x (n, p + extra)."""
    n = len(target)
    degrees_of_freedom(n, 2)
    context, folds = ContextMap.of(x, extra), min(_FOLDS, n)
    fold = fold_of(0, n, folds, seed)
    table = FeatureTable.of(n, lambda rows: context(x[rows]))
    total, parts = folded_moments(table, target, fold, weights)
    ridge = ridge_gcv(total)
    mean, residual = predicted_by_others(table, parts, fold, ridge), np.empty(n)
    for rows, features in table:
        share = leverages(total, ridge, features, some(weights, rows))
        residual[rows] = (target[rows] - ridge.predict(features)) / (1.0 - share)
    bad = int(np.count_nonzero(~np.isfinite(residual) | ~np.isfinite(mean)))
    if bad:
        raise DataError(
            f"A ridge regression of the treatment leaves no finite residual in {bad:,} of {n:,} "
            "rows. Give contexts with very large values as their logarithms."
        )
    return Regressed(ContextRidge(context, ridge), mean, residual)


class SmoothLocation(SearchedModel):
    """T = μ(x) + R: μ by ridge regression on φ(x), R a small mixture of regressions on μ(x).

    φ are the splines, levels and products of `ContextMap`; the penalty is chosen by
    generalized cross-validation. R is a `GaussianMixture` of up to `components` given μ, learned
    from residuals of the fit without the row and means of fits without its fold: in sample,
    residuals are too small and means follow the noise.

    Parameters
    ----------
    components : the most components of the residual.
    extra : columns at the end of X that enter μ as they are, such as a forest's prediction of T.
    seed : draws folds, first guesses and, beyond 5,000 rows, those that R is learned from.

    Fitted: `center_`, `sd_` (of T: the unit), `mean_`, `residual_`.
    """

    def __init__(self, components: int = 3, *, extra: int = 0, seed: int = 0) -> None:
        self.components = components
        self.extra = extra
        self.seed = seed

    def _fit(
        self, X: ArrayLike, y: ArrayLike, near: Self | None, sample_weight: ArrayLike | None
    ) -> Self:
        X, t = self._training_rows(X, y)
        w = self._weights(sample_weight, len(t))
        owner = type(self).__name__
        extra = extra_columns(self.extra, X, owner)
        seed = count(self.seed, "seed", owner, at_least=0)
        self.center_, self.sd_ = units(X, t)
        found = regressed(X, (t - self.center_) / self.sd_, extra=extra, seed=seed, weights=w)
        self.mean_ = found.line
        residual = found.residual / self._fit_scale(X, found, w)
        few = few_rows(len(t), seed, SAMPLE)
        shape = GaussianMixture(self.components, starts=STARTS, seed=seed)
        x, r, own = found.mean[few, None], residual[few], some(w, few)
        self.residual_: GaussianMixture = (
            shape.fit(x, r, own) if near is None else shape.fit_near(near.residual_, x, r, own)
        )
        self.components_ = self.residual_.components_
        return self

    def _fit_scale(self, X: Array, found: Regressed, weights: Array | None) -> Array:  # noqa: ARG002
        """Return the spread of the residual at each training row (n,), in sds of T."""
        return np.ones(len(X))

    def _scale(self, X: Array, mean: Array) -> Array:  # noqa: ARG002
        """Return the spread at contexts X (n, p) with these means, in sds of T (n,)."""
        return np.ones(len(X))

    def _law(self, X: Array) -> NormalMixture:
        mean = self.mean_.predict(X)
        law = self.residual_.law(mean[:, None])
        center, scale = self.center_ + self.sd_ * mean, self.sd_ * self._scale(X, mean)
        means = center[:, None] + scale[:, None] * law.means
        return NormalMixture(law.log_weights, means, scale[:, None] * law.sds)


class SmoothLocationScale(SmoothLocation):
    """T = μ(x) + s(x)·Z: `SmoothLocation` whose spread bends with the context as well.

    log s is a ridge regression of log|T − μ| on φ(x) and μ(x), held to the range from the 1 % to
    the 99 % quantile it has on the training rows. As there, the residual's shape is learned from
    fits without the row or its fold.

    Parameters as `SmoothLocation`; the extra columns enter μ alone.

    Fitted: `center_`, `sd_`, `mean_`, `log_scale_`, `log_scale_range_`, `residual_`.
    """

    def _fit_scale(self, X: Array, found: Regressed, weights: Array | None) -> Array:
        least = _RESOLUTION * float(np.sqrt(mean_of(found.residual**2, weights)))
        logs = np.log(np.maximum(np.abs(found.residual), least))
        beside = self._beside_mean(X, found.mean)
        spread = regressed(beside, logs, extra=1, seed=self.seed, weights=weights)
        self.log_scale_ = spread.line
        # A fit without a fold may see nothing of a context that goes to 1e9 there.
        unit = np.log(least / _RESOLUTION)
        low, high = np.clip(np.quantile(spread.mean, _RANGE), unit - _WIDEST, unit + _WIDEST)
        self.log_scale_range_ = float(low), float(high)
        return np.asarray(np.exp(np.clip(spread.mean, low, high)))

    def _scale(self, X: Array, mean: Array) -> Array:
        logs = self.log_scale_.predict(self._beside_mean(X, mean))
        return np.asarray(np.exp(np.clip(logs, *self.log_scale_range_)))

    def _beside_mean(self, X: Array, mean: Array) -> Array:
        return np.column_stack([X[:, : X.shape[1] - self.extra], mean])


def units(X: Array, t: Array) -> tuple[float, float]:
    """Return mean and sd of the treatments t (n,), refusing those that X (n, p) determines."""
    center = float(t.mean())
    sd = residual_sd(t - center, t, 1)
    line = Affine.least_squares(X, t)
    if len(t) > line.design.rank:
        residual_sd(t - line.predict(X), t, line.design.rank)
    return center, sd


def few_rows(n: int, seed: int, most: int) -> slice | Rows:
    """Return the numbers of `most` of n rows, drawn, or all of them if there are no more."""
    return slice(None) if n <= most else np.random.default_rng(seed).permutation(n)[:most]


# ── The propensity with a mean and a scale by any regressor and a free shape of the residual ──────


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
