"""The bandwidth path from bins: all bandwidths in one reading of the rows, nothing approximated.

The compiled loop (`titrant.compiled.path`) enters every row once, in the bin of the narrowest
bandwidth that reaches it, as powers of r = 1 − (a/h)^γ, a = |τ − t|. From one bandwidth to the
next wider one

    r' = (1 − ρ) + ρr,  ρ = (h/h')^γ,

so sums of powers of r follow each other along the grid; all coefficients are positive, and no
digits are lost. Products of the weights at two bandwidths are polynomials in the narrower one's
r, so the joint covariance comes from the same sums. A row near a bound, where the kernel has
another shape at every bandwidth, is summed at each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from titrant.estimators.fused_weight import MANY, Columns, column, frozen
from titrant.kernels import Boundary
from titrant.kernels.power import power_form
from titrant.moments import Moments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.estimators import Problem, Rows, SmoothedEstimator
    from titrant.kernels import Kernel


@dataclass(frozen=True)
class Grid:
    """m increasing bandwidths h (m,) with a kernel that is a polynomial in r."""

    kernel: Kernel
    h: Array
    """In units of the dose."""

    @cached_property
    def kappa(self) -> Array:
        """The kernel's coefficients (p + 1,) in powers of r."""
        form = power_form(self.kernel)
        assert form is not None  # noqa: S101  (asked by has_bins)
        return form.kappa[: int(np.flatnonzero(form.kappa)[-1]) + 1]

    @property
    def gamma(self) -> int:
        """The power of |u| in r."""
        form = power_form(self.kernel)
        assert form is not None  # noqa: S101
        return form.gamma

    @cached_property
    def reach(self) -> Array:
        """A row has a weight at h when a < reach (m,): h itself, a bit more if K jumps there."""
        return frozen(np.nextafter(self.h, np.inf) if self.kappa[0] else self.h)

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """Leading bits of the first bandwidth, then the first bandwidth to reach each such cell."""
        from titrant.compiled.path import CUT  # noqa: PLC0415  (numba)

        cells = self.reach.view(np.int64) >> CUT
        table = np.searchsorted(cells, np.arange(cells[0], cells[-1] + 1), side="left")
        return np.concatenate([cells[:1], table]).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Binned:
    """What is kept of the rows: sums over bins (`titrant.compiled.path.add_rows`) and of b."""

    grid: Grid
    center: float
    baseline: Moments
    """Of b alone."""
    bins: Array
    baselines: Array
    first: Array
    second: Array

    def __add__(self, other: Binned) -> Binned:
        """Return the sums of both sets of rows."""
        return Binned(
            self.grid,
            self.center,
            self.baseline + other.baseline,
            self.bins + other.bins,
            self.baselines + other.baselines,
            self.first + other.first,
            self.second + other.second,
        )

    def finish(self) -> tuple[Moments, Array]:
        """Return the moments of b, w₁e, w₁, …, w_m e, w_m and the rows in reach (m,)."""
        return _moments(self), np.cumsum(self.bins[:, -1]) + self.first[7]


def has_bins(problem: Problem, factors: Array) -> bool:
    """Whether the path of a problem over these bandwidths can come from bins, and should."""
    estimator = problem.estimator
    return (
        problem.n >= MANY
        and bool((np.diff(factors) > 0.0).all())
        and len(problem.spread) == 1
        and estimator.boundary <= Boundary.LINEAR
        and power_form(estimator.kernel) is not None
    )


def binned(estimator: SmoothedEstimator, grid: Grid, rows: Rows, *, joint: bool = True) -> Binned:
    """Return the sums of some rows; without ``joint`` those of the variances alone."""
    from titrant.compiled.path import add_rows  # noqa: PLC0415  (numba)

    form, m, power = power_form(grid.kernel), len(grid.h), len(grid.kappa) - 1
    assert form is not None  # noqa: S101
    columns = Columns.of(rows)
    b, r = (column(reference) for reference in estimator.references(rows))
    sums = Binned(
        grid=grid,
        center=rows.center,
        baseline=_baseline(b, len(rows.y)),
        bins=np.zeros((m, 2 * (power + 1) + 3 * (2 * power + 1) + 1)),
        baselines=np.zeros((m, 2 * (power + 1))),
        first=np.zeros((8, m)),
        second=np.zeros((3, m, m) if joint and columns.bounds.size else (3, 0, 0)),
    )
    add_rows(
        columns.t,
        columns.tau,
        column(rows.y),
        columns.q,
        columns.bounds,
        b,
        r,
        float(rows.center),
        grid.h,
        grid.reach,
        grid.table,
        form.kappa,
        form.gamma,
        int(estimator.boundary),
        form.areas,
        joint,
        sums.bins,
        sums.baselines,
        sums.first,
        sums.second,
    )
    return sums


