"""The propensity that the logging system's designer knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from titrant._check import invalid
from titrant.errors import DataError, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from titrant._types import Array

    RowFunction = Callable[[Array, Array], ArrayLike]
    Sampler = Callable[[Array, np.random.Generator], ArrayLike]


class Known:
    """A propensity given as functions of contexts X (n, p) and treatments t, one value a row.

    `density(X, t)` is f(t|x); `cdf(X, t)`, needed by binned estimators and for truncation, and
    `sample(X, rng)`, needed to draw treatments, may be left out. Nothing is learned: `fit`
    returns the object itself. A column of propensities goes into `LoggedData` instead.
    """

    __slots__ = ("_cdf", "_density", "_sample")

    def __init__(
        self,
        density: RowFunction,
        cdf: RowFunction | None = None,
        sample: Sampler | None = None,
    ) -> None:
        if not callable(density):
            raise invalid("density", "Known", "a function of (X, t)", density)
        self._density, self._cdf, self._sample = density, cdf, sample

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: ARG002 (the interface)
        """Return the object itself: what is known needs no data."""
        return self

    def density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return f(t|x), (n,), checked to be finite and ≥ 0."""
        values = _column(self._density, "density", X, t)
        bad = int(np.sum(~(np.isfinite(values) & (values >= 0.0))))
        if bad:
            raise DataError(
                f"The known density is negative or not finite in {bad:,} of {len(values):,} "
                "rows. Check the function at these rows."
            )
        return values

    @property
    def has_cdf(self) -> bool:
        """Whether F(t|x) was given."""
        return self._cdf is not None

    def cdf(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return F(t|x), (n,), checked to lie in [0, 1]."""
        if self._cdf is None:
            raise _missing("cdf")
        values = _column(self._cdf, "cdf", X, t)
        bad = int(np.sum(~((values >= 0.0) & (values <= 1.0))))
        if bad:
            raise DataError(
                f"The known cdf lies outside [0, 1] in {bad:,} of {len(values):,} rows. "
                "Check the function at these rows."
            )
        return values

    def sample(self, X: ArrayLike, seed: int | np.random.Generator) -> Array:
        """Return one treatment drawn from f(·|x) for each row, by the function given."""
        if self._sample is None:
            raise _missing("sample")
        rows = np.asarray(X, dtype=np.float64)
        return np.asarray(self._sample(rows, np.random.default_rng(seed)), dtype=np.float64)

    def log_density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return log f(t|x), (n,); −inf where the density is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.density(X, t))

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the mean log density of the treatments y."""
        return float(np.mean(self.log_density(X, y)))

    def __sklearn_clone__(self) -> Self:
        """Return the object itself: it has no fitted state."""
        return self

    def __repr__(self) -> str:
        """Name the function, without its address: results are the same in every run."""
        name = getattr(self._density, "__qualname__", type(self._density).__name__)
        return f"Known({name})"


def _column(function: RowFunction, name: str, X: ArrayLike, t: ArrayLike) -> Array:
    rows = np.asarray(X, dtype=np.float64)
    values = np.asarray(function(rows, np.asarray(t, dtype=np.float64)), dtype=np.float64)
    if values.shape != (len(rows),):
        raise DataError(
            f"The known {name} must give one value a row; got shape {values.shape} for "
            f"{len(rows):,} rows. Write it for arrays X (n, p) and t (n,)."
        )
    return values


def _missing(name: str) -> InvalidArgument:
    return InvalidArgument(
        f"This `Known` propensity was made without `{name}`. Pass `{name}=` to `Known`."
    )
