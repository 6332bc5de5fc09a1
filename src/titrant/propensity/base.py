"""What a propensity model is, and the mixtures of normals in which scalar ones speak."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
from scipy.special import log_ndtr, ndtr
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from titrant.errors import DataError
from titrant.outcome.base import scaled_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from titrant._types import Array
    from titrant.propensity.laws import Laws

# Mixtures of normals: the one family in which this room's scalar models speak.
#
# Linear-Gaussian, heteroscedastic, mixture, residual-KDE and kernel models differ only in how
# the weights, means and standard deviations depend on the context, so density, distribution
# function, probability of an interval and sampling are written once, here.


_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_FEW = 6


@dataclass(frozen=True, slots=True)
class NormalMixture:
    """The law of T for n rows: f(t) = Σ_k w_k φ((t − m_k)/s_k)/s_k.

    `log_weights`, `means` and `sds` broadcast to (n, K); the weights of a row sum to 1.
    """

    log_weights: Array
    means: Array
    sds: Array

    def density(self, t: Array) -> Array:
        """Return f(t), (n,)."""
        return np.exp(self.log_density(t))

    def log_density(self, t: Array) -> Array:
        """Return log f(t), (n,): exact far into the tails, −inf at ±inf."""
        return log_sum_exp(self.log_joint(t))

    def log_joint(self, t: Array) -> Array:
        """Return log(w_k φ((t − m_k)/s_k)/s_k), (n, K): each component's part of the density."""
        z = self._standardize(t)
        return np.asarray(self.log_weights - 0.5 * z * z - np.log(self.sds) - _LOG_SQRT_2PI)

    def cdf(self, t: Array) -> Array:
        """Return F(t) = Σ_k w_k Φ((t − m_k)/s_k), (n,)."""
        total = np.sum(np.exp(self.log_weights) * ndtr(self._standardize(t)), axis=1)
        return np.asarray(np.minimum(total, 1.0), dtype=np.float64)

    def log_probability(self, lower: Array, upper: Array) -> Array:
        """Return log P(lower < T ≤ upper), (n,), without cancellation in either tail."""
        a, b = self._standardize(lower), self._standardize(upper)
        return log_sum_exp(self.log_weights + log_normal_interval(a, b))

    def sample(self, uniform: Array, normal: Array) -> Array:
        """Return one draw a row, (n,), from `uniform` (which component) and `normal` (where)."""
        n, width = len(uniform), np.shape(self.means)[1]
        reached = np.cumsum(np.broadcast_to(np.exp(self.log_weights), (n, width)), axis=1)
        # Weights sum to 1 up to rounding: the last component takes what rounding leaves over.
        pick = np.sum(reached[:, :-1] < uniform[:, None], axis=1)
        row = np.arange(n)
        means, sds = np.broadcast_to(self.means, (n, width)), np.broadcast_to(self.sds, (n, width))
        return np.asarray(means[row, pick] + sds[row, pick] * normal, dtype=np.float64)

    def _standardize(self, t: Array) -> Array:
        return np.asarray((t[:, None] - self.means) / self.sds, dtype=np.float64)


def log_normal_interval(a: Array, b: Array) -> Array:
    """Return log(Φ(b) − Φ(a)) for a ≤ b, elementwise, accurate in both tails.

    An interval on the right is mirrored to the left, where Φ keeps relative precision; one that
    straddles 0 is 1 minus its two outer tails.
    """
    right = a > 0.0
    a, b = np.where(right, -b, a), np.where(right, -a, b)
    straddles = (a < 0.0) & (b > 0.0)
    # `errstate`: an empty interval is log 0, and an infinite tail a harmless 0 · inf.
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = log_ndtr(b) + np.log1p(-np.exp(np.minimum(log_ndtr(a) - log_ndtr(b), 0.0)))
        middle = np.log1p(-np.minimum(ndtr(a) + ndtr(-b), 1.0))
    return np.where(a == b, -np.inf, np.where(straddles, middle, tail))


