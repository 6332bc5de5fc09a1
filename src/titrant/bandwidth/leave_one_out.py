"""Selectors that look at some rows: leave-one-out, and any other on a subsample."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from titrant import _check
from titrant.bandwidth.averaged_bias_path import AveragedBiasPath
from titrant.bandwidth.base import Bandwidth, BandwidthSelector, as_bandwidth
from titrant.bandwidth.path import edge_flag, fall_back, path_search, usable
from titrant.estimators import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.estimators import Problem, SmoothedEstimator
    from titrant.estimators.joint import Search
    from titrant.kernels import Scale

# A seeded choice of rows, in their order.


def sample(size: int, at_most: int, seed: int) -> NDArray[np.intp]:
    """Return ``at_most`` of 0 … size − 1, drawn without replacement by ``seed``, increasing."""
    if size <= at_most:
        return np.arange(size)
    return np.sort(np.random.default_rng(seed).choice(size, at_most, replace=False))


# Leave-one-out cross-validation of the curve that the policy's value is a point of.
#
# With weights 1/q the rows (U, e), U = T − τ(X), are a regression whose curve V(u) is the value of
# the policy shifted by u (less the baseline); what we want is V(0). The criterion is how well the
# estimator predicts rows near u = 0 from all others:
#
# CV(h) = Σᵢ (eᵢ − v₋ᵢ(uᵢ; h))²/qᵢ / Σᵢ 1/qᵢ over rows with |uᵢ| ≤ window·sd(T), v₋ᵢ(u; h) = Σ_{j≠i}
# w_j e_j / Σ_{j≠i} w_j, w_j the estimator's weight under the policy τ + u.
#
# That is the right target for the curve and only a proxy for its value at 0; and what rows differ
# in besides the dose is noise to it. For comparison.

_FEWEST_POINTS = 10
"""Rows that must lie near the policy's dose to be predicted."""
_CELLS = 50_000
"""Rows × points looked at in one go: small enough to stay in cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveOneOut(BandwidthSelector):
    """The bandwidth that predicts rows near the policy's dose best from the other rows.

    At most ``points`` rows, drawn by ``seed``, are predicted, each from all rows; time grows with
    points × rows. A self-normalized fit predicts, whatever the estimator.
    """

    window: float = 1.0
    """Rows within this many sd(T) of the policy's dose are predicted."""
    points: int = 300
    seed: int = 0

    def __post_init__(self) -> None:
        _check.positive(self.window, "window", "LeaveOneOut")
        _check.count(self.points, "points", "LeaveOneOut")
        _check.count(self.seed, "seed", "LeaveOneOut", at_least=0)

    def search(self, problem: Problem) -> Search[Bandwidth]:
        """Return the bandwidth of least prediction error."""
        path = yield from path_search(problem)
        rows = problem.rows()
        points, some = self._points(rows, problem), usable(path)
        if not len(some) or len(points) < _FEWEST_POINTS:
            why = "too few rows near the policy's doses"
            return fall_back(path, problem, "LeaveOneOut", why)
        factors = path.factors[some]
        scales = [problem.scale(g) for g in factors]
        errors = prediction_errors(problem.estimator, rows, points, scales)
        if not np.isfinite(errors).any():
            why = "rows that no usable bandwidth predicts"
            return fall_back(path, problem, "LeaveOneOut", why)
        best = int(np.argmin(errors))
        return Bandwidth(
            h=as_bandwidth(float(factors[best]), problem),
            selector="LeaveOneOut",
            reason=(
                f"Of {len(factors)} usable bandwidths {factors[best]:.3g} sd(T) predicts "
                f"{len(points):,} rows near the policy's doses best from the others: "
                f"root mean square error {np.sqrt(errors[best]):.3g}."
            ),
            se=float(path.se[some[best]]),
            flag=edge_flag(best, len(factors)),
        )

    def _points(self, rows: Rows, problem: Problem) -> NDArray[np.intp]:
        """Return a sample of the rows in the window."""
        distance = np.abs(rows.t - rows.tau) / problem.spread
        near = np.flatnonzero((distance <= self.window).all(axis=1))
        return near[sample(len(near), self.points, self.seed)]


