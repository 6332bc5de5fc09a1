"""The laws of the dose in some rows, whose contexts are given: any dose is asked of them.

What the contexts alone decide is computed once: the features, and the mixture of normals that a
row's law is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from titrant._own import written_anew
from titrant.errors import DataError, InvalidArgument
from titrant.propensity.base import NormalModel, PreciseTails, as_doses, log_sum_exp, treatments

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.propensity.base import FittedPropensity

    Rows = NDArray[np.intp]


class Laws(Protocol):
    """The laws of the dose in n rows; doses are one a row, (n,), or (n, d) of several."""

    def density(self, t: Array) -> Array:
        """Return f(t|x), (n,)."""

    def cdf(self, t: Array) -> Array:
        """Return F(t|x), (n,)."""

    def log_density(self, t: Array) -> Array:
        """Return log f(t|x), (n,)."""

    def log_probability(self, lower: Array, upper: Array) -> Array:
        """Return log P(lower < T ≤ upper | x), (n,)."""


ANSWERS = ("density", "cdf", "log_density", "log_probability")


def laws_of(model: FittedPropensity, X: ArrayLike) -> Laws:
    """Return the laws at contexts X (n, p) of any model: kept if it knows them, else asked anew.

    A model that writes one of its answers anew is asked by it in every way.
    """
    keeps = isinstance(model, PreciseTails) and not written_anew(model, ANSWERS, since="laws")
    known = model.laws(X) if isinstance(model, PreciseTails) and keeps else None
    return AskedModel(model, np.asarray(X)) if known is None else known


@dataclass(frozen=True, slots=True)
class AskedModel:
    """The laws of any model at contexts X (n, p), by the model itself."""

    model: FittedPropensity
    X: Array

    def density(self, t: Array) -> Array:
        """Return f(t|x), (n,)."""
        return self.model.density(self.X, t)

    def cdf(self, t: Array) -> Array:
        """Return F(t|x), (n,)."""
        return self.model.cdf(self.X, t)

    def log_density(self, t: Array) -> Array:
        """Return log f(t|x), (n,): the model's own if it knows it, else that of its density."""
        model = self.model
        if isinstance(model, PreciseTails) and _density_agrees(model):
            return model.log_density(self.X, t)
        with np.errstate(divide="ignore"):
            return np.log(model.density(self.X, t))

    def log_probability(self, lower: Array, upper: Array) -> Array:
        """Return log P(lower < T ≤ upper | x), (n,): the model's own, else that of its cdf."""
        model = self.model
        if isinstance(model, PreciseTails) and _cdf_agrees(model):
            return model.log_probability(self.X, lower, upper)
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(model.cdf(self.X, upper) - model.cdf(self.X, lower), 0.0))


def _density_agrees(model: PreciseTails) -> bool:
    """Whether log f is that of f: not if a subclass of ours wrote `density` anew."""
    return not isinstance(model, NormalModel) or type(model).density is NormalModel.density


def _cdf_agrees(model: PreciseTails) -> bool:
    """Whether log P is that of F: not if a subclass of ours wrote `cdf` anew, and that alone."""
    if not isinstance(model, NormalModel):
        return True
    own = type(model)
    return own.cdf is NormalModel.cdf or own.log_probability is not NormalModel.log_probability


@dataclass(frozen=True, slots=True)
class AveragedLaws:
    """f(t|x) = Σ_m w_m f_m(t|x) in the same rows; `weights` (M,) are > 0 and sum to 1."""

    members: tuple[Laws, ...]
    weights: Array

    def density(self, t: Array) -> Array:
        """Return f(t|x), (n,)."""
        return np.exp(self.log_density(t))

    def cdf(self, t: Array) -> Array:
        """Return F(t|x), (n,)."""
        each = np.stack([member.cdf(t) for member in self.members])
        return np.minimum(self.weights @ each, 1.0)

    def log_density(self, t: Array) -> Array:
        """Return log f(t|x), (n,)."""
        return self._in_logs([member.log_density(t) for member in self.members])

    def log_probability(self, lower: Array, upper: Array) -> Array:
        """Return log P(lower < T ≤ upper | x), (n,)."""
        return self._in_logs([member.log_probability(lower, upper) for member in self.members])

    def _in_logs(self, logs: list[Array]) -> Array:
        return log_sum_exp(np.stack(logs).T + np.log(self.weights))


