"""What a policy search keeps of the rows: sums of terms and their slopes in the parameters.

The slope of a term in β is its slope in the dose times ∂τ/∂β, summed by the policy's
vector-Jacobian product. These sums add up over blocks of rows like all else, so a search runs
wherever an evaluation runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.estimators import Estimator, Rows
    from titrant.kernels import Scale
    from titrant.policies import ParametricPolicy


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
        gradient = _dot(by_z, self.dz)
        if by_zz.size:
            m, k = by_z.shape
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
