"""The compiled loops of a policy search.

A compact kernel comes in as the coefficients of its polynomial in |u| and an estimator as its
residuals, weights and table of baselines, so that one loop serves them all.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Sums may be reordered and fused, but a nan stays a nan.
FAST = {"reassoc", "nsz", "contract", "arcp"}


@njit(cache=True, nogil=True)
def two_loop(g, s, y, kept):  # noqa: ANN001, ANN201  (compiled)
    """Return H·g (m, P) by the two-loop recursion (Nocedal & Wright, algorithm 7.4)."""
    m, p = g.shape
    out = g.copy()
    alpha = np.empty(s.shape[1])
    for j in range(m):
        q = out[j]
        k = kept[j]
        for i in range(k - 1, -1, -1):
            rho = 1.0 / np.dot(s[j, i], y[j, i])
            alpha[i] = rho * np.dot(s[j, i], q)
            for l in range(p):  # noqa: E741
                q[l] -= alpha[i] * y[j, i, l]
        if k > 0:
            newest = k - 1
            scale = np.dot(s[j, newest], y[j, newest]) / np.dot(y[j, newest], y[j, newest])
            for l in range(p):  # noqa: E741
                q[l] *= scale
        for i in range(k):
            rho = 1.0 / np.dot(s[j, i], y[j, i])
            beta = rho * np.dot(y[j, i], q)
            for l in range(p):  # noqa: E741
                q[l] += (alpha[i] - beta) * s[j, i, l]
    return out


@njit(cache=True, nogil=True, inline="always")
def _horner(c, a):  # noqa: ANN001, ANN202
    total = 0.0
    for k in range(len(c) - 1, -1, -1):
        total = total * a + c[k]
    return total


@njit(cache=True, nogil=True, inline="always")
def _area(c, j, u):  # noqa: ANN001, ANN202
    """Return ∫₀ᵘ vʲK(v) dv of a compact kernel."""
    a = min(abs(u), 1.0)
    total = 0.0
    for k in range(len(c) - 1, -1, -1):
        total = total * a + c[k] / (j + k + 1)
    value = total * a ** (j + 1)
    return -value if (u < 0.0 and j % 2 == 0) else value


@njit(cache=True, nogil=True, inline="always")
def _kernel(c, u):  # noqa: ANN001, ANN202
    a = abs(u)
    return _horner(c, a) if a <= 1.0 else 0.0


@njit(cache=True, nogil=True, inline="always")
def _slope(c, u):  # noqa: ANN001, ANN202
    a = abs(u)
    if a > 1.0 or u == 0.0:
        return 0.0
    total = 0.0
    for k in range(len(c) - 1, 0, -1):
        total = total * a + k * c[k]
    return total if u > 0.0 else -total


@njit(cache=True, nogil=True)
def _local(c, degree, v, low, high):  # noqa: ANN001, ANN202
    """Return K*(v) and h·∂K*/∂τ of the boundary kernel of degree −1, 0 or 1 (see kernels)."""
    value, slope = _kernel(c, v), _slope(c, v)
    if degree < 0 or (low <= -1.0 and high >= 1.0):
        return value, -slope
    a0 = _area(c, 0, high) - _area(c, 0, low)
    kl, kh = _kernel(c, low), _kernel(c, high)
    d0 = kl - kh
    if degree == 0:
        return value / a0, -slope / a0 - value * d0 / a0**2
    lo, hi = max(low, -1.0), min(high, 1.0)
    a1 = _area(c, 1, high) - _area(c, 1, low)
    a2 = _area(c, 2, high) - _area(c, 2, low)
    d1, d2 = lo * kl - hi * kh, lo * lo * kl - hi * hi * kh
    det = a0 * a2 - a1 * a1
    ddet = d0 * a2 + a0 * d2 - 2.0 * a1 * d1
    c0, c1 = a2 / det, -a1 / det
    dc0, dc1 = (d2 - c0 * ddet) / det, (-d1 - c1 * ddet) / det
    p = c0 + c1 * v
    return value * p, value * (dc0 + dc1 * v - c1) - slope * p


@njit(cache=True, nogil=True, fastmath=FAST)
def fused_sums(  # noqa: ANN201
    params,  # noqa: ANN001  (m, P)
    phi,  # noqa: ANN001  (n, P), τ = φ'β before clipping
    t,  # noqa: ANN001  (n,)
    e,  # noqa: ANN001  (n,), residuals
    g,  # noqa: ANN001  (n,), 1/(h·q)
    h,  # noqa: ANN001
    c,  # noqa: ANN001  kernel coefficients
    degree,  # noqa: ANN001  of the boundary kernel
    lower,  # noqa: ANN001  (n,) bounds of the dose
    upper,  # noqa: ANN001
    low,  # noqa: ANN001  the policy's own limits
    high,  # noqa: ANN001
    table,  # noqa: ANN001  (n, G) baselines, or (0, 0)
    grid_low,  # noqa: ANN001
    grid_step,  # noqa: ANN001
    second,  # noqa: ANN001  whether second moments are wanted
):
    """Return Σz, Σ∂z, Σzz', Σz∂z' of the terms (b, w·e, w) for m affine candidates."""
    n, width = phi.shape
    m = len(params)
    z = np.zeros((m, 3))
    dz = np.zeros((m, 3, width))
    zz = np.zeros((m, 3, 3))
    zdz = np.zeros((m, 3, 3, width))
    cells = table.shape[1] - 1
    row = np.empty(3)
    slopes = np.empty(3)
    for i in range(n):
        for j in range(m):
            tau = 0.0
            for l in range(width):  # noqa: E741
                tau += phi[i, l] * params[j, l]
            inside = low < tau < high
            tau = min(max(tau, low), high)
            b, db = 0.0, 0.0
            if cells > 0:
                place = min(max((tau - grid_low) / grid_step, 0.0), float(cells))
                cell = min(int(place), cells - 1)
                db = (table[i, cell + 1] - table[i, cell]) / grid_step
                b = table[i, cell] + (place - cell) * db * grid_step
            v = (t[i] - tau) / h
            w, dw = 0.0, 0.0
            if abs(v) <= 1.0:
                w, dw = _local(c, degree, v, (lower[i] - tau) / h, (upper[i] - tau) / h)
                w *= g[i]
                dw *= g[i] / h
            row[0], row[1], row[2] = b, w * e[i], w
            slopes[0], slopes[1], slopes[2] = db, dw * e[i], dw
            for a in range(3):
                z[j, a] += row[a]
            if second:
                for a in range(3):
                    for q in range(3):
                        zz[j, a, q] += row[a] * row[q]
            if not inside or (db == 0.0 and dw == 0.0):
                continue
            for a in range(3):
                if slopes[a] != 0.0:
                    for l in range(width):  # noqa: E741
                        dz[j, a, l] += slopes[a] * phi[i, l]
            if second:
                for a in range(3):
                    for q in range(3):
                        factor = row[a] * slopes[q]
                        for l in range(width):  # noqa: E741
                            zdz[j, a, q, l] += factor * phi[i, l]
    return z, dz, zz, zdz
