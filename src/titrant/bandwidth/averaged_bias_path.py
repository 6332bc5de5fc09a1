"""The default selector: average over models of how the estimate bends with the bandwidth.

The estimates v(h) over a grid of bandwidths share their rows, so their differences show the
smoothing bias far more sharply than their standard errors suggest. Models of that bias,

    v(g) = a + b·gᵖ  for the k smallest bandwidths,  free above;  p in {1, 3/2, 2},  g = h/sd(T),

are fitted by generalized least squares and weighted by fit and range; the bandwidth minimizes
the averaged squared bias plus the variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.bandwidth.base import CLEAR_KINK, Bandwidth, BandwidthSelector, as_bandwidth
from titrant.bandwidth.path import (
    ESS_FLOOR,
    FEWEST,
    FEWEST_ROWS,
    WIDEST,
    BandwidthPath,
    edge_flag,
    fall_back,
    path_search,
    usable,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.estimators import Problem
    from titrant.estimators.joint import Search

POWERS = (1.0, 1.5, 2.0)
"""p: a kink at the policy's dose bends the path as g or g^1.5, a smooth outcome as g²."""
LEAST_OF_ENVELOPE = 0.5
"""The least share of its envelope that the variance of a model's residuals counts as; outcomes
themselves vary more in a wide window because doses differ there."""
_KINKED = " The bias grows like h, as it does at a kink of the outcome."


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragedBiasPath(BandwidthSelector):
    """The averaged bias path.

    What other values of the constants do is measured by `benchmarks.constants`: the penalty matters
    most (half of it makes the error a tenth larger), the others move it by a percent or two.
    """

    range_penalty: float = 3.0
    """Per grid point that a model leaves unexplained (12 an octave)."""
    ess_floor: float = ESS_FLOOR
    """Bandwidths with a smaller effective sample size are not considered."""
    fewest_rows: int = FEWEST_ROWS
    """Nor are those with fewer rows in reach."""
    widest: float = WIDEST
    """Nor those beyond this many sd(T)."""
    nugget: float = 0.02
    """Share added to the diagonal of the joint covariance, which is nearly singular."""

    def __post_init__(self) -> None:
        for name in ("range_penalty", "ess_floor", "widest", "nugget"):
            _check.positive(getattr(self, name), name, "AveragedBiasPath")
        _check.count(self.fewest_rows, "fewest_rows", "AveragedBiasPath")

    def search(self, problem: Problem) -> Search[Bandwidth]:
        """Return the bandwidth of least averaged squared bias plus variance."""
        return self.select_from((yield from path_search(problem)), problem)

    def select_from(self, path: BandwidthPath, problem: Problem) -> Bandwidth:
        """Return the same from a path already computed."""
        some = self.admissible(path)
        if len(some) < FEWEST:
            return self._fall_back(path, problem, "fewer than 5 usable bandwidths")
        g, values = path.factors[some], path.values[some]
        covariance = _inflated(path, some)
        if not (np.diagonal(covariance) > 0.0).all():
            return self._fall_back(path, problem, "an estimate without variance")
        least = LEAST_OF_ENVELOPE if problem.estimator.uses_outcome_model else 0.0
        s2 = _smoothed_variance(np.diagonal(covariance), path.baseline_variance, g, least)
        root = _cholesky(covariance, s2, self.nugget)
        if root is None:
            return self._fall_back(path, problem, "a singular covariance of the path")
        squared_bias, kink = averaged_squared_bias(values, g, root, self.range_penalty)
        best = int(np.argmin(squared_bias + s2))
        bias, se = float(np.sqrt(squared_bias[best])), float(np.sqrt(s2[best]))
        return Bandwidth(
            h=as_bandwidth(float(g[best]), problem),
            selector="AveragedBiasPath",
            reason=(
                f"Of {len(g)} usable bandwidths between {g[0]:.3g} and {g[-1]:.3g} sd(T), "
                f"{g[best]:.3g} sd(T) has the least estimated error: "
                f"bias {bias:.3g}, standard error {se:.3g}."
                + (_KINKED if kink >= CLEAR_KINK else "")
            ),
            bias=bias,
            se=se,
            kink=kink,
            flag=edge_flag(best, len(g)),
        )

    def _fall_back(self, path: BandwidthPath, problem: Problem, why: str) -> Bandwidth:
        return fall_back(path, problem, "AveragedBiasPath", why, ess_floor=self.ess_floor)

    def admissible(self, path: BandwidthPath) -> NDArray[np.intp]:
        """Return the indices of the bandwidths with enough data and not too wide."""
        return usable(
            path, ess_floor=self.ess_floor, fewest_rows=self.fewest_rows, widest=self.widest
        )


