"""Propensities truncated to bounds.

Truncating renormalizes a law that was fitted as if it had no bounds. When the logged treatments
were themselves cut off, least squares sees the cut mean and spread, so the fitted law is biased
where much mass lies beyond a bound; `calibration` with the same bounds shows by how much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import DataError, InvalidArgument
from titrant.propensity.base import FittedPropensity, NormalModel, PreciseTails, doses

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant._types import Array


def truncated_density(
    model: FittedPropensity, X: ArrayLike, t: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> Array:
    """Return f(t|x) / (F(upper|x) − F(lower|x)) in the bounds and 0 outside, (n,).

    X is (n, p); t, `lower` and `upper` are one number a row or one for all; ±inf is no bound.
    For models that know logarithms (`PreciseTails`) the quotient is taken of these, so it holds
    its digits where the bounds lie far in a tail.
    """
    if _unbounded(lower, upper):
        return model.density(X, t)
    t, lower, upper = _rows(X, t, lower, upper)
    log_mass = _log_mass(model, X, lower, upper)
    inside = (t >= lower) & (t <= upper)
    return np.where(inside, np.exp(log_density_of(model, X, t) - log_mass), 0.0)


def truncated_cdf(
    model: FittedPropensity, X: ArrayLike, t: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> Array:
    """Return (F(t|x) − F(lower|x)) / (F(upper|x) − F(lower|x)), clipped to [0, 1], (n,)."""
    if _unbounded(lower, upper):
        return model.cdf(X, t)
    t, lower, upper = _rows(X, t, lower, upper)
    log_mass = _log_mass(model, X, lower, upper)
    below = log_interval_of(model, X, lower, np.clip(t, lower, upper))
    return np.minimum(np.exp(below - log_mass), 1.0)


def _unbounded(lower: ArrayLike, upper: ArrayLike) -> bool:
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    return bool(np.all(np.isneginf(low)) and np.all(np.isposinf(high)))


def _rows(
    X: ArrayLike, t: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> tuple[Array, Array, Array]:
    if np.ndim(t) > 1 and np.shape(t)[1] > 1:
        raise InvalidArgument(
            "Truncation of vector propensities is not supported yet. Log the propensity as a "
            "column, or evaluate without bounds."
        )
    n = len(np.asarray(X))
    t, lower, upper = doses(t, n), doses(lower, n), doses(upper, n)
    if empty := int(np.sum(lower >= upper)):
        raise DataError(
            f"The lower bound must be below the upper one; it is not in {empty:,} of {n:,} rows."
        )
    return t, lower, upper


def _log_mass(model: FittedPropensity, X: ArrayLike, lower: Array, upper: Array) -> Array:
    mass = log_interval_of(model, X, lower, upper)
    if empty := int(np.sum(np.isneginf(mass))):
        raise DataError(
            f"The propensity puts no probability inside the bounds in {empty:,} of "
            f"{len(mass):,} rows. Check that bounds and treatments share a unit."
        )
    return mass


def log_density_of(model: FittedPropensity, X: ArrayLike, t: Array) -> Array:
    """Return log f(t|x), (n,), of any model: its own if it knows it, else that of its density."""
    if isinstance(model, PreciseTails) and _density_agrees(model):
        return model.log_density(X, t)
    with np.errstate(divide="ignore"):
        return np.log(model.density(X, t))


def log_interval_of(model: FittedPropensity, X: ArrayLike, lower: Array, upper: Array) -> Array:
    """Return log P(lower < T ≤ upper | x), (n,), of any model: its own, else that of its cdf."""
    if isinstance(model, PreciseTails) and _cdf_agrees(model):
        return model.log_probability(X, lower, upper)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(model.cdf(X, upper) - model.cdf(X, lower), 0.0))


def _density_agrees(model: PreciseTails) -> bool:
    """Whether log f is that of f: not if a subclass of ours wrote `density` anew."""
    return not isinstance(model, NormalModel) or type(model).density is NormalModel.density


def _cdf_agrees(model: PreciseTails) -> bool:
    """Whether log P is that of F: not if a subclass of ours wrote `cdf` anew, and that alone."""
    if not isinstance(model, NormalModel):
        return True
    own = type(model)
    return own.cdf is NormalModel.cdf or own.log_probability is not NormalModel.log_probability
