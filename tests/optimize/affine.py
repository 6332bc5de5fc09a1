"""A policy of one dose and the rows of an estimator, laid out for the compiled search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.estimators import Estimator, Rows, SmoothedEstimator
from titrant.kernels import Epanechnikov
from titrant.optimize import AffineSearch, Second
from titrant.policies import RBF, Clipped, Linear, Policy

if TYPE_CHECKING:
    from titrant.outcome.table import DoseTable


def features(policy: Policy, x: np.ndarray) -> np.ndarray:
    """φ (n, P) with τ = φ'β before any clipping, β the policy's parameters."""
    one = np.ones((len(x), 1))
    if isinstance(policy, Clipped):
        return features(policy.policy, x)
    if isinstance(policy, Linear):
        return np.hstack([one, x])
    if isinstance(policy, RBF):
        # One dose for each center, with a coefficient of 1, is the similarity to that center.
        similarity = RBF(policy.centers, np.eye(len(policy.centers)), scale=policy.scale)
        return np.hstack([one, similarity(x)])
    return one


def dose_limits(policy: Policy) -> tuple[float, float]:
    """The bounds that a policy keeps, infinite where there is none."""
    if not isinstance(policy, Clipped):
        return -np.inf, np.inf
    low, high = dose_limits(policy.policy)
    return max(low, float(policy.lower)), min(high, float(policy.upper))


def affine_search(
    estimator: Estimator,
    policy: Policy,
    rows: Rows,
    h: float,
    *,
    table: DoseTable | None = None,
    second: Second = Second.NONE,
) -> AffineSearch:
    """The compiled sums of `estimator` over `rows` for every parameter of `policy`."""
    low, high = dose_limits(policy)
    ends = {"low": low, "high": high}
    shared = {"phi": features(policy, rows.x), "t": rows.t[:, 0], "table": table, "second": second}
    if not isinstance(estimator, SmoothedEstimator):  # the direct method: no row has any weight
        n = len(rows.t)
        nothing = {"e": np.zeros(n), "q": np.full(n, np.inf), "kernel": Epanechnikov(), "h": 1.0}
        return AffineSearch(**shared, **ends, **nothing, center=rows.center, direct=True)
    center, e = rows.center, rows.y - (0.0 if rows.r_logged is None else rows.r_logged)
    if not estimator.uses_outcome_model:
        b, e = estimator.baseline(rows)
        center = float(b[0])
    return AffineSearch(
        **shared,
        **ends,
        e=e,
        q=rows.q,
        kernel=estimator.kernel,
        h=h,
        boundary=estimator.boundary,
        lower=None if rows.lower is None else rows.lower[:, 0],
        upper=None if rows.upper is None else rows.upper[:, 0],
        center=center,
        weight_slopes=estimator.normalized,
    )