def log_sum_exp(values: Array) -> Array:
    """Return log Σ_k exp(values_k) of each row of an (n, K) array; −inf where all are −inf."""
    top = _along_rows(np.maximum, values)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(_along_rows(np.add, np.exp(values - shift[:, None])))
    return np.asarray(shift + total, dtype=np.float64)


def _along_rows(combine: np.ufunc, values: Array) -> Array:
    """Return each row of an (n, K) array combined into one number (n,)."""
    if values.shape[1] > _FEW:
        return np.asarray(combine.reduce(values, axis=1), dtype=np.float64)
    # Column by column: numpy's own way along short rows takes ten times as long. Few numbers are
    # added in the same order, so to the same bits.
    total = values[:, 0]
    for k in range(1, values.shape[1]):
        total = combine(total, values[:, k])
    return np.asarray(total, dtype=np.float64)


# What every propensity model does, and what a new one has to bring.
#
# A model is a scikit-learn estimator whose target `y` is the treatment. A new scalar model is one
# final class under `NormalModel` that writes `fit` (setting `components_`, the number of normals
# a row's law has) and `_law`, and one line in `PROPENSITIES`.

# Numbers in one block of rows × components: 16 MB of float64 keeps memory flat.
_BLOCK = 2_000_000


class FittedPropensity(Protocol):
    """What the rest of titrant asks of a propensity once it is fitted, ours or the user's."""

    def density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return f(t|x), (n,)."""

    def cdf(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return F(t|x), (n,)."""


class PropensityModel(FittedPropensity, Protocol):
    """A propensity that learns."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn f(t|x) from contexts X (n, p) and treatments y."""

    def sample(self, X: ArrayLike, seed: int | np.random.Generator) -> Array:
        """Return one treatment drawn from f(·|x) for each row."""


class Propensity(BaseEstimator, ABC):
    """The manners common to all fitted models: density, score and scikit-learn's tags."""

    @abstractmethod
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn f(t|x) from contexts X (n, p) and treatments y, rows by weights (n,)."""

    @abstractmethod
    def log_density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return log f(t|x), (n,)."""

    def density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return the generalized propensity f(t|x), (n,).

        X is (n, p); t is one treatment a row or one for all; ±inf has density 0.
        """
        return np.exp(self.log_density(X, t))

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the mean log density (1/n) Σ log f(y_i|x_i) of the treatments y."""
        return float(np.mean(self.log_density(X, y)))

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that the treatment is required."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _weights(self, sample_weight: ArrayLike | None, n: int) -> Array | None:
        return scaled_weights(sample_weight, n, type(self).__name__)

    def _training_rows(
        self, X: ArrayLike, y: ArrayLike, *, vector: bool = False
    ) -> tuple[Array, Array]:
        rows, t = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, multi_output=vector, ensure_min_samples=2
        )
        return np.asarray(rows), np.asarray(t, dtype=np.float64)

    def _context(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        if type(X) is np.ndarray and X.dtype == np.float64 and self._takes(X):
            return X
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64))

    def _takes(self, X: Array) -> bool:
        """Whether contexts (n, p) are such that scikit-learn would return them as they are.

        Its checks take longer than the densities of a thousand rows.
        """
        shape = len(X) > 0 and X.shape[1:] == (self.n_features_in_,)
        return shape and "feature_names_in_" not in vars(self) and bool(np.isfinite(X).all())


