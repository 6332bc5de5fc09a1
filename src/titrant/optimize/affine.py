"""Policies of one dose as τ = φ(x)'β cut to [low, high], ready for the compiled search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import InvalidArgument
from titrant.estimators import SmoothedEstimator
from titrant.estimators.form import has_search_loop
from titrant.kernels import Epanechnikov
from titrant.optimize.fused import AffineSearch, Second
from titrant.policies import RBF, Clipped, Constant, Linear
from titrant.policies.base import is_exactly

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators import Estimator, Rows
    from titrant.outcome.table import DoseTable
    from titrant.policies import Policy


def features(policy: Policy, X: Array) -> Array:
    """Return φ (n, P) with τ = φ'β before any clipping, β the policy's parameters."""
    one = np.ones((len(X), 1))
    if is_exactly(policy, Clipped):
        return features(policy.policy, X)
    if is_exactly(policy, Constant) and np.ndim(policy.dose) == 0:
        return one
    if is_exactly(policy, Linear) and np.ndim(policy.intercept) == 0:
        return np.hstack([one, X])
    if is_exactly(policy, RBF) and np.ndim(policy.intercept) == 0:
        # One dose for each center, with a coefficient of 1, is the similarity to that center.
        similarity = RBF(policy.centers, np.eye(len(policy.centers)), scale=policy.scale)
        return np.hstack([one, similarity(X)])
    raise InvalidArgument(
        f"`{type(policy).__name__}` is not a policy of one dose that is affine in its parameters. "
        "Search it through `search_statistics`."
    )


def dose_limits(policy: Policy) -> tuple[float, float]:
    """Return the bounds that a policy of one dose keeps, infinite where there is none."""
    if not is_exactly(policy, Clipped):
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
    """Return the compiled sums of `estimator` over `rows` for every parameter of `policy`.

    The policy doses that the rows carry are not read. A model r̂ comes as the `table` of its
    curves, and as the rows' `r_logged`.
    """
    low, high = dose_limits(policy)
    if not has_search_loop(estimator):
        raise InvalidArgument(
            "The compiled search needs `DirectMethod` or an estimator with a compact kernel and at "
            "most Boundary.LINEAR, none of whose methods a class of your own overrides; got "
            f"{estimator!r}. Search it through `search_statistics`."
        )
    if not isinstance(estimator, SmoothedEstimator):
        return _direct(policy, rows, table, second)
    center, e = _residuals(estimator, rows, table)
    return AffineSearch(
        phi=features(policy, rows.need("x", "affine_search")),
        t=rows.t[:, 0],
        e=e,
        q=rows.need("q", "affine_search"),
        kernel=estimator.kernel,
        h=h,
        boundary=estimator.boundary,
        lower=None if rows.lower is None else rows.lower[:, 0],
        upper=None if rows.upper is None else rows.upper[:, 0],
        low=low,
        high=high,
        table=table,
        center=center,
        second=second,
        weight_slopes=estimator.normalized,
    )


def _direct(policy: Policy, rows: Rows, table: DoseTable | None, second: Second) -> AffineSearch:
    """Return the sums of the direct method: no row has any weight."""
    low, high = dose_limits(policy)
    n = len(rows.t)
    return AffineSearch(
        phi=features(policy, rows.need("x", "affine_search")),
        t=rows.t[:, 0],
        e=np.zeros(n),
        q=np.full(n, np.inf),
        kernel=Epanechnikov(),
        h=1.0,
        low=low,
        high=high,
        table=table,
        center=rows.center,
        second=second,
        direct=True,
    )


def _residuals(
    estimator: SmoothedEstimator, rows: Rows, table: DoseTable | None
) -> tuple[float, Array]:
    """Return the center of the baseline and the residuals e (n,)."""
    if not estimator.uses_outcome_model:
        b, e = estimator.baseline(rows)
        return float(b[0]), e
    if table is None:
        raise InvalidArgument(f"`{type(estimator).__name__}` needs the `table` of its model.")
    return rows.center, rows.y - rows.need("r_logged", "affine_search")