def averaged_squared_bias(
    values: Array, g: Array, root: Array, range_penalty: float
) -> tuple[Array, float]:
    """Return Σ weight(p, k)·(b̂² + var b̂)·g^{2p} at each grid point (K,), and evidence of a kink.

    A kink at the policy's dose makes the bias grow like g: its evidence is the weight of p = 1
    beyond the share that each power has when the path says nothing, scaled to [0, 1].
    ``root`` is the Cholesky factor of the values' covariance. The k smallest bandwidths are the
    first k whitened rows, so running sums give the fit of every range at once.
    """
    fits = [_range_fits(values, g**p, root) for p in POWERS]
    unexplained = len(g) - np.arange(FEWEST, len(g) + 1)
    score = np.array([chi2 + range_penalty * unexplained for chi2, _ in fits])
    weights = np.exp(-0.5 * (score - score.min()))
    weights /= weights.sum()
    slopes2 = [float(w @ b2) for w, (_, b2) in zip(weights, fits, strict=True)]
    squared_bias = sum(b2 * g ** (2 * p) for b2, p in zip(slopes2, POWERS, strict=True))
    share = 1.0 / len(POWERS)
    kink = max(float(weights[0].sum()) - share, 0.0) / (1.0 - share)
    return np.asarray(squared_bias, dtype=np.float64), kink


def _range_fits(values: Array, shape: Array, root: Array) -> tuple[Array, Array]:
    """Return χ² and b̂² + var b̂ of v = a + b·shape on the k smallest bandwidths, k = 5 … K."""
    from scipy.linalg import solve_triangular  # noqa: PLC0415

    # Shifting v moves only a: subtracting its mean first keeps the normal equations exact.
    columns = np.stack([np.ones_like(shape), shape, values - values.mean()], axis=1)
    one, x, v = solve_triangular(root, columns, lower=True).T

    def running(product: Array) -> Array:
        return np.cumsum(product)[FEWEST - 1 :]

    s11, s1x, sxx = running(one * one), running(one * x), running(x * x)
    s1v, sxv, svv = running(one * v), running(x * v), running(v * v)
    sxx_1, sxv_1, svv_1 = sxx - s1x**2 / s11, sxv - s1x * s1v / s11, svv - s1v**2 / s11
    slope = sxv_1 / sxx_1
    return svv_1 - slope * sxv_1, slope**2 + 1.0 / sxx_1


def _inflated(path: BandwidthPath, some: NDArray[np.intp]) -> Array:
    """Return the covariance of the usable values, each SE times √(e/(e−1)), e = max(ESS, 2)."""
    e = np.maximum(path.ess[some], 2.0)
    factor = np.sqrt(e / (e - 1.0))
    return np.asarray(path.covariance[np.ix_(some, some)] * np.outer(factor, factor))


def _smoothed_variance(variance: Array, baseline: float, g: Array, least: float) -> Array:
    """Return s_j²: the kernel's part of the variance averaged (geometrically) with its envelope.

    That part falls like 1/g; where few rows are in reach its estimate may be far too small, so
    p_j ← √(p_j · e_j), e_j = max_{k≥j}(p_k g_k)/g_j, but no less than ``least`` times e_j: a window
    that happens to hold none of a rare outcome has no variance at all.
    """
    rest = np.minimum(baseline, 0.95 * variance)
    p = variance - rest
    envelope = np.maximum.accumulate((p * g)[::-1])[::-1] / g
    return np.asarray(np.maximum(np.sqrt(p * envelope), least * envelope) + rest)


def _cholesky(covariance: Array, s2: Array, nugget: float) -> Array | None:
    """Return the Cholesky factor with the diagonal s2 and a nugget, raised tenfold if needed."""
    d = np.sqrt(s2 / np.diagonal(covariance))
    scaled = covariance * np.outer(d, d)
    for extra in (nugget, 10 * nugget, 100 * nugget):
        try:
            return np.linalg.cholesky(scaled + np.diag(extra * s2))
        except np.linalg.LinAlgError:
            continue
    return None
