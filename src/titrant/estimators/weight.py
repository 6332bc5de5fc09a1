"""The one weight of the library: w = K*(u) / (|H|^{1/2} · q), shared by all kernel estimators.

K* is the product over doses of the kernel with its boundary correction, q the floored propensity.
A part of w may be fixed, at point masses of the dose and where the policy changes the logged dose:
w = fixed + share·K*(u)/(…), see `Rows.fixed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled import Loop, pays
from titrant.errors import InvalidArgument
from titrant.kernels import Boundary
from titrant.kernels.boundary import local_factor, local_kernel_slope
from titrant.kernels.polynomial import middle_polynomial, power_form

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Kernel, Scale

    Columns = tuple[Array, Array, Array, Array]
    Smoothing = tuple[float, Array, int, int, Array, Array]


def weight(rows: Rows, kernel: Kernel, boundary: Boundary, scale: Scale) -> Array:
    """Return w (n,) of each row: how much it tells about the policy's dose.

    Estimates, intervals and checks ask for the same weights in one pass: `rows.known` keeps them.
    """
    asked = kernel, boundary, scale
    if asked in rows.known:
        return rows.known[asked]
    fixed, share = rows.fixed, rows.share
    if fixed is not None and share is not None and not share.any():
        return frozen(fixed)  # a kernel decides about none of them
    if has_loop(kernel, rows):
        w = compiled_weight(rows, kernel, boundary, scale)
    else:
        near, v, values = rows.distances.reached(kernel, scale)
        ends = _ends_in_bandwidths(rows, boundary, scale)
        found = 1.0 / (scale.volume * rows.need("q", "weight")[near])
        for j in range(v.shape[1]):
            place = v[:, j], *(end[near, j] for end in ends)
            found *= values[:, j] * local_factor(kernel, boundary, *place)
        w = np.zeros(len(rows.t))
        w[near] = found
    if fixed is not None and share is not None:
        w = fixed + np.where(share > 0.0, share * w, 0.0)
    return rows.known.setdefault(asked, frozen(w))


def weight_slope(rows: Rows, kernel: Kernel, boundary: Boundary, scale: Scale) -> Array:
    """Return ∂w/∂τ (n, d), by the product rule over the d doses."""
    v = (rows.t - rows.aim) @ scale.inverse_root
    ends, d = _ends_in_bandwidths(rows, boundary, scale), v.shape[1]
    places = [(v[:, j], *(end[:, j] for end in ends)) for j in range(d)]
    pairs = [local_kernel_slope(kernel, boundary, *place) for place in places]
    factors = np.stack([value for value, _ in pairs])
    slopes = [
        slope * np.prod(np.delete(factors, j, axis=0), axis=0) for j, (_, slope) in enumerate(pairs)
    ]
    by_u = np.stack(slopes, axis=1) / (scale.volume * rows.need("q", "weight"))[:, None]
    slope = by_u @ scale.inverse_root
    if rows.share is not None:
        slope = np.where(rows.share[:, None] > 0.0, rows.share[:, None] * slope, 0.0)
    return np.asarray(slope)


def _ends_in_bandwidths(rows: Rows, boundary: Boundary, scale: Scale) -> tuple[Array, ...]:
    """Return the bounds around the kernel's dose in bandwidths, each (n, d), if there is one."""
    if rows.lower is None and rows.upper is None:
        return ()
    infinite = np.broadcast_to(np.inf, rows.t.shape)
    lower = -infinite if rows.lower is None else rows.lower
    upper = infinite if rows.upper is None else rows.upper
    if boundary is Boundary.NONE or not (np.isfinite(lower).any() or np.isfinite(upper).any()):
        return ()
    axes = scale.axes
    if axes is None:
        raise InvalidArgument(
            "A full bandwidth matrix cannot be corrected at bounds, because the kernel's axes are "
            "not the bounds'. Give one bandwidth a dose, or use `boundary=Boundary.NONE`."
        )
    return (lower - rows.aim) / axes, (upper - rows.aim) / axes


# The weights of many rows by compiled loops, where there are any.
#
# There are for one dose and a kernel that is a polynomial in the distance to its edge
# (`titrant.kernels.polynomial`): all built-in kernels but the Gaussian. Everything else, and few
# rows (`titrant.compiled.pays`), go through numpy.


def columns_of(rows: Rows) -> Columns:
    """Return t, τ, q (n,) and the bounds of rows of one dose as compiled loops take them.

    Nothing is copied that is contiguous already. Bounds are (2, n); (2, 1) where all rows share
    them, (2, 0) where there are none.
    """
    q = rows.need("q", "weight")
    return column(rows.t[:, 0]), column(rows.aim[:, 0]), column(q), _bounds(rows)


def has_loop(kernel: Kernel, rows: Rows) -> bool:
    """Whether compiled loops can do these rows, and should.

    Few rows at the end of a long log are done like those before them.
    """
    long = len(rows.y) > 0 and pays(Loop.WEIGHTS, rows.first_row + len(rows.y))
    return long and rows.t.shape[1] == 1 and power_form(kernel) is not None


def smoothing(kernel: Kernel, boundary: Boundary, h: float) -> Smoothing:
    """Return h, the kernel and its correction as compiled loops take them."""
    form = power_form(kernel)
    assert form is not None  # noqa: S101  (asked by has_loop)
    middle = middle_polynomial(kernel, boundary)
    return float(h), form.kappa, form.gamma, int(boundary), form.areas, middle


def bandwidth(scale: Scale) -> float:
    """Return h of a scale for one dose."""
    return 1.0 / float(scale.inverse_root[0, 0])


def compiled_weight(rows: Rows, kernel: Kernel, boundary: Boundary, scale: Scale) -> Array:
    """Return w (n,), as `weight` does in numpy."""
    from titrant.compiled.weights import all_weights  # noqa: PLC0415  (numba)

    w = np.empty(len(rows.y))
    all_weights(columns_of(rows), smoothing(kernel, boundary, bandwidth(scale)), w)
    return w


def _bounds(rows: Rows) -> Array:
    """Return the bounds of the dose as compiled loops take them."""
    if rows.lower is None and rows.upper is None:
        return frozen(np.empty((2, 0)))
    shared = all(b is None or b.strides[0] == 0 for b in (rows.lower, rows.upper))
    out = np.empty((2, min(1, len(rows.y)) if shared else len(rows.y)))
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
