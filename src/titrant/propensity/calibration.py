"""Whether fitted propensities describe rows that took no part in their fit."""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from titrant._check import count
from titrant.propensity.gaussian import MultivariateGaussian
from titrant.propensity.laws import truncated_cdf, truncated_density
from titrant.propensity.smooth import LocationScale

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.data.masses import PointMasses
    from titrant.propensity.base import PropensityModel

# Propensities of rows that did not take part in their fit.


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


def _at(bound: Array, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Array:
    # One bound for all rows has nothing to select from.
    return bound if bound.ndim == 0 else np.asarray(bound[rows])


def splits(n: int, folds: int, seed: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return training and held-out rows of each of `folds` shuffled folds of n rows."""
    number = count(folds, "folds", "held_out", at_least=2)
    count(n, "number of rows", "held_out", at_least=number)
    splitter = KFold(number, shuffle=True, random_state=seed)
    parts: Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]] = splitter.split(np.empty(n))
    return parts


# Does a propensity describe the log? Three held-out numbers, none a judge on its own.
#
# The log score ranks, the probability integral transform (PIT) shows shape and spread, the mean
# stabilized weight shows what an estimate will feel.

_BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Calibration:
    """How well a propensity describes `rows` treatments it was not fitted on.

    `log_score`, the mean log density (−inf if a density is 0), to compare models with;
    `ks_distance` between the PIT values F̂(t|x) and the uniform law, `ks_p_value`, and
    `pit_histogram`, the share of PIT values in each tenth: heavy ends mean a spread too small,
    a heavy middle one too large (None where there is no cdf); `mean_weight`, the mean of
    g(t)/f̂(t|x) with g the held-out marginal density of the treatment, 1 if f̂ is right, and
    `mean_weight_se`, its standard error.
    """

    rows: int
    log_score: float
    mean_weight: float
    mean_weight_se: float
    ks_distance: float | None = None
    ks_p_value: float | None = None
    pit_histogram: tuple[float, ...] | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the numbers under their names, as JSON gives them back."""
        histogram = None if self.pit_histogram is None else list(self.pit_histogram)
        return {**asdict(self), "pit_histogram": histogram}

    def __repr__(self) -> str:
        """Say it in one line."""
        weight = f"mean weight {self.mean_weight:.4g} ± {self.mean_weight_se:.2g}"
        pit = "" if self.ks_distance is None else f"  PIT distance {self.ks_distance:.3f}"
        p = "" if self.ks_p_value is None else f" (p {self.ks_p_value:.2g})"
        return f"Calibration  log score {self.log_score:.4f}  {weight}{pit}{p}  rows {self.rows:,}"

    def _repr_html_(self) -> str:
        return f"<code>{html.escape(repr(self))}</code>"


def calibration(
    model: PropensityModel,
    X: ArrayLike,
    t: ArrayLike,
    *,
    folds: int = 5,
    seed: int = 0,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
) -> Calibration:
    """Return the calibration of `model` by `folds`-fold cross-validation.

    X is (n, p), t is (n,) or (n, d); the laws are truncated to the bounds, if any.
    """
    found = held_out(model, X, t, folds=folds, seed=seed, lower=lower, upper=upper)
    return calibration_of(
        found.density, found.cdf, t, folds=folds, seed=seed, lower=lower, upper=upper
    )


def calibration_of(
    q: Array,
    cdf: Array | None,
    t: ArrayLike,
    *,
    folds: int = 5,
    seed: int = 0,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
    masses: PointMasses | None = None,
) -> Calibration:
    """Return the calibration of densities q and cdf (n,) of treatments t that are held out.

    A column of propensities has no cdf, so there is no PIT; only the marginal density of t is
    estimated. At point masses, if there are any, q is a probability over sd(t).
    """
    t, n = np.asarray(t, dtype=np.float64), len(q)
    other = np.ones(n, dtype=bool)
    density = np.empty(n)
    if masses is not None:
        at = masses.index(t)
        other = at < 0
        density[~other] = (np.bincount(at[~other], minlength=len(masses.values)) / n)[at[~other]]
        density[~other] /= t.std()
    if other.any() and (masses is None or not masses.levels):
        # Held out as well: a kernel estimate is too high at the values it was made from.
        alone = LocationScale() if t.ndim == 1 else MultivariateGaussian()
        low, high = (_at(np.asarray(end, dtype=np.float64), other) for end in (lower, upper))
        x = np.zeros((int(other.sum()), 1))
        marginal = held_out(alone, x, t[other], folds=folds, seed=seed, lower=low, upper=high)
        density[other] = other.mean() * marginal.density
    elif masses is not None:  # rows at no level are left aside
        density[other] = q[other]
    with np.errstate(divide="ignore", invalid="ignore"):  # one absurd dose has no density at all
        log_score = float(np.mean(np.log(q)))
        weight = density / q
    center = float(np.mean(weight))
    se = float(np.std(weight, ddof=1)) / math.sqrt(n) if math.isfinite(center) else math.inf
    ks = (None, None, None) if cdf is None else _uniformity(cdf)
    return Calibration(
        rows=n,
        log_score=log_score,
        mean_weight=center,
        mean_weight_se=se,
        ks_distance=ks[0],
        ks_p_value=ks[1],
        pit_histogram=ks[2],
    )


def _uniformity(pit: Array) -> tuple[float, float, tuple[float, ...]]:
    from scipy.stats import kstest  # noqa: PLC0415 (scipy.stats costs as much as all the rest)

    test = kstest(pit, "uniform")
    counts = np.histogram(pit, bins=_BINS, range=(0.0, 1.0))[0]
    return float(test.statistic), float(test.pvalue), tuple((counts / len(pit)).tolist())
