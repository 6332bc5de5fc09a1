"""Propensities of rows that did not take part in their fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from titrant._check import count
from titrant.propensity.truncate import truncated_cdf, truncated_density

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.propensity.base import PropensityModel


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Out-of-fold values of n rows: `density` f̂(t|x) (n,), `cdf` F̂(t|x) (n,) or None."""

    density: Array
    cdf: Array | None


def held_out(
    model: PropensityModel,
    X: ArrayLike,
    t: ArrayLike,
    *,
    folds: int = 5,
    seed: int = 0,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
) -> HeldOut:
    """Return density and cdf of each row by a clone of `model` fitted on the other folds.

    X is (n, p); t is (n,), or (n, d) and then there is no cdf; the laws are truncated to the
    bounds, one number a row or one for all. `model` itself is left as it was.
    """
    X, t = np.asarray(X), np.asarray(t, dtype=np.float64)
    n = len(t)
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    density, cdf = np.empty(n), np.empty(n)
    scalar = t.ndim == 1
    for train, test in splits(n, folds, seed):
        fitted = clone(model).fit(X[train], t[train])
        rows = X[test], t[test], _at(low, test), _at(high, test)
        density[test] = truncated_density(fitted, *rows)
        if scalar:
            cdf[test] = truncated_cdf(fitted, *rows)
    return HeldOut(density, cdf if scalar else None)


def _at(bound: Array, rows: NDArray[np.intp]) -> Array:
    # One bound for all rows has nothing to select from.
    return bound if bound.ndim == 0 else np.asarray(bound[rows])


def splits(n: int, folds: int, seed: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return training and held-out rows of each of `folds` shuffled folds of n rows."""
    number = count(folds, "folds", "held_out", at_least=2)
    count(n, "number of rows", "held_out", at_least=number)
    splitter = KFold(number, shuffle=True, random_state=seed)
    parts: Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]] = splitter.split(np.empty(n))
    return parts
