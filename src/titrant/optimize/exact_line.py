"""The best policy along a line τ = slope(x)·β, exactly: β a number.

With a kernel that is a polynomial on its support, the estimate is piecewise polynomial (IPW) or
rational (self-normalized) in β, with two breakpoints a row. Bounds over buckets of β leave few
places where the least value can be; there every cell between breakpoints is solved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.estimators.form import is_piecewise
from titrant.kernels import Boundary
from titrant.kernels.polynomial import polynomial
from titrant.optimize.lbfgs import Solution, Status

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators import Estimator, Rows
    from titrant.kernels import Kernel

_SAMPLE = 4096
"""Rows whose breakpoints lay out the buckets."""
_BUCKETS = 1024
_FULL = 16
"""Rows of a bucket, at least."""
_LIGHTEST = 1e-6
"""Share of the largest possible weight under which a policy is off the data."""
_AGAIN = 1e-12


def exact_line(
    estimator: Estimator,
    rows: Rows,
    h: float,
    *,
    low: float,
    high: float,
    slope: Array | float = 1.0,
    ess_floor: float = 10.0,
) -> Solution:
    """Return the β in [low, high] with the least estimate for doses slope·β.

    Parameters
    ----------
    estimator : `IPW` or `SelfNormalized` with a compact kernel; no correction at bounds
    rows : rows of one dose; the policy doses that they carry are not read
    h : bandwidth
    low, high : range of β
    slope : a number or (n,); 1 for a constant dose, x for τ = βx
    ess_floor : effective sample size that a policy must reach, so that none wins off the data;
        at least 1 when self-normalized, and then never under a millionth of the largest weight

    Returns
    -------
    Solution : with `bound`, the least value over all cells between breakpoints; the gap to it
        is rounding. `evaluations` counts the cells that had to be solved.
    """
    _check.positive(h, "h", "exact_line")
    _check.nonnegative(ess_floor, "ess_floor", "exact_line")
    if not (np.isfinite([low, high]).all() and low < high):
        raise InvalidArgument(
            f"The exact search needs a range of β with low < high; got {low} to {high}."
        )
    line = Line.of(estimator, rows, h, slope)
    best, where, cells = line.search(
        (low, high), max(ess_floor, 1.0) if line.normalized else ess_floor
    )
    found = np.isfinite(best)
    value = line.value(where) if found else np.nan
    return Solution(
        params=np.array([where]),
        value=value,
        status=Status.CONVERGED if found else Status.INFEASIBLE,
        starts=np.array([[low], [high]]),
        ends=np.array([[where]]),
        values=np.array([value]),
        evaluations=cells,
        bound=float(min(best + line.center, value)) if found else None,
    )


@dataclass(frozen=True, slots=True)
class Line:
    """Policies τ = slope·β on n rows, in units of the bandwidth."""

    rows: Array
    """v = −t/h, κ = slope/h, g = 1/(h·q) and e (4, n)."""
    kernel: Kernel
    normalized: bool
    center: float
    """What is added to the weighted residuals."""

    @classmethod
    def of(cls, estimator: Estimator, rows: Rows, h: float, slope: Array | float) -> Line:
        """Check that the estimate is piecewise polynomial or rational, and lay out the rows."""
        unbounded = rows.lower is None or getattr(estimator, "boundary", None) is Boundary.NONE
        if not is_piecewise(estimator) or not unbounded or rows.t.shape[1] != 1:
            raise InvalidArgument(
                "The exact search needs `IPW` or `SelfNormalized`, a compact kernel and one dose "
                f"without bounds (or `boundary=Boundary.NONE`); got {estimator!r} and "
                f"{rows.t.shape[1]} dose(s){'' if unbounded else ' with bounds'}. Use LBFGS."
            )
        b, e = estimator.baseline(rows)
        laid_out = np.empty((4, len(rows.t)))
        np.subtract(0.0, rows.t[:, 0], out=laid_out[0])
        laid_out[0] /= h
        laid_out[1] = np.asarray(slope) / h
        np.divide(1.0 / h, rows.need("q", "exact_line"), out=laid_out[2])
        laid_out[3] = e
        return cls(laid_out, estimator.kernel, estimator.normalized, float(b[0]))

    @property
    def degree(self) -> int:
        """The degree of the kernel's polynomial."""
        return int(np.flatnonzero(_coefficients(self.kernel)).max())

    @property
    def kinds(self) -> Array:
        """The polynomial pieces of the kernel: where they begin and end, and coefficients."""
        c = _coefficients(self.kernel)
        if not c[1::2].any():
            return np.array([[-1.0, 1.0, *c]])
        mirrored = c * (-1.0) ** np.arange(len(c))
        return np.array([[-1.0, 0.0, *mirrored], [0.0, 1.0, *c]])

    def search(self, ends: tuple[float, float], floor: float) -> tuple[float, float, int]:
        """Return the least Σw·e/Σw (or mean w·e), its β, and how many cells had to be solved."""
        from titrant.optimize.compiled import line as loops  # noqa: PLC0415

        line, edges, degree = (self.rows, self.kinds), self._edges(ends), self.degree
        n = 0.0 if self.normalized else float(self.rows.shape[1])
        lightest = _LIGHTEST * float(self.rows[2].sum()) * self.kernel.bound
        goal = (degree, n, (float(floor), lightest))
        size = 2 * degree + 2 + (2 * degree + 1 if floor > 0 else 0)
        located = loops.locate(line, edges)
        entering, leaving, rest = loops.accumulate(line, edges, located, degree, size)
        counts = loops.active_counts(located, len(rest))
        active = loops.chain(line, edges, counts, entering, leaving, degree)
        best, where = loops.best_edge(active, edges, goal)
        kept = np.ones(len(rest), dtype=np.bool_)
        if np.isfinite(best):
            kept = loops.promising(active, leaving, rest, edges, degree, best, n)
            # A little above it, so that the cell beside the edge finds it again.
            best += _AGAIN * max(1.0, abs(best))
        place, which = loops.events(line, located, kept)
        order = np.argsort(place, kind="stable")
        found: tuple[float, float, int] = loops.sweep(
            line, (edges, kept, active, counts), (place[order], which[order]), goal, (best, where)
        )
        return found

    def _edges(self, ends: tuple[float, float]) -> Array:
        """Return edges of buckets with about as many breakpoints each, by a sample of rows."""
        some = self.rows[:, :: max(self.rows.shape[1] // _SAMPLE, 1)]
        v, kappa = some[0][some[1] != 0], some[1][some[1] != 0]
        points = np.sort(np.concatenate([(-1.0 - v) / kappa, (1.0 - v) / kappa]))
        points = points[(points > ends[0]) & (points < ends[1])]
        step = max(len(points) // min(_BUCKETS, max(self.rows.shape[1] // _FULL, 1)), 1)
        return np.unique(np.concatenate([[ends[0]], points[step::step], [ends[1]]]))

    def value(self, beta: float) -> float:
        """Return the estimate at β by its sums over rows."""
        v, kappa, g, e = self.rows
        w = g * self.kernel(v + kappa * beta)
        total = np.sum(w) if self.normalized else len(w)
        return self.center + float(np.dot(w, e) / total)


def _coefficients(kernel: Kernel) -> Array:
    c = polynomial(kernel)
    assert c is not None  # noqa: S101  (asked by is_piecewise)
    return c