@dataclass(frozen=True, slots=True)
class FoldLaws:
    """The laws in n rows that each belong to one of several parts, numbered and with their laws."""

    n: int
    parts: tuple[tuple[Rows, Laws], ...]

    def density(self, t: Array) -> Array:
        """Return f(t|x), (n,)."""
        return np.exp(self.log_density(t))

    def cdf(self, t: Array) -> Array:
        """Return F(t|x), (n,)."""
        return self._each(lambda laws, at: laws.cdf(at), treatments(t, self.n))

    def log_density(self, t: Array) -> Array:
        """Return log f(t|x), (n,)."""
        return self._each(lambda laws, at: laws.log_density(at), treatments(t, self.n))

    def log_probability(self, lower: Array, upper: Array) -> Array:
        """Return log P(lower < T ≤ upper | x), (n,)."""
        ends = as_doses(lower, self.n), as_doses(upper, self.n)
        return self._each(lambda laws, low, high: laws.log_probability(low, high), *ends)

    def _each(self, ask: Callable[..., Array], *columns: Array) -> Array:
        values = np.empty(self.n)
        for rows, laws in self.parts:
            values[rows] = ask(laws, *(column[rows] for column in columns))
        return values


# Laws truncated to bounds.
#
# Truncating renormalizes a law that was fitted as if it had no bounds. When the logged treatments
# were themselves cut off, least squares sees the cut mean and spread, so the fitted law is biased
# where much mass lies beyond a bound; `calibration` with the same bounds shows by how much.


def truncated_density(
    model: FittedPropensity, X: ArrayLike, t: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> Array:
    """Return f(t|x) / (F(upper|x) − F(lower|x)) in the bounds and 0 outside, (n,).

    X is (n, p); t, `lower` and `upper` are one number a row or one for all; ±inf is no bound.
    For models that know logarithms (`PreciseTails`) the quotient is taken of these, so it holds
    its digits where the bounds lie far in a tail.
    """
    return Truncated.of(model, X, lower, upper).density(t)


def truncated_cdf(
    model: FittedPropensity, X: ArrayLike, t: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> Array:
    """Return (F(t|x) − F(lower|x)) / (F(upper|x) − F(lower|x)), clipped to [0, 1], (n,)."""
    return Truncated.of(model, X, lower, upper).cdf(t)


@dataclass(frozen=True, slots=True)
class Truncated:
    """The laws of the dose in n rows, truncated to bounds, one a row or one for all."""

    n: int
    laws: Laws
    lower: ArrayLike
    upper: ArrayLike

    @classmethod
    def of(
        cls, model: FittedPropensity, X: ArrayLike, lower: ArrayLike, upper: ArrayLike
    ) -> Truncated:
        """Return the laws of a model at contexts X (n, p)."""
        return cls(len(np.asarray(X)), laws_of(model, X), lower, upper)

    def density(self, t: ArrayLike) -> Array:
        """Return f(t|x) / (F(upper|x) − F(lower|x)) in the bounds and 0 outside, (n,)."""
        if self._unbounded:
            return self.laws.density(treatments(t, self.n))
        t, lower, upper = self._rows(t)
        log_mass = self._log_mass(lower, upper)
        inside = (t >= lower) & (t <= upper)
        return np.where(inside, np.exp(self.laws.log_density(t) - log_mass), 0.0)

    def cdf(self, t: ArrayLike) -> Array:
        """Return (F(t|x) − F(lower|x)) / (F(upper|x) − F(lower|x)), clipped to [0, 1], (n,)."""
        if self._unbounded:
            return self.laws.cdf(treatments(t, self.n))
        t, lower, upper = self._rows(t)
        log_mass = self._log_mass(lower, upper)
        below = self.laws.log_probability(lower, np.clip(t, lower, upper))
        return np.minimum(np.exp(below - log_mass), 1.0)

    def between(self, low: Array, high: Array) -> Array:
        """Return P(low < T ≤ high | x) (n,) between edges (n,)."""
        return np.maximum(self.cdf(high) - self.cdf(low), 0.0)

    @property
    def _unbounded(self) -> bool:
        low, high = (
            np.asarray(self.lower, dtype=np.float64),
            np.asarray(self.upper, dtype=np.float64),
        )
        return bool(np.all(np.isneginf(low)) and np.all(np.isposinf(high)))

    def _rows(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        if np.ndim(t) > 1 and np.shape(t)[1] > 1:
            raise InvalidArgument(
                "Truncation of vector propensities is not supported yet. Log the propensity as a "
                "column, or evaluate without bounds."
            )
        n = self.n
        t, lower, upper = as_doses(t, n), as_doses(self.lower, n), as_doses(self.upper, n)
        if empty := int(np.sum(lower >= upper)):
            raise DataError(
                f"The lower bound must be below the upper one; it is not in {empty:,} of {n:,} "
                "rows."
            )
        return t, lower, upper

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        mass = self.laws.log_probability(lower, upper)
        if empty := int(np.sum(np.isneginf(mass))):
            raise DataError(
                f"The propensity puts no probability inside the bounds in {empty:,} of "
                f"{len(mass):,} rows. Check that bounds and treatments share a unit."
            )
        return mass
