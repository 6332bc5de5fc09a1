"""The one weight of the library: w = K*(u) / (|H|^{1/2} · q), shared by all kernel estimators.

K* is the product over doses of the kernel with its boundary correction, q the floored propensity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import InvalidArgument
from titrant.estimators.fused_weight import fused_weight, has_loop
from titrant.kernels import Boundary
from titrant.kernels.boundary import local_kernel, local_kernel_slope

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Kernel, Scale


def weight(rows: Rows, kernel: Kernel, boundary: Boundary, scale: Scale) -> Array:
    """Return w (n,) of each row: how much it tells about the policy's dose."""
    if has_loop(kernel, rows):
        return fused_weight(rows, kernel, boundary, scale)
    v, low, high = _in_bandwidths(rows, boundary, scale)
    factors = [
        local_kernel(kernel, boundary, v[:, j], low[:, j], high[:, j]) for j in range(v.shape[1])
    ]
    return np.asarray(np.prod(factors, axis=0) / (scale.volume * rows.need("q", "weight")))


def weight_slope(rows: Rows, kernel: Kernel, boundary: Boundary, scale: Scale) -> Array:
    """Return ∂w/∂τ (n, d), by the product rule over the d doses."""
    v, low, high = _in_bandwidths(rows, boundary, scale)
    d = v.shape[1]
    pairs = [local_kernel_slope(kernel, boundary, v[:, j], low[:, j], high[:, j]) for j in range(d)]
    factors = np.stack([value for value, _ in pairs])
    slopes = [
        slope * np.prod(np.delete(factors, j, axis=0), axis=0) for j, (_, slope) in enumerate(pairs)
    ]
    by_u = np.stack(slopes, axis=1) / (scale.volume * rows.need("q", "weight"))[:, None]
    return np.asarray(by_u @ scale.inverse_root)


def _in_bandwidths(rows: Rows, boundary: Boundary, scale: Scale) -> tuple[Array, Array, Array]:
    """Return v = H^{−1/2}(t − τ) and the bounds around τ in the same units, each (n, d)."""
    v = (rows.t - rows.tau) @ scale.inverse_root
    infinite = np.broadcast_to(np.inf, v.shape)
    lower = -infinite if rows.lower is None else rows.lower
    upper = infinite if rows.upper is None else rows.upper
    if boundary is Boundary.NONE or not (np.isfinite(lower).any() or np.isfinite(upper).any()):
        return v, -infinite, infinite
    axes = scale.axes
    if axes is None:
        raise InvalidArgument(
            "A full bandwidth matrix cannot be corrected at bounds, because the kernel's axes are "
            "not the bounds'. Give one bandwidth a dose, or use `boundary=Boundary.NONE`."
        )
    return v, (lower - rows.tau) / axes, (upper - rows.tau) / axes
