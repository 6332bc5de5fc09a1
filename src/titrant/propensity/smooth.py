"""Propensities whose mean, and spread, bend with the context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant._check import count
from titrant.moments import Moments
from titrant.outcome.context import ContextMap, extra_columns
from titrant.outcome.folds import fold_of
from titrant.outcome.gcv import Ridge, leverages, ridge_gcv
from titrant.propensity.base import NormalModel, blocks
from titrant.propensity.linear import Affine, degrees_of_freedom, residual_sd
from titrant.propensity.mixture import GaussianMixture
from titrant.propensity.normal import NormalMixture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array

    Rows = NDArray[np.intp]

SAMPLE = 5_000
"""Rows that mixtures are learned from, at most; ridge regressions of mean and spread use all."""
STARTS = 3
"""First guesses of the residual's mixture: it has one context, so its valleys are few."""
# A residual counts as no smaller than this share of the residual sd before its logarithm.
_RESOLUTION = 1e-3
_RANGE = (0.01, 0.99)
_FOLDS = 5


@dataclass(frozen=True, slots=True)
class ContextRidge:
    """A ridge regression on φ(x) and extra columns, its penalty by generalized cross-validation."""

    context: ContextMap
    ridge: Ridge

    def predict(self, x: Array) -> Array:
        """Return the fitted values at x (n, p + extra), (n,)."""
        table = FeatureTable.of(self.context, x)
        return np.concatenate([np.empty(0), *(self.ridge.predict(f) for _, f in table)])


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


def regressed(x: Array, target: Array, *, extra: int, seed: int) -> Regressed:
    """Return the ridge regression of the target (n,) on φ of contexts x (n, p + extra)."""
    n = len(target)
    degrees_of_freedom(n, 2)
    context, folds = ContextMap.of(x, extra), min(_FOLDS, n)
    fold = fold_of(0, n, folds, seed)
    table = FeatureTable.of(context, x)
    parts = [Moments.empty(table.width + 1)] * folds
    for rows, features in table:
        columns = np.column_stack([features, target[rows]])
        parts = [part + Moments.of(columns[fold[rows] == k]) for k, part in enumerate(parts)]
    total = _total(parts)
    ridge = ridge_gcv(total)
    others = [ridge_gcv(_total(parts[:k] + parts[k + 1 :])) for k in range(folds)]
    mean, residual = np.empty(n), np.empty(n)
    for rows, features in table:
        said = np.column_stack([other.predict(features) for other in others])
        mean[rows] = np.take_along_axis(said, fold[rows, None], axis=1)[:, 0]
        share = leverages(total, ridge, features)
        residual[rows] = (target[rows] - ridge.predict(features)) / (1.0 - share)
    return Regressed(ContextRidge(context, ridge), mean, residual)


def _total(parts: list[Moments]) -> Moments:
    return sum(parts[1:], start=parts[0])


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """φ of contexts, block by block; kept if there is one block only, else computed anew."""

    context: ContextMap
    x: Array
    width: int
    kept: Array | None

    @classmethod
    def of(cls, context: ContextMap, x: Array) -> Self:
        """Return the table of contexts x (n, p + extra)."""
        width = context(x[:1]).shape[1] if len(x) else 0
        small = len(list(blocks(len(x), max(1, width)))) == 1
        return cls(context, x, width, context(x) if small else None)

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        """Yield rows beside their features (m, F)."""
        for rows in blocks(len(self.x), max(1, self.width)):
            yield rows, self.context(self.x[rows]) if self.kept is None else self.kept


class SmoothLocation(NormalModel):
    """T = μ(x) + R: μ by ridge regression on φ(x), R a small mixture of regressions on μ(x).

    φ are the splines, levels and products of `ContextFeatures`; the penalty is chosen by
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

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to contexts X (n, p) and treatments y (n,)."""
        X, t = self._training_rows(X, y)
        extra = extra_columns(self.extra, X, "SmoothLocation")
        seed = count(self.seed, "seed", "SmoothLocation", at_least=0)
        self.center_, self.sd_ = units(X, t)
        u = (t - self.center_) / self.sd_
        found = regressed(X, u, extra=extra, seed=seed)
        self.mean_ = found.line
        shape = GaussianMixture(self.components, starts=STARTS, seed=seed)
        self.residual_ = fit_residual(shape, found.mean, found.residual, seed)
        self.components_ = self.residual_.components_
        return self

    def _law(self, X: Array) -> NormalMixture:
        mean = self.mean_.predict(X)
        scale = np.full(len(X), self.sd_)
        return moved(self.residual_, mean, self.center_ + self.sd_ * mean, scale)


class SmoothLocationScale(NormalModel):
    """T = μ(x) + s(x)·Z: `SmoothLocation` whose spread bends with the context as well.

    log s is a ridge regression of log|T − μ| on φ(x) and μ(x), held to the range from the 1 % to
    the 99 % quantile it has on the training rows. As there, the residual's shape is learned from
    fits without the row or its fold.

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
        seed = count(self.seed, "seed", "SmoothLocationScale", at_least=0)
        self.center_, self.sd_ = units(X, t)
        u = (t - self.center_) / self.sd_
        found = regressed(X, u, extra=extra, seed=seed)
        self.mean_ = found.line
        least = _RESOLUTION * float(np.sqrt(np.mean(found.residual**2)))
        logs = np.log(np.maximum(np.abs(found.residual), least))
        spread = regressed(self._beside_mean(X, found.mean), logs, extra=1, seed=seed)
        self.log_scale_ = spread.line
        low, high = np.quantile(spread.mean, _RANGE)
        self.log_scale_range_ = float(low), float(high)
        scale = np.exp(np.clip(spread.mean, low, high))
        shape = GaussianMixture(self.components, starts=STARTS, seed=seed)
        self.residual_ = fit_residual(shape, found.mean, found.residual / scale, seed)
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
    rows = few_rows(len(mean), seed, SAMPLE)
    return shape.fit(mean[rows, None], residual[rows])


def few_rows(n: int, seed: int, most: int) -> slice | Rows:
    """Return the numbers of `most` of n rows, drawn, or all of them if there are no more."""
    return slice(None) if n <= most else np.random.default_rng(seed).permutation(n)[:most]


def moved(residual: GaussianMixture, mean: Array, center: Array, scale: Array) -> NormalMixture:
    """Return the law of center + scale·R (n,), R the residual given the mean (n,)."""
    law = residual.law(mean[:, None])
    means = center[:, None] + scale[:, None] * law.means
    return NormalMixture(law.log_weights, means, scale[:, None] * law.sds)
