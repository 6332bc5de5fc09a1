"""The weights of many rows by compiled loops, where there are any.

There are for one dose and a kernel that is a polynomial in the distance to its edge
(`titrant.kernels.power`): all built-in kernels but the Gaussian. Everything else, and few rows,
for which loading numba would take longer than numpy does, goes through numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.kernels.power import middle_polynomial, power_form

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Boundary, Kernel, Scale

    Smoothing = tuple[float, Array, int, int, Array, Array]

MANY = 32_768
"""Rows from which on compiled loops are used."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows of one dose as compiled loops take them: contiguous, and all of one type."""

    t: Array
    tau: Array
    q: Array
    bounds: Array
    """(2, n); (2, 1) where all rows share them, (2, 0) where there are none."""

    @classmethod
    def of(cls, rows: Rows) -> Columns:
        """Return the columns of rows; nothing is copied that is contiguous already."""
        return cls(
            column(rows.t[:, 0]),
            column(rows.tau[:, 0]),
            column(rows.need("q", "weight")),
            _bounds(rows),
        )


def can_loop(kernel: Kernel, rows: Rows) -> bool:
    """Whether there is a compiled loop for these rows."""
    return rows.t.shape[1] == 1 and power_form(kernel) is not None


def has_loop(kernel: Kernel, rows: Rows) -> bool:
    """Whether compiled loops can do these rows, and should.

    Few rows at the end of a long log are done like those before them.
    """
    return rows.first_row + len(rows.y) >= MANY and can_loop(kernel, rows)


def smoothing(kernel: Kernel, boundary: Boundary, h: float) -> Smoothing:
    """Return h, the kernel and its correction as compiled loops take them."""
    form = power_form(kernel)
    assert form is not None  # noqa: S101  (asked by has_loop)
    middle = middle_polynomial(kernel, boundary)
    return float(h), form.kappa, form.gamma, int(boundary), form.areas, middle


def bandwidth(scale: Scale) -> float:
    """Return h of a scale for one dose."""
    return 1.0 / float(scale.inverse_root[0, 0])


def fused_weight(rows: Rows, kernel: Kernel, boundary: Boundary, scale: Scale) -> Array:
    """Return w (n,); see `titrant.estimators.weight`."""
    from titrant.compiled.weights import all_weights  # noqa: PLC0415  (numba)

    columns, w = Columns.of(rows), np.empty(len(rows.y))
    all_weights(
        columns.t,
        columns.tau,
        columns.q,
        columns.bounds,
        *smoothing(kernel, boundary, bandwidth(scale)),
        w,
    )
    return w


def _bounds(rows: Rows) -> Array:
    """Return the bounds of the dose as compiled loops take them."""
    if rows.lower is None and rows.upper is None:
        return frozen(np.empty((2, 0)))
    shared = all(b is None or b.strides[0] == 0 for b in (rows.lower, rows.upper))
    out = np.empty((2, 1 if shared else len(rows.y)))
    out[0] = -np.inf if rows.lower is None else rows.lower[: out.shape[1], 0]
    out[1] = np.inf if rows.upper is None else rows.upper[: out.shape[1], 0]
    return frozen(out)


def column(a: Array | float) -> Array:
    """Return a contiguous, read-only column: numba compiles anew for every other kind."""
    return frozen(np.ascontiguousarray(np.atleast_1d(a), dtype=np.float64))


def frozen(a: Array) -> Array:
    """Return a read-only view."""
    view = a.view()
    view.flags.writeable = False
    return view
