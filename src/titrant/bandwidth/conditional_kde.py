"""Conditional moments and densities by Gaussian product kernels, in closed form.

The joint density of columns is estimated with a Gaussian product kernel and the normal reference
bandwidths b_j = 1.06·sd_j·n^(−1/(4+q)), q the number of columns that vary; dividing by the
density of the columns given is what statsmodels calls ``KDEMultivariateConditional``. Its
integrals need no quadrature. With votes

    p_j ∝ ∏ φ((t − t_j)/b_t) ∏ φ((x − x_j)/b_x),  Σp_j = 1,

    E[e | t, x]         = Σp_j e_j                        (Nadaraya–Watson regression)
    E[(e − c)² | t, x]  = Σp_j (e_j − c)² + b_e²          (the kernel's own spread is part of it)
    ∂²E[e | t, x]/∂t²   = Σp_j (t_j − t̄)²(e_j − ē)/b_t⁴,  t̄ = Σp_j t_j, ē = Σp_j e_j,

the last because ∂log p_j/∂t = (t_j − t̄)/b_t². Columns are measured in their own sd, so that one
number is the bandwidth of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from titrant._types import Array

CELLS = 32_768
"""Votes held at once, points × rows of a block: as many as stay in cache."""


@dataclass(frozen=True, slots=True)
class OutcomeMoments:
    """What is known of e at m points (t, x): mean (m,), square (m,), curvature (m, d)."""

    mean: Array
    """E[e | t, x]."""
    square: Array
    """E[e² | t, x]."""
    curvature: Array
    """∂²E[e | t, x]/∂t_j² of each dose."""


def outcome_moments(
    e: Array, t: Array, x: Array, at_t: Array, at_x: Array, *, pilot: float = 1.0
) -> OutcomeMoments:
    """Return the moments of e at the points (at_t (m, d), at_x (m, p)), by n rows e, t, x.

    `pilot` multiplies the normal reference bandwidths.
    """
    columns = _Columns.of(np.concatenate([t, x], axis=1))
    b = pilot * _normal_reference(len(e), columns.varying + int(np.ptp(e) > 0))
    # Measured from the means: the expansion of a central moment below then loses no digits.
    center = e.mean()
    r, z = e - center, t - t.mean(axis=0)
    features = np.concatenate([np.ones((len(e), 1)), z, z * z], axis=1)
    features = np.concatenate([features, features * r[:, None], (r * r)[:, None]], axis=1)
    at = np.concatenate([at_t, at_x], axis=1)
    averages = np.concatenate(
        [_votes(block, columns.z, b)[0] @ features for block in columns.blocks(at)]
    )
    averages /= averages[:, :1]
    return _moments(averages, t.std(axis=0) * b, center, (e.std() * b) ** 2)


def _moments(averages: Array, b_t: Array, center: float, own: float) -> OutcomeMoments:
    """Return the moments from averages (m, 4d + 3) of 1, z, z², r, zr, z²r, r²."""
    d = len(b_t)
    _, tt, t2, mean, tr, t2r, r2 = np.split(
        averages, np.cumsum([1, d, d, 1, d, d]).tolist(), axis=1
    )
    # Σp(t − t̄)²(e − ē), expanded.
    third = t2r - mean * t2 - 2.0 * tt * (tr - mean * tt)
    mean, r2 = mean[:, 0], r2[:, 0]
    return OutcomeMoments(
        mean=center + mean,
        square=r2 + 2.0 * center * mean + center**2 + own,
        curvature=np.divide(third, b_t**4, out=np.zeros_like(third), where=b_t > 0),
    )


def dose_density(t: Array, x: Array, at_t: Array, at_x: Array, *, pilot: float = 1.0) -> Array:
    """Return f(t | x) (m,) at the points (at_t (m, d), at_x (m, p)), by n rows t, x.

    `pilot` multiplies the normal reference bandwidths.
    """
    both, context = _Columns.of(np.concatenate([t, x], axis=1)), _Columns.of(x)
    b = pilot * _normal_reference(len(t), both.varying)
    at = np.concatenate([at_t, at_x], axis=1)
    joint = [_log_total(block, both.z, b) for block in both.blocks(at)]
    given = [_log_total(block, context.z, b) for block in context.blocks(at_x)]
    unit = np.prod(t.std(axis=0) * b * np.sqrt(2.0 * np.pi))
    return np.asarray(np.exp(np.concatenate(joint) - np.concatenate(given)) / unit)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns that vary, in units of their sd: z (n, varying); constant ones do not matter."""

    z: Array
    keep: NDArray[np.bool_]
    sd: Array

    @classmethod
    def of(cls, columns: Array) -> _Columns:
        sd = columns.std(axis=0)
        keep = np.ptp(columns, axis=0) > 0
        return cls(columns[:, keep] / sd[keep], keep, sd)

    @property
    def varying(self) -> int:
        return int(self.z.shape[1])

    def blocks(self, at: Array) -> Iterator[Array]:
        """Yield the points (m, columns) in the units of z, a few at a time."""
        points = at[:, self.keep] / self.sd[self.keep]
        size = max(1, CELLS // len(self.z))
        for start in range(0, len(points), size):
            yield points[start : start + size]


def _normal_reference(n: int, q: int) -> float:
    """Return 1.06·n^(−1/(4+q)), the bandwidth of each of q columns in units of its sd."""
    return float(1.06 * n ** (-1.0 / (4 + q)))


def _votes(at: Array, z: Array, b: float) -> tuple[Array, Array]:
    """Return w = ∏exp(−½(Δ/b)²) (m, n), over the largest of each point, and its log (m,).

    The largest vote is divided out so that points far from all rows have votes as well.
    """
    log_w = np.zeros((len(at), len(z)))
    for column in range(z.shape[1]):
        difference = at[:, None, column] - z[:, column]
        difference *= difference
        log_w -= difference
    log_w *= 0.5 / b**2
    top = log_w.max(axis=1)
    log_w -= top[:, None]
    return np.exp(log_w, out=log_w), top


def _log_total(at: Array, z: Array, b: float) -> Array:
    """Return log Σ∏exp(−½(Δ/b)²) (m,)."""
    w, top = _votes(at, z, b)
    return np.asarray(top + np.log(w.sum(axis=1)))
