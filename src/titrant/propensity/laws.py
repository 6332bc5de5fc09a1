"""The laws of the dose in some rows, whose contexts are given: any dose is asked of them.

What the contexts alone decide is computed once: the features, and the mixture of normals that a
row's law is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from titrant.outcome.base import written_anew
from titrant.propensity.base import NormalModel, PreciseTails, doses, log_sum_exp, treatments

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
    return Asked(model, np.asarray(X)) if known is None else known


@dataclass(frozen=True, slots=True)
class Asked:
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
        ends = doses(lower, self.n), doses(upper, self.n)
        return self._each(lambda laws, low, high: laws.log_probability(low, high), *ends)

    def _each(self, ask: Callable[..., Array], *columns: Array) -> Array:
        values = np.empty(self.n)
        for rows, laws in self.parts:
            values[rows] = ask(laws, *(column[rows] for column in columns))
        return values
