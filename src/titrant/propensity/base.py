"""What every propensity model does, and what a new one has to bring.

A model is a scikit-learn estimator whose target `y` is the treatment. A new scalar model is one
final class under `NormalModel` that writes `fit` (setting `components_`, the number of normals
a row's law has) and `_law`, and one line in `PROPENSITIES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from titrant.errors import DataError
from titrant.propensity.normal import NormalMixture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from titrant._types import Array

# Numbers in one block of rows × components: 16 MB of float64 keeps memory flat.
_BLOCK = 2_000_000


class FittedPropensity(Protocol):
    """What the rest of titrant asks of a propensity once it is fitted, ours or the user's."""

    def density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return f(t|x), (n,)."""

    def cdf(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return F(t|x), (n,)."""

    def sample(self, X: ArrayLike, seed: int | np.random.Generator) -> Array:
        """Return one treatment drawn from f(·|x) for each row."""


class PropensityModel(FittedPropensity, Protocol):
    """A propensity that learns."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn f(t|x) from contexts X (n, p) and treatments y."""


class Propensity(BaseEstimator, ABC):
    """The manners common to all fitted models: density, score and scikit-learn's tags."""

    @abstractmethod
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn f(t|x) from contexts X (n, p) and treatments y."""

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

    def _training_rows(
        self, X: ArrayLike, y: ArrayLike, *, vector: bool = False
    ) -> tuple[Array, Array]:
        rows, t = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, multi_output=vector, ensure_min_samples=2
        )
        return np.asarray(rows), np.asarray(t, dtype=np.float64)

    def _context(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64))


class PreciseTails(ABC):
    """A scalar law that knows logarithms, so that its tails keep their digits."""

    @abstractmethod
    def log_density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return log f(t|x), (n,)."""

    @abstractmethod
    def log_probability(self, X: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Array:
        """Return log P(lower < T ≤ upper | x), (n,)."""


class NormalModel(Propensity, PreciseTails):
    """A scalar model whose law at each x is a mixture of normals."""

    components_: int

    @abstractmethod
    def _law(self, X: Array) -> NormalMixture:
        """Return the law of T at each row of X (n, p)."""

    def law(self, X: ArrayLike) -> NormalMixture:
        """Return the law of T at each row of contexts X (n, p)."""
        return self._law(self._context(X))

    def log_density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return log f(t|x), (n,), exact where the density itself would underflow."""
        X = self._context(X)
        return self._by_block(X, NormalMixture.log_density, doses(t, len(X)))

    def cdf(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return F(t|x) = P(T ≤ t | x), (n,); t is one treatment a row or one for all."""
        X = self._context(X)
        return self._by_block(X, NormalMixture.cdf, doses(t, len(X)))

    def log_probability(self, X: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Array:
        """Return log P(lower < T ≤ upper | x), (n,), precise far into the tails."""
        X = self._context(X)
        bounds = doses(lower, len(X)), doses(upper, len(X))
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


def blocks(n: int, width: int) -> Iterator[slice]:
    """Yield consecutive slices of n rows, each small enough for `width` numbers a row."""
    size = max(1, _BLOCK // width)
    return (slice(start, start + size) for start in range(0, n, size))


def doses(t: ArrayLike, n: int) -> Array:
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
    return np.broadcast_to(values, (n,))
