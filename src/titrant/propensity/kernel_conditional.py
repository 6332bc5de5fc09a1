"""The kernel conditional density of the dose, and the density of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.spatial.distance import cdist

from titrant._check import finite_array, invalid, positive
from titrant.outcome.base import mean_of, worth
from titrant.propensity.base import NormalMixture, NormalModel, as_doses, blocks, log_sum_exp
from titrant.propensity.gaussian import residual_sd
from titrant.scaling import Held, spread_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant._types import Array

# The Gaussian kernel density of a column, binned when it is long.


# Up to this many values the estimate is exact; beyond, values share bins of a fifth of the
# bandwidth, which widens the kernel by 0.3 % (linear binning adds width²/6 to its variance).
_EXACT = 1_000
_BINS_PER_BANDWIDTH = 5


@dataclass(frozen=True, slots=True)
class KernelDensity:
    """f(z) = Σ_g w_g φ((z − c_g)/b)/b: `centers` (G,), `weights` (G,) summing to 1, `bandwidth`."""

    centers: Array
    weights: Array
    bandwidth: float

    @classmethod
    def of(cls, values: Array, weights: Array | None = None) -> Self:
        """Return the estimate from `values` (n,), by weights, with Silverman's bandwidth."""
        bandwidth, n = silverman(values, weights), len(values)
        if n <= _EXACT:
            shares = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
            return cls(values[shares > 0.0], shares[shares > 0.0], bandwidth)
        return cls(*binned(values, bandwidth / _BINS_PER_BANDWIDTH, weights), bandwidth)


def silverman(values: Array, weights: Array | None = None) -> float:
    """Return 0.9·min(sd, IQR/1.349)·n^(−1/5); the sd alone where the IQR is 0.

    The quartiles are those of the values as they are, weighted or not.
    """
    sd = float(np.std(values, ddof=1))
    low, high = np.percentile(values, [25.0, 75.0])
    spread = min(sd, float(high - low) / 1.349) or sd
    return float(0.9 * spread * worth(weights, len(values)) ** -0.2)


def binned(values: Array, width: float, weights: Array | None = None) -> tuple[Array, Array]:
    """Return the occupied grid points and their weights by linear binning, both (G,).

    A value between two grid points is shared in proportion to nearness, which keeps its mean.
    """
    place = values / width
    left = np.floor(place)
    share = place - left
    points, index = np.unique(np.concatenate([left, left + 1.0]), return_inverse=True)
    shares = np.concatenate([1.0 - share, share])
    if weights is not None:
        shares = shares * np.tile(weights, 2)
    mass = np.bincount(index, weights=shares)
    occupied = mass > 0.0
    return points[occupied] * width, mass[occupied] / worth(weights, len(values))


# The kernel conditional density propensity.


class KernelConditional(NormalModel):
    """f(t|x) = Σ_j κ(x − x_j) φ((t − t_j)/h)/h / Σ_j κ(x − x_j), κ a product of Gaussians.

    Bandwidths are the normal reference 1.06·sd·n^(−1/(4 + number of columns)), treatment and
    the columns that vary counted; constant columns do not matter. Give `context_bandwidths`
    (p,) and `treatment_bandwidth` to set them. Each evaluation visits all training rows, in
    blocks: memory stays flat, time grows with n². Suited to few columns and moderate n.

    **Leave-one-out at training rows**: where (x, t) equals a training row, that row (one of
    them) does not vote in `density`, which would otherwise be inflated by φ(0)/h, the more
    the more columns; so `score` on the training rows is the leave-one-out score. `cdf` and
    `sample` use all rows.

    Fitted: `context_bandwidths_` (p,), `treatment_bandwidth_`, `context_`, `treatment_`.
    """

    def __init__(
        self,
        context_bandwidths: ArrayLike | None = None,
        treatment_bandwidth: float | None = None,
    ) -> None:
        self.context_bandwidths = context_bandwidths
        self.treatment_bandwidth = treatment_bandwidth

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Keep contexts X (n, p) and treatments y (n,), and choose the bandwidths."""
        X, t = self._training_rows(X, y)
        w = self._weights(sample_weight, len(t))
        if w is not None:  # a row without weight has no vote
            X, t, w = X[w > 0.0], t[w > 0.0], w[w > 0.0]
        self.log_votes_ = None if w is None else np.log(w)
        sd = residual_sd(t - mean_of(t, w), t, 1, w)
        self.hold_ = Held.of(X)
        X = self.hold_.columns(X)
        spread = spread_of(X)
        n = worth(w, len(t))
        factor = 1.06 * float(n) ** (-1.0 / (5 + np.count_nonzero(spread)))
        self.context_bandwidths_ = self._context_bandwidths(factor * spread)
        # `sd` divides by n − 1; the rule, as for the context, by n.
        rule = factor * sd * np.sqrt((n - 1) / n)
        self.treatment_bandwidth_ = self._treatment_bandwidth(rule)
        self.context_, self.treatment_ = X / self.context_bandwidths_, t
        self.components_ = len(t)
        return self

    def log_density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return log f(t|x), (n,), a training row not voting for itself."""
        X = self._context(X)
        t = as_doses(t, len(X))
        parts = blocks(len(X), self.components_)
        return np.concatenate([self._log_density(X[rows], t[rows]) for rows in parts])

    def _log_density(self, X: Array, t: Array) -> Array:
        votes = self._votes(X)
        own = (votes == 0.0) & (t[:, None] == self.treatment_)
        row = np.flatnonzero(own.any(axis=1))
        votes[row, own[row].argmax(axis=1)] = -np.inf
        return self._mixture(votes).log_density(t)

    def _law(self, X: Array) -> NormalMixture:
        return self._mixture(self._votes(X))

    def _votes(self, X: Array) -> Array:
        # log κ up to a constant: minus half the squared distance in bandwidths, (m, n).
        held = self.hold_.columns(X)
        distance = cdist(held / self.context_bandwidths_, self.context_, "sqeuclidean")
        return np.asarray(-0.5 * distance, dtype=np.float64)

    def _mixture(self, votes: Array) -> NormalMixture:
        votes = votes if self.log_votes_ is None else votes + self.log_votes_
        log_weights = votes - log_sum_exp(votes)[:, None]
        sds = np.full((1, 1), self.treatment_bandwidth_)
        return NormalMixture(log_weights, self.treatment_[None, :], sds)

    def _context_bandwidths(self, rule: Array) -> Array:
        if self.context_bandwidths is None:
            # An infinite bandwidth is a column that does not matter.
            return np.where(rule > 0.0, rule, np.inf)
        name, owner = "context_bandwidths", "KernelConditional"
        given = finite_array(self.context_bandwidths, name, owner, ndim=1)
        if given.shape != rule.shape or np.any(given <= 0.0):
            raise invalid(name, owner, f"{len(rule)} numbers > 0", self.context_bandwidths)
        return given

    def _treatment_bandwidth(self, rule: float) -> float:
        if self.treatment_bandwidth is None:
            return float(rule)
        return positive(self.treatment_bandwidth, "treatment_bandwidth", "KernelConditional")