def _baseline(b: Array, n: int) -> Moments:
    """Return the moments of b (n,), or of a constant (1,) in n rows."""
    return Moments.of(b[:, None]) if len(b) > 1 else Moments(n, b.copy(), np.zeros((1, 1)))


def _moments(sums: Binned) -> Moments:
    """Return the moments of b, w₁e, w₁, …, w_m e, w_m over all n rows."""
    grid, n, m = sums.grid, sums.baseline.n, len(sums.grid.h)
    p = len(grid.kappa) - 1
    once = _chained(sums.bins[:, : 2 * (p + 1)].reshape(m, 2, p + 1), grid)
    twice = _chained(sums.bins[:, 2 * (p + 1) : -1].reshape(m, 3, 2 * p + 1), grid)
    with_b = _chained(sums.baselines.reshape(m, 2, p + 1), grid)
    w, we = (once @ grid.kappa / grid.h[:, None]).T + sums.first[:2]
    wb, web = (with_b @ grid.kappa / grid.h[:, None]).T + sums.first[2:4]
    products = _products(twice, grid)
    if sums.second.size:
        products += sums.second + sums.second.transpose(0, 2, 1)
    products[:, np.arange(m), np.arange(m)] += sums.first[4:7]
    mean = np.empty(1 + 2 * m)
    mean[0], mean[1::2], mean[2::2] = sums.baseline.mean[0], we / n, w / n
    c = np.empty((1 + 2 * m, 1 + 2 * m))
    c[2::2, 2::2], c[1::2, 1::2] = products[0], products[2]
    c[1::2, 2::2] = c[2::2, 1::2] = products[1]
    c[1:, 1:] -= n * np.outer(mean[1:], mean[1:])
    offset = mean[0] - sums.center
    c[0, 0] = sums.baseline.comoment[0, 0]
    c[0, 1::2] = c[1::2, 0] = (web - offset * we) * (c[0, 0] > 0.0)
    c[0, 2::2] = c[2::2, 0] = (wb - offset * w) * (c[0, 0] > 0.0)
    return Moments(n, mean, c)


def _chained(bins: Array, grid: Grid) -> Array:
    """Return Σ…rˢ over all rows in reach of each bandwidth from those of its bin, (m, c, s)."""
    sums = bins.copy()
    rho = (grid.h[:-1] / grid.h[1:]) ** grid.gamma
    # 1 − ρ as a product: nothing cancels where the grid is fine.
    gap = (grid.h[1:] - grid.h[:-1]) / grid.h[1:]
    rest = gap * (1.0 + grid.h[:-1] / grid.h[1:]) if grid.gamma == 2 else gap  # noqa: PLR2004
    for j in range(1, len(sums)):
        sums[j] += sums[j - 1] @ _step(rho[j - 1], rest[j - 1], sums.shape[2]).T
    return sums


def _step(rho: float, rest: float, size: int) -> Array:
    """Return T (s, i) with r'ˢ = Σᵢ T_si rⁱ for r' = rest + ρr."""
    step = np.zeros((size, size))
    for s in range(size):
        for i in range(s + 1):
            step[s, i] = comb(s, i) * rest ** (s - i) * rho**i
    return step


def _products(twice: Array, grid: Grid) -> Array:
    """Return Σwⱼwₗ·(1, e, e²) (3, m, m) from sums of g²·(1, e, e²)·rˢ in reach (m, 3, s)."""
    narrow, wide = grid.h[:, None], grid.h  # j ≤ l; the lower triangle is not looked at
    ratio = narrow / wide
    rho, rest = ratio**grid.gamma, (wide - narrow) / wide
    if grid.gamma == 2:  # noqa: PLR2004
        rest = rest * (1.0 + ratio)
    out = np.zeros((3, len(wide), len(wide)))
    for s, k in enumerate(grid.kappa):
        for other, c in enumerate(grid.kappa):
            for i in range(other + 1 if k * c else 0):
                power = k * c * comb(other, i) * rest ** (other - i) * rho**i
                out += power * twice[:, :, s + i].T[:, :, None]
    out /= narrow * wide
    return np.triu(out) + np.triu(out, 1).transpose(0, 2, 1)
