"""What a policy search keeps of the rows: sums of terms and their slopes in the parameters.

The slope of a term in β is its slope in the dose times ∂τ/∂β, summed by the policy's
vector-Jacobian product. These sums add up over blocks of rows like all else, so a search runs
wherever an evaluation runs. Here they are defined, by the estimator's own terms and for any policy
with parameters; `titrant.optimize.affine` has the compiled twin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from titrant.policies import ParametricPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from titrant._types import Array
    from titrant.estimators import Estimator, Rows
    from titrant.kernels import Scale


class Second(IntEnum):
    """Which second moments a search asks for."""

    NONE = 0
    WEIGHTS = 1
    """Σw², for an ESS floor."""
    ALL = 2
    """All products of terms, for a penalty on the standard error."""


@dataclass(frozen=True, slots=True)
class SearchStatistics:
    """Sums over n rows for m candidate policies with P parameters and k terms.

    The first term is counted from `center`, the mean outcome or so. Raw second moments suffice
    then, unlike for a standard error that is reported: the penalty only steers the search.
    """

    n: int
    z: Array
    """Σz (m, k)."""
    dz: Array
    """∂Σz/∂β (m, k, P)."""
    zz: Array
    """Σzz' (m, k, k)."""
    dzz: Array
    """∂Σzz'/∂β (m, k, k, P); it and zz are empty when nothing needs them."""
    center: float = 0.0

    @property
    def mean(self) -> Array:
        """The mean terms (m, k), the center added back."""
        mean = self.z / self.n
        mean[:, 0] += self.center
        return mean

    def pull(self, by_z: Array, by_zz: Array) -> Array:
        """Return the gradients (m, P) of functions of the sums with slopes (m, k) and (m, k, k)."""
        m, k = by_z.shape
        gradient = _dot(by_z, self.dz)
        if by_zz.size:
            gradient = gradient + _dot(by_zz.reshape(m, k * k), self.dzz.reshape(m, k * k, -1))
        return gradient

    def __add__(self, other: SearchStatistics) -> SearchStatistics:
        """Return the sums over both sets of rows, counted from the same center."""
        return SearchStatistics(
            self.n + other.n,
            self.z + other.z,
            self.dz + other.dz,
            self.zz + other.zz,
            self.dzz + other.dzz,
            self.center,
        )


def _dot(g: Array, a: Array) -> Array:
    """Return Σₖ gₖaₖ (m, P) of g (m, k) and a (m, k, P).

    Term by term, so that a candidate's gradient is the same in every company.
    """
    total = g[:, :1] * a[:, 0]
    for k in range(1, g.shape[1]):
        total = total + g[:, k : k + 1] * a[:, k]
    return total


def search_statistics(
    estimator: Estimator,
    policy: ParametricPolicy,
    scale: Scale,
    rows: Rows,
    features: Array | None = None,
) -> SearchStatistics:
    """Return the sums of one candidate (m = 1); rows carry its doses, r̂ and slopes, and x.

    ``features`` (n, P) are what the policy is a function of, if not the contexts.
    """
    x = rows.need("x", "search") if features is None else features
    z, slope = estimator.terms(rows, scale), estimator.dterms(rows, scale)
    z[:, 0] -= rows.center
    k = z.shape[1]

    def pulled(g: Array) -> Array:
        return policy.vjp(x, g[:, 0] if g.shape[1] == 1 else g)

    dz = np.stack([pulled(slope[:, b]) for b in range(k)])
    zdz = np.stack(
        [np.stack([pulled(z[:, a, None] * slope[:, b]) for b in range(k)]) for a in range(k)]
    )
    dzz = zdz + np.swapaxes(zdz, 0, 1)
    return SearchStatistics(
        len(z), z.sum(axis=0)[None], dz[None], (z.T @ z)[None], dzz[None], rows.center
    )


def stacked(parts: Sequence[SearchStatistics]) -> SearchStatistics:
    """Return the statistics of several candidates on the same rows as one."""
    return replace(
        parts[0],
        z=np.concatenate([p.z for p in parts]),
        dz=np.concatenate([p.dz for p in parts]),
        zz=np.concatenate([p.zz for p in parts]),
        dzz=np.concatenate([p.dzz for p in parts]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TermSearch:
    """The sums of an estimator's own terms for any policy with parameters, on n rows, in numpy."""

    rows: Rows
    """The rows; the policy doses that they carry are not read."""
    features: Array
    """What the policy is a function of (n, …)."""
    policy: ParametricPolicy
    """Any policy of the class."""
    estimator: Estimator
    scale: Scale
    outcome: Callable[[Array], Array] | None = None
    """r̂ (k, n) at k doses (k, n, d) of each row, if the estimator has a model."""
    step: Array | float = 1.0
    """Of the central differences of r̂ in each dose (d,)."""

    def __call__(self, params: Array) -> SearchStatistics:
        """Return the sums at parameters (m, P)."""
        policies = [self.policy.with_params(p) for p in params]
        shape = self.rows.t.shape
        tau = np.stack([np.reshape(policy(self.features), shape) for policy in policies])
        rows = [replace(self.rows, tau=one) for one in tau]
        if self.outcome is not None:
            found = zip(rows, *self._model_at(self.outcome, tau), strict=True)
            rows = [replace(one, r_tau=value, r_slope=slope) for one, value, slope in found]
        return stacked(
            [
                search_statistics(self.estimator, policy, self.scale, one, self.features)
                for policy, one in zip(policies, rows, strict=True)
            ]
        )

    def _model_at(self, outcome: Callable[[Array], Array], tau: Array) -> tuple[Array, Array]:
        """Return r̂ (m, n) at doses (m, n, d), and ∂r̂/∂t (m, n, d) by central differences."""
        d = tau.shape[2]
        steps = np.diag(np.broadcast_to(self.step, d))
        moves = np.concatenate([np.zeros((1, d)), steps, -steps])
        asked = (tau[:, None] + moves[:, None, :]).reshape(-1, *tau.shape[1:])
        found = outcome(asked).reshape(len(tau), len(moves), -1)
        rise = found[:, 1 : d + 1] - found[:, d + 1 :]
        return found[:, 0], np.moveaxis(rise, 1, 2) / (2.0 * self.step)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FeaturePolicy(ParametricPolicy):
    """τ = φ·(B·unit): a policy of features φ (n, P), B (P,) for one dose and (P, d) for several."""

    matrix: Array
    unit: Array
    """(1,) or (d,)."""

    def __call__(self, X: Array) -> Array:
        """Return the doses (n,) or (n, d) of features X (n, P)."""
        return X @ (self.matrix * self.unit)

    @property
    def params(self) -> Array:
        """B, row by row."""
        return self.matrix.ravel()

    def with_params(self, params: Array) -> FeaturePolicy:
        """Return the policy with another B."""
        return FeaturePolicy(params.reshape(self.matrix.shape), self.unit)

    def vjp(self, X: Array, g: Array) -> Array:
        """Return Σᵢ gᵢ·∂τ(φᵢ)/∂B, row by row."""
        return np.asarray((X.T @ (g * self.unit)).ravel())
