"""Does a propensity describe the log? Three held-out numbers, none a judge on its own.

The log score ranks, the probability integral transform (PIT) shows shape and spread, the mean
stabilized weight shows what an estimate will feel.
"""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import DataError
from titrant.propensity.held_out import held_out
from titrant.propensity.location_scale import LocationScale
from titrant.propensity.multivariate import MultivariateGaussian

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.propensity.base import PropensityModel

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
    t = np.asarray(t, dtype=np.float64)
    found = held_out(model, X, t, folds=folds, seed=seed, lower=lower, upper=upper)
    marginal = _marginal(t, folds, seed, lower, upper)
    return _calibration(found.density, marginal, found.cdf)


def calibration_of_column(
    q: ArrayLike,
    t: ArrayLike,
    *,
    folds: int = 5,
    seed: int = 0,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
) -> Calibration:
    """Return the calibration of logged propensities q (n,) at treatments t (n,) or (n, d).

    A column has no cdf, so there is no PIT; only the marginal density of t is estimated.
    """
    q, t = np.asarray(q, dtype=np.float64), np.asarray(t, dtype=np.float64)
    if q.shape != t.shape[:1]:
        raise DataError(
            f"Propensities and treatments must have equally many rows; got shapes {q.shape} "
            f"and {t.shape}. Pass one propensity a row."
        )
    return _calibration(q, _marginal(t, folds, seed, lower, upper), None)


def calibration_of_held_out(
    density: Array,
    cdf: Array | None,
    t: Array,
    *,
    folds: int = 5,
    seed: int = 0,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
) -> Calibration:
    """Return the calibration of densities and cdf (n,) by models that have not seen their rows."""
    return _calibration(density, _marginal(t, folds, seed, lower, upper), cdf)


def _marginal(t: Array, folds: int, seed: int, lower: ArrayLike, upper: ArrayLike) -> Array:
    # Held out as well: a kernel estimate is too high at the values it was made from.
    model = LocationScale() if t.ndim == 1 else MultivariateGaussian()
    nothing = np.zeros((len(t), 1))
    found = held_out(model, nothing, t, folds=folds, seed=seed, lower=lower, upper=upper)
    return found.density


def _calibration(q: Array, marginal: Array, pit: Array | None) -> Calibration:
    n = len(q)
    with np.errstate(divide="ignore"):
        log_score = float(np.mean(np.log(q)))
        weight = marginal / q
    center = float(np.mean(weight))
    se = float(np.std(weight, ddof=1)) / math.sqrt(n) if math.isfinite(center) else math.inf
    ks = (None, None, None) if pit is None else _uniformity(pit)
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
