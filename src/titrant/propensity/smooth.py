"""Propensities whose mean, and spread, bend with the context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant._check import count
from titrant.moments import Moments
from titrant.outcome.context import ContextMap, extra_columns
from titrant.outcome.gcv import Ridge, leverages, ridge_gcv
from titrant.propensity.base import NormalModel, blocks
from titrant.propensity.linear import Affine, residual_sd
from titrant.propensity.mixture import GaussianMixture
from titrant.propensity.normal import NormalMixture

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array

SAMPLE = 5_000
"""Rows that mixtures are learned from, at most; ridge regressions of mean and spread use all."""
STARTS = 3
"""First guesses of the residual's mixture: it has one context, so its valleys are few."""
# A residual counts as no smaller than this share of the residual sd before its logarithm.
_RESOLUTION = 1e-3
_RANGE = (0.01, 0.99)


@dataclass(frozen=True, slots=True)
class ContextRidge:
    """A ridge regression on φ(x) and extra columns, its penalty by generalized cross-validation."""

    context: ContextMap
    ridge: Ridge
    moments: Moments

    @classmethod
    def of(cls, x: Array, target: Array, extra: int) -> Self:
        """Return the regression of the target (n,) on contexts x (n, p + extra)."""
        context = ContextMap.of(x, extra)
        parts = [
            Moments.of(np.column_stack([context(x[rows]), target[rows]]))
            for rows in _blocks_of(context, x)
        ]
        moments = sum(parts[1:], start=parts[0])
        return cls(context, ridge_gcv(moments), moments)

    def predict(self, x: Array) -> Array:
        """Return the fitted values at x (n, p + extra), (n,)."""
        parts = [self.ridge.predict(self.context(x[rows])) for rows in _blocks_of(self.context, x)]
        return np.concatenate([np.empty(0), *parts])

    def in_and_out(self, x: Array, target: Array) -> tuple[Array, Array]:
        """Return what the regression says of its training rows, and what it would without each."""
        inside, outside = np.empty(len(x)), np.empty(len(x))
        for rows in _blocks_of(self.context, x):
            features = self.context(x[rows])
            inside[rows] = self.ridge.predict(features)
            share = leverages(self.moments, self.ridge, features)
            outside[rows] = target[rows] - (target[rows] - inside[rows]) / (1.0 - share)
        return inside, outside


def _blocks_of(context: ContextMap, x: Array) -> list[slice]:
    width = context(x[:1]).shape[1] if len(x) else 1
    return list(blocks(len(x), max(1, width)))


class SmoothLocation(NormalModel):
    """T = μ(x) + R: μ by ridge regression on φ(x), R a small mixture of regressions on μ(x).

    φ are the splines, levels and products of `ContextFeatures`; the penalty is chosen by
    generalized cross-validation. Residuals are those of the fit without the row, since in-sample
    ones are too small. R is a `GaussianMixture` of up to `components` given μ.

    Parameters
    ----------
    components : the most components of the residual.
    extra : columns at the end of X that enter μ as they are, such as a forest's prediction of T.
    seed : draws first guesses and, beyond 5,000 rows, those that R is learned from.

    Fitted: `center_`, `sd_` (of T: the unit), `mean_`, `residual_`.
    """

    def __init__(self, components: int = 3, *, extra: int = 0, seed: int = 0) -> None:
        self.components = components
        self.extra = extra
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to contexts X (n, p) and treatments y (n,)."""
        X, t = self._training_rows(X, y)
        extra = extra_columns(self.extra, X, "SmoothLocation")
        self.center_, self.sd_ = units(X, t)
        u = (t - self.center_) / self.sd_
        self.mean_ = ContextRidge.of(X, u, extra)
        mean, without = self.mean_.in_and_out(X, u)
        shape = GaussianMixture(self.components, starts=STARTS, seed=self.seed)
        self.residual_ = fit_residual(shape, mean, u - without, self.seed)
        self.components_ = self.residual_.components_
        return self

    def _law(self, X: Array) -> NormalMixture:
        mean = self.mean_.predict(X)
        scale = np.full(len(X), self.sd_)
        return moved(self.residual_, mean, self.center_ + self.sd_ * mean, scale)


class SmoothLocationScale(NormalModel):
    """T = μ(x) + s(x)·Z: `SmoothLocation` whose spread bends with the context as well.

    log s is a ridge regression of log|T − μ| on φ(x) and μ(x), held to the range from the 1 % to
    the 99 % quantile it has on the training rows. Residuals, before and after division by s, are
    those of fits without the row.

    Parameters as `SmoothLocation`; the extra columns enter μ alone.

    Fitted: `center_`, `sd_`, `mean_`, `log_scale_`, `log_scale_range_`, `residual_`.
    """

    def __init__(self, components: int = 3, *, extra: int = 0, seed: int = 0) -> None:
        self.components = components
        self.extra = extra
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to contexts X (n, p) and treatments y (n,)."""
        X, t = self._training_rows(X, y)
        extra = extra_columns(self.extra, X, "SmoothLocationScale")
        self.center_, self.sd_ = units(X, t)
        u = (t - self.center_) / self.sd_
        self.mean_ = ContextRidge.of(X, u, extra)
        mean, without = self.mean_.in_and_out(X, u)
        residual = u - without
        least = _RESOLUTION * float(np.sqrt(np.mean(residual**2)))
        logs = np.log(np.maximum(np.abs(residual), least))
        beside = self._beside_mean(X, mean)
        self.log_scale_ = ContextRidge.of(beside, logs, 1)
        seen, without = self.log_scale_.in_and_out(beside, logs)
        low, high = np.quantile(seen, _RANGE)
        self.log_scale_range_ = float(low), float(high)
        scale = np.exp(np.clip(without, low, high))
        shape = GaussianMixture(self.components, starts=STARTS, seed=self.seed)
        self.residual_ = fit_residual(shape, mean, residual / scale, self.seed)
        self.components_ = self.residual_.components_
        return self

    def _law(self, X: Array) -> NormalMixture:
        mean = self.mean_.predict(X)
        logs = self.log_scale_.predict(self._beside_mean(X, mean))
        scale = self.sd_ * np.exp(np.clip(logs, *self.log_scale_range_))
        return moved(self.residual_, mean, self.center_ + self.sd_ * mean, scale)

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


def fit_residual(
    shape: GaussianMixture, mean: Array, residual: Array, seed: int
) -> GaussianMixture:
    """Return the mixture fitted to residuals (n,) given means (n,), of at most `SAMPLE` rows."""
    rows = few_rows(len(mean), seed)
    return shape.fit(mean[rows, None], residual[rows])


def few_rows(n: int, seed: int) -> slice | NDArray[np.int64]:
    """Return the numbers of `SAMPLE` of n rows, or all of them."""
    seed = count(seed, "seed", "the sample", at_least=0)
    return slice(None) if n <= SAMPLE else np.random.default_rng(seed).permutation(n)[:SAMPLE]


def moved(residual: GaussianMixture, mean: Array, center: Array, scale: Array) -> NormalMixture:
    """Return the law of center + scale·R (n,), R the residual given the mean (n,)."""
    law = residual.law(mean[:, None])
    means = center[:, None] + scale[:, None] * law.means
    return NormalMixture(law.log_weights, means, scale[:, None] * law.sds)
