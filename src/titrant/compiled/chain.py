"""From bins to sums at every bandwidth, and to sums of products of two bandwidths' weights.

From a bandwidth h to a wider one h' follows r' = (1 − ρ) + ρr with ρ = (h/h')^γ. All coefficients
are positive, so no digits are lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled

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
    """Return Σwⱼwₗ·(1, e, e²) (3, m, m) from sums of g²·(1, e, e²)·rˢ in reach (m, 3, 2p + 1)."""
    m, p = len(h), len(kappa) - 1
    out, wide, both = np.empty((3, m, m)), np.empty(p + 1), np.empty(2 * p + 1)
    for j in range(m):
        for k in range(j, m):
            rest, rho = step(h[j], h[k], gamma)
            # K at the wider bandwidth as a polynomial in the narrower one's r, by Horner's rule.
            wide[:] = 0.0
            for power in range(p, -1, -1):
                for s in range(p, 0, -1):
                    wide[s] = wide[s] * rest + wide[s - 1] * rho
                wide[0] = wide[0] * rest + kappa[power]
            both[:] = 0.0
            for s in range(p + 1):
                for i in range(p + 1):
                    both[s + i] += kappa[s] * wide[i] / (h[j] * h[k])
            for c in range(3):
                total = 0.0
                for s in range(2 * p + 1):
                    total += both[s] * twice[j, c, s]
                out[c, j, k] = out[c, k, j] = total
    return out