def prediction_errors(
    estimator: SmoothedEstimator, rows: Rows, points: NDArray[np.intp], scales: Sequence[Scale]
) -> Array:
    """Return CV at each scale (K,); infinite where a row has no other row in reach."""
    importance = 1.0 / rows.need("q", "LeaveOneOut")[points]
    size = max(1, _CELLS // len(rows.y))
    blocks = [points[start : start + size] for start in range(0, len(points), size)]
    misses = np.concatenate([_misses(estimator, rows, block, scales) for block in blocks], axis=1)
    return np.asarray(misses**2 @ importance / importance.sum())


def _misses(
    estimator: SmoothedEstimator, rows: Rows, points: NDArray[np.intp], scales: Sequence[Scale]
) -> Array:
    """Return eᵢ − v₋ᵢ(uᵢ; h) (K, m) of m points at K scales."""
    _, e = estimator.baseline(rows)
    shifted = _shifted(rows, points)
    misses = np.empty((len(scales), len(points)))
    for k, scale in enumerate(scales):
        w = estimator.weight(shifted, scale).reshape(len(points), len(e)).copy()
        w[np.arange(len(points)), points] = 0.0
        total = w.sum(axis=1)
        # Boundary kernels have some negative weights; without a positive sum there is no fit.
        fit = np.divide(w @ e, total, out=np.full_like(total, np.inf), where=total > 0.0)
        misses[k] = e[points] - fit
    return misses


def _shifted(rows: Rows, points: NDArray[np.intp]) -> Rows:
    """Return all n rows under the policies τ + uᵢ of m points, one after the other (m·n rows)."""
    every = np.tile(np.arange(len(rows.y)), len(points))
    u = np.repeat(rows.t[points] - rows.tau[points], len(rows.y), axis=0)
    doses = Rows(
        tau=rows.tau,
        t=rows.t,
        y=rows.y,
        x=rows.x,
        center=rows.center,
        q=rows.q,
        lower=rows.lower,
        upper=rows.upper,
        floor=rows.floor,
    ).take(every)
    return replace(doses, tau=doses.tau + u)


# Choose on some rows, rescale for all of them, as the paper does.
#
# A best bandwidth shrinks like n^(−1/(d+4)), so the choice h₀ of n₀ rows becomes
# h = h₀·(n₀/n)^{1/(d+4)}; its bias and its standard error both shrink by (n₀/n)^{2/(d+4)}.

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Subsampled(BandwidthSelector):
    """The choice of ``selector`` on ``rows`` rows drawn by ``seed``, rescaled to all n rows."""

    selector: BandwidthSelector = field(default_factory=AveragedBiasPath)
    rows: int = 5_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.selector, BandwidthSelector):
            raise _check.invalid(
                "selector", "Subsampled", "a selector such as PlugIn()", self.selector
            )
        _check.count(self.rows, "rows", "Subsampled")
        _check.count(self.seed, "seed", "Subsampled", at_least=0)

    def search(self, problem: Problem) -> Search[Bandwidth]:
        """Return the subsample's choice, rescaled; the plain choice when there are few rows."""
        if problem.n <= self.rows:
            return (yield from self.selector.search(problem))
        part = subproblem(problem, self.rows, self.seed)
        chosen, n0 = self.selector.select(part), part.n
        ratio = (n0 / problem.n) ** (1.0 / (len(problem.spread) + 4))
        return replace(
            chosen,
            h=chosen.h * ratio,
            selector=f"Subsampled({chosen.selector})",
            reason=f"{chosen.reason} That is for {n0:,} of {problem.n:,} rows; × {ratio:.3g}.",
            bias=None if chosen.bias is None else chosen.bias * ratio**2,
            se=None if chosen.se is None else chosen.se * ratio**2,
        )


def subproblem(problem: Problem, size: int, seed: int) -> Problem:
    """Return the problem on ``size`` of its rows, with the spread of all of them."""
    everything = problem.rows()
    some = everything.take(sample(len(everything.y), size, seed))

    def over_rows(statistic: Callable[[Rows], S]) -> S:
        return statistic(some)

    return replace(problem, n=len(some.y), over_rows=over_rows, rows=lambda: some)