class PreciseTails(ABC):
    """A scalar law that knows logarithms, so that its tails keep their digits."""

    @abstractmethod
    def log_density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return log f(t|x), (n,)."""

    @abstractmethod
    def log_probability(self, X: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Array:
        """Return log P(lower < T ≤ upper | x), (n,)."""

    def laws(self, X: ArrayLike) -> Laws | None:  # noqa: ARG002
        """Return the laws at contexts X (n, p), by which doses are asked; None to be asked anew."""
        return None


class NormalModel(Propensity, PreciseTails):
    """A scalar model whose law at each x is a mixture of normals."""

    components_: int

    @abstractmethod
    def _law(self, X: Array) -> NormalMixture:
        """Return the law of T at each row of X (n, p)."""

    def law(self, X: ArrayLike) -> NormalMixture:
        """Return the law of T at each row of contexts X (n, p)."""
        return self._law(self._context(X))

    def laws(self, X: ArrayLike) -> NormalMixture | None:
        """Return the law of T at each row of contexts X (n, p), unless that is too much to keep."""
        check_is_fitted(self)
        return self.law(X) if len(np.asarray(X)) * self.components_ <= _BLOCK else None

    def log_density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return log f(t|x), (n,), exact where the density itself would underflow."""
        X = self._context(X)
        return self._by_block(X, NormalMixture.log_density, as_doses(t, len(X)))

    def cdf(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return F(t|x) = P(T ≤ t | x), (n,); t is one treatment a row or one for all."""
        X = self._context(X)
        return self._by_block(X, NormalMixture.cdf, as_doses(t, len(X)))

    def log_probability(self, X: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Array:
        """Return log P(lower < T ≤ upper | x), (n,), precise far into the tails."""
        X = self._context(X)
        bounds = as_doses(lower, len(X)), as_doses(upper, len(X))
        return self._by_block(X, NormalMixture.log_probability, *bounds)

    def sample(self, X: ArrayLike, seed: int | np.random.Generator) -> Array:
        """Return one treatment drawn from f(·|x) for each row, (n,)."""
        X, rng = self._context(X), np.random.default_rng(seed)
        draws = rng.uniform(size=len(X)), rng.standard_normal(len(X))
        return self._by_block(X, NormalMixture.sample, *draws)

    def _by_block(self, X: Array, evaluate: Callable[..., Array], *columns: Array) -> Array:
        return np.concatenate(
            [
                evaluate(self._law(X[rows]), *(column[rows] for column in columns))
                for rows in blocks(len(X), self.components_)
            ]
        )


class SearchedModel(NormalModel):
    """A scalar model found by a search, which may begin where another one ended."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to contexts X (n, p) and treatments y (n,)."""
        return self._fit(X, y, None, sample_weight)

    def fit_near(
        self, other: Self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit as `fit` does, the search beginning where `other` ended, fitted to rows alike."""
        return self._fit(X, y, other, sample_weight)

    @abstractmethod
    def _fit(
        self, X: ArrayLike, y: ArrayLike, near: Self | None, sample_weight: ArrayLike | None
    ) -> Self:
        """Fit, from where `near` ended if there is one."""


def blocks(n: int, width: int) -> Iterator[slice]:
    """Yield consecutive slices of n rows, each small enough for `width` numbers a row."""
    size = max(1, _BLOCK // width)
    return (slice(start, start + size) for start in range(0, n, size))


def as_doses(t: ArrayLike, n: int) -> Array:
    """Return `t` as n floats from (n,), (n, 1) or one number for all; ±inf is allowed."""
    values = np.asarray(t, dtype=np.float64)
    if values.shape == (n, 1):
        values = values[:, 0]
    if values.shape not in {(), (1,), (n,)}:
        raise DataError(
            f"The treatments must be one number or one a row; got shape {values.shape} "
            f"for {n:,} rows. Pass as many treatments as contexts."
        )
    if missing := int(np.isnan(values).sum()):
        raise DataError(f"The treatments hold NaN in {missing:,} of {n:,} rows. Drop these rows.")
    return values if values.shape == (n,) else np.broadcast_to(values, (n,))


def treatments(t: ArrayLike, n: int) -> Array:
    """Return one treatment a row, of several doses as they are."""
    values = np.asarray(t, dtype=np.float64)
    several = values.ndim == 2 and values.shape[1] > 1  # noqa: PLR2004
    return values if several else as_doses(values, n)
