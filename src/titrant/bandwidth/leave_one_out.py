"""Leave-one-out cross-validation of the curve that the policy's value is a point of.

With weights 1/q the rows (U, e), U = T − τ(X), are a regression whose curve V(u) is the value of
the policy shifted by u (less the baseline); what we want is V(0). The criterion is how well the
estimator predicts rows near u = 0 from all others:

    CV(h) = Σᵢ (eᵢ − v₋ᵢ(uᵢ; h))²/qᵢ / Σᵢ 1/qᵢ   over rows with |uᵢ| ≤ window·sd(T),
    v₋ᵢ(u; h) = Σ_{j≠i} w_j e_j / Σ_{j≠i} w_j,    w_j the estimator's weight under the policy τ + u.

That is the right target for the curve and only a proxy for its value at 0; and what rows differ
in besides the dose is noise to it. For comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.bandwidth.base import Bandwidth, BandwidthSelector, as_bandwidth
from titrant.bandwidth.path import path_of
from titrant.bandwidth.sample import sample
from titrant.bandwidth.usable import edge_flag, fall_back, usable
from titrant.estimators import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.estimators import Problem, SmoothedEstimator
    from titrant.kernels import Scale

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

    def select(self, problem: Problem) -> Bandwidth:
        """Return the bandwidth of least prediction error."""
        path, rows = path_of(problem), problem.rows()
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
        w = estimator.weight(shifted, scale).reshape(len(points), len(e))
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
