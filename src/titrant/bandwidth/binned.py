"""The bandwidth path from bins: all bandwidths in one reading of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled import Loop, pays
from titrant.estimators.form import has_common_terms
from titrant.estimators.weight import column, columns_of, frozen
from titrant.kernels import Boundary
from titrant.kernels.polynomial import power_form
from titrant.moments import Moments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.estimators import Problem, Rows, SmoothedEstimator
    from titrant.kernels import Kernel

# What a bandwidth path is computed from: means and covariances of the terms at m bandwidths.


@dataclass(frozen=True, slots=True, kw_only=True)
class PathMoments:
    """Means and covariances of b, wⱼe and wⱼ over n rows, and the rows in reach of each h_j."""

    n: int
    b: float
    e: Array
    """Mean of wⱼe (m,)."""
    w: Array
    bb: float
    """Variance of b."""
    be: Array
    """Covariance of b and wⱼe (m,)."""
    bw: Array
    ee: Array
    """Covariance of wⱼe and wₖe (m, m)."""
    ew: Array
    ww: Array
    count: Array

    @classmethod
    def of(cls, moments: Moments, count: Array) -> PathMoments:
        """Return those of b, w₁e, w₁, …, w_m e, w_m side by side."""
        mean, c = moments.mean, moments.covariance
        return cls(
            n=moments.rows,
            b=float(mean[0]),
            e=mean[1::2],
            w=mean[2::2],
            bb=float(c[0, 0]),
            be=c[0, 1::2],
            bw=c[0, 2::2],
            ee=c[1::2, 1::2],
            ew=c[1::2, 2::2],
            ww=c[2::2, 2::2],
            count=count,
        )

    @property
    def means(self) -> Array:
        """Means of b, wⱼe and wⱼ (m, 3)."""
        return np.column_stack([np.full(len(self.w), self.b), self.e, self.w])

    def covariance(self, g: Array) -> Array:
        """Return the covariance (m, m) of m values with gradients g (m, 3) in b, wⱼe and wⱼ.

        This is gΣgᵀ without its zeros: only three terms matter to each value.
        """
        by_b, by_e, by_w = g.T
        total = np.outer(by_e, by_w) * self.ew
        total += np.outer(by_b, by_e * self.be + by_w * self.bw)
        total = total + total.T
        for slope, own in ((by_b, self.bb), (by_e, self.ee), (by_w, self.ww)):
            total += np.outer(slope, slope) * own
        return np.asarray(total)


# The bandwidth path from bins: all bandwidths in one reading of the rows, nothing approximated.
#
# The compiled loop (`titrant.compiled.path`) enters every row once, in the bin of the narrowest
# bandwidth that reaches it, as powers of r = 1 − (a/h)^γ, a = |τ − t|. From one bandwidth to the
# next wider one
#
#     r' = (1 − ρ) + ρr,  ρ = (h/h')^γ,
#
# so sums of powers of r follow each other along the grid; all coefficients are positive, and no
# digits are lost (`titrant.compiled.path`). Products of the weights at two bandwidths are
# polynomials in the narrower one's r, so the joint covariance comes from the same sums. A row near
# a bound, where the kernel has another shape at every bandwidth, is summed at each of them
# (`titrant.compiled.path`).


@dataclass(frozen=True)
class PathGrid:
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
    def lookup(self) -> tuple[int, NDArray[np.uint32], int]:
        """How a distance finds the first bandwidth in reach, by a cell of its leading bits.

        The first cell with a bandwidth, the first bandwidth that may reach each cell from there
        on, and the most bandwidths in one cell.
        """
        from titrant.compiled.path import CUT  # noqa: PLC0415  (numba)

        cells = self.reach.view(np.int64) >> CUT
        table = np.searchsorted(cells, np.arange(cells[0], cells[-1] + 1), side="left")
        crowd = np.unique(cells, return_counts=True)[1].max()
        return int(cells[0]), table.astype(np.uint32), int(crowd)


@dataclass(frozen=True, slots=True)
class Binned:
    """What is kept of the rows: sums over bins (`titrant.compiled.path.add_rows`) and of b."""

    grid: PathGrid
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

    def finish(self) -> PathMoments:
        """Return the moments at all bandwidths."""
        return _moments(self)


def has_bins(problem: Problem, factors: Array) -> bool:
    """Whether the path of a problem over these bandwidths can come from bins, and should."""
    estimator = problem.estimator
    return (
        pays(Loop.PATH, problem.n)
        and not problem.masses
        and has_common_terms(estimator)
        and bool((np.diff(factors) > 0.0).all())
        and len(problem.spread) == 1
        and estimator.boundary <= Boundary.LINEAR
        and power_form(estimator.kernel) is not None
    )


def binned(
    estimator: SmoothedEstimator, grid: PathGrid, rows: Rows, *, joint: bool = True
) -> Binned:
    """Return the sums of some rows; without ``joint`` those of the variances alone."""
    from titrant.compiled.path import add_rows  # noqa: PLC0415  (numba)

    form, m, power = power_form(grid.kernel), len(grid.h), len(grid.kappa) - 1
    assert form is not None  # noqa: S101
    columns, bounded = columns_of(rows), not (rows.lower is None and rows.upper is None)
    b, r = (column(reference) for reference in estimator.references(rows))
    sums = Binned(
        grid=grid,
        center=rows.center,
        baseline=_baseline(b, len(rows.y)),
        bins=np.zeros((m, 2 * (power + 1) + 3 * (2 * power + 1) + 1)),
        baselines=np.zeros((m, 2 * (power + 1))),
        first=np.zeros((m, 8)),
        second=np.zeros((3, m, m) if joint and bounded else (3, 0, 0)),
    )
    # One number for b stands for the center in all rows; the b of a single row is given twice.
    by_row = column(np.repeat(b, 2)) if len(rows.y) == 1 else b
    add_rows(
        columns,
        (column(rows.y), by_row, r),
        float(rows.center),
        (grid.h, grid.reach, *grid.lookup),
        (form.kappa, form.gamma, int(estimator.boundary), form.areas),
        joint,
        (sums.bins, sums.baselines, sums.first, sums.second),
    )
    return sums


def _baseline(b: Array, n: int) -> Moments:
    """Return the moments of b (n,), or of a constant (1,) in n rows."""
    return Moments.of(b[:, None]) if len(b) != 1 else Moments(n, b.copy(), np.zeros((1, 1)))


def _moments(sums: Binned) -> PathMoments:
    from titrant.compiled.path import chained, products  # noqa: PLC0415  (numba)

    grid, n, m = sums.grid, sums.baseline.rows, len(sums.grid.h)
    p, near = len(grid.kappa) - 1, sums.first.T
    once, with_b, twice = (
        chained(np.ascontiguousarray(part).reshape(m, -1, size), grid.h, grid.gamma)
        for part, size in (
            (sums.bins[:, : 2 * (p + 1)], p + 1),
            (sums.baselines, p + 1),
            (sums.bins[:, 2 * (p + 1) : -1], 2 * p + 1),
        )
    )
    w, we = (once @ grid.kappa / grid.h[:, None]).T + near[:2]
    wb, web = (with_b @ grid.kappa / grid.h[:, None]).T + near[2:4]
    mean_w, mean_e, variance = w / n, we / n, sums.baseline.comoment[0, 0] / n
    ww, ew, ee = _all_products(sums, products(twice, grid.kappa, grid.h, grid.gamma)) / n
    ww -= np.outer(mean_w, mean_w)
    ew -= np.outer(mean_e, mean_w)
    ee -= np.outer(mean_e, mean_e)
    offset, varies = sums.baseline.mean[0] - sums.center, variance > 0.0
    return PathMoments(
        n=n,
        b=float(sums.baseline.mean[0]),
        e=mean_e,
        w=mean_w,
        bb=float(variance),
        be=(web - offset * we) / n * varies,
        bw=(wb - offset * w) / n * varies,
        ee=ee,
        ew=ew,
        ww=ww,
        count=np.cumsum(sums.bins[:, -1]) + near[7],
    )


def _all_products(sums: Binned, products: Array) -> Array:
    """Add those of the rows near a bound to the products Σwⱼwₖ·(1, e, e²) (3, m, m)."""
    if sums.second.size:
        products += sums.second
        products += sums.second.transpose(0, 2, 1)
    diagonal = np.arange(products.shape[1])
    products[:, diagonal, diagonal] += sums.first[:, 4:7].T
    return products
