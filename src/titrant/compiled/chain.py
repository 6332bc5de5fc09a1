"""From bins to sums at every bandwidth, and to sums of products of two bandwidths' weights.

From a bandwidth h to a wider one h' follows r' = (1 − ρ) + ρr with ρ = (h/h')^γ. All coefficients
are positive, so no digits are lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast

if TYPE_CHECKING:
    from titrant._types import Array


@compiled
def step(h: float, wider: float, gamma: int) -> tuple[float, float]:
    """Return 1 − ρ and ρ; the first as a product, which loses nothing where h is close to h'."""
    ratio, gap = h / wider, (wider - h) / wider
    return (gap * (1.0 + ratio), ratio * ratio) if gamma == 2 else (gap, ratio)  # noqa: PLR2004


@compiled
def chained(bins: Array, h: Array, gamma: int) -> Array:
    """Return Σ…rˢ over all rows in reach of each bandwidth from those of its bin, (m, c, s).

    With T(a, b) = Σ…r'ᵃrᵇ: T(a + 1, b) = (1 − ρ)·T(a, b) + ρ·T(a, b + 1).
    """
    m, columns, size = bins.shape
    sums, mixed = bins.copy(), np.empty(size)
    for j in range(1, m):
        rest, rho = step(h[j - 1], h[j], gamma)
        for c in range(columns):
            mixed[:] = sums[j - 1, c]
            sums[j, c, 0] += mixed[0]
            for a in range(1, size):
                for b in range(size - a):
                    mixed[b] = rest * mixed[b] + rho * mixed[b + 1]
                sums[j, c, a] += mixed[0]
    return sums


@compiled
def products(twice: Array, kappa: Array, h: Array, gamma: int) -> Array:
    """Return Σwⱼwₖ·(1, e, e²) (3, m, m) from sums of g²·(1, e, e²)·rˢ in reach (m, 3, 2p + 1)."""
    m, size = len(h), len(kappa)
    out, c = np.empty((3, m, m)), np.zeros((3, 3))
    for j in range(m):
        # Σ g²(1, e, e²)·wⱼ·rⁱ with the narrower one's r.
        for q in range(3):
            for i in range(size):
                c[q, i] = 0.0
                for s in range(size):
                    c[q, i] += kappa[s] * twice[j, q, s + i] / h[j]
        multiply(h[j], h[j:], kappa, gamma, c, out[0, j, j:], out[1, j, j:], out[2, j, j:])
        for q in range(3):
            for k in range(j):
                out[q, j, k] = out[q, k, j]
    return out


@fast
def multiply(
    narrow: float,
    h: Array,
    kappa: Array,
    gamma: int,
    c: Array,
    one: Array,
    two: Array,
    three: Array,
) -> None:
    """Set three sums at each of the wider bandwidths h (M,): c (3, 3) times the powers of r in wₖ.

    wₖ = Σκₛ(rest + ρr)ˢ/h, multiplied out.
    """
    k0, k1 = kappa[0], kappa[1] if len(kappa) > 1 else 0.0
    k2 = kappa[2] if len(kappa) > 2 else 0.0  # noqa: PLR2004
    for k in range(len(h)):
        rest, rho = step(narrow, h[k], gamma)
        w0 = (k0 + rest * (k1 + rest * k2)) / h[k]
        w1 = rho * (k1 + 2.0 * rest * k2) / h[k]
        w2 = rho * rho * k2 / h[k]
        one[k] = c[0, 0] * w0 + c[0, 1] * w1 + c[0, 2] * w2
        two[k] = c[1, 0] * w0 + c[1, 1] * w1 + c[1, 2] * w2
        three[k] = c[2, 0] * w0 + c[2, 1] * w1 + c[2, 2] * w2
