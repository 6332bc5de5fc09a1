"""The paper's sums as loops over rows: the oracle of every estimator, written to be read.

Nothing here comes from `titrant` and nothing is clever. A kernel is a formula of one number, its
moments over an interval are sums over quadrature nodes, and a standard error is the textbook sum
of squared influences rather than a gradient times a covariance.

A row's doses `tau` and `t` and its bounds are sequences of d numbers. A bandwidth `h` is a number,
d numbers, or a d × d matrix H in squared dose units. A boundary `degree` is that of the polynomial
which the kernel reproduces between the bounds: None for no correction at all.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np

INFINITY = math.inf

KERNELS = {
    "Epanechnikov": lambda u: 0.75 * (1 - u * u) if abs(u) <= 1 else 0.0,
    "Gaussian": lambda u: math.exp(-u * u / 2) / math.sqrt(2 * math.pi),
    "Triangular": lambda u: 1 - abs(u) if abs(u) <= 1 else 0.0,
    "Uniform": lambda u: 0.5 if abs(u) <= 1 else 0.0,
    "Biweight": lambda u: 15 / 16 * (1 - u * u) ** 2 if abs(u) <= 1 else 0.0,
}

# ── kernels ──────────────────────────────────────────────────────────────────────────────────────


@cache
def moment(kernel, j, low, high):
    """∫ vʲK(v) dv over [low, high]: Gauss–Legendre on panels that end at the corners of K."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    reach = 12.0 if kernel == "Gaussian" else 1.0  # φ(12) < 1e-31
    a, b = max(low, -reach), min(high, reach)
    cuts = [a, *(k for k in range(-12, 13) if a < k < b), b] if a < b else []
    total = 0.0
    for left, right in itertools.pairwise(cuts):
        half = (right - left) / 2
        for node, w in zip(nodes.tolist(), weights.tolist(), strict=True):
            v = (left + right) / 2 + half * node
            total += half * w * v**j * KERNELS[kernel](v)
    return total


def local_kernel(kernel, degree, v, low, high):
    """K(v) times the polynomial that makes it reproduce those of `degree` over [low, high]."""
    value = KERNELS[kernel](v)
    if degree is None:
        return value
    a = [moment(kernel, j, low, high) for j in range(5)]
    if degree == 0:
        return value / a[0]
    if degree == 1:
        return value * (a[2] - a[1] * v) / (a[0] * a[2] - a[1] ** 2)
    # Cramer's rule for the three equations of degree 2: the cofactors of the first row.
    c = (a[2] * a[4] - a[3] ** 2, a[2] * a[3] - a[1] * a[4], a[1] * a[3] - a[2] ** 2)
    return value * (c[0] + c[1] * v + c[2] * v * v) / (a[0] * c[0] + a[1] * c[1] + a[2] * c[2])


def inverse_root(H):
    """H^{−1/2} by the iteration of Denman and Beavers."""
    root, inverse = np.array(H, dtype=float), np.eye(len(H))
    for _ in range(60):
        root, inverse = (
            (root + np.linalg.inv(inverse)) / 2,
            (inverse + np.linalg.inv(root)) / 2,
        )
    return inverse


def weight(kernel, degree, h, *, tau, t, q=1.0, lower=None, upper=None):
    """One row's weight: a product of kernels, over the volume of the bandwidth and q."""
    d = len(tau)
    if np.ndim(h) == 2:  # a matrix turns the doses, so it knows no bounds
        rotated = inverse_root(h) @ (np.asarray(t) - np.asarray(tau))
        product, volume = 1.0, math.sqrt(np.linalg.det(h))
        for v in rotated.tolist():
            product *= local_kernel(kernel, degree, v, -INFINITY, INFINITY)
        return product / (volume * q)
    each = [h] * d if np.ndim(h) == 0 else list(h)
    product = 1.0
    for j in range(d):
        low = -INFINITY if lower is None else (lower[j] - tau[j]) / each[j]
        high = INFINITY if upper is None else (upper[j] - tau[j]) / each[j]
        v = (t[j] - tau[j]) / each[j]
        product *= local_kernel(kernel, degree, v, low, high) / each[j]
    return product / q


def bin_weight(tau, t, edges, probability):
    """1/P(bin) when both doses lie in one bin (low, high] between inner edges, else 0."""
    cuts = [-INFINITY, *edges, INFINITY]
    for low, high in itertools.pairwise(cuts):
        if low < tau <= high:
            return 1 / probability(low, high) if low < t <= high else 0.0
    raise AssertionError


# ── estimators: each returns (value, standard error) ─────────────────────────────────────────────


def mean_and_error(z):
    """The mean of z, and √Σ(z − mean)²/n."""
    n = len(z)
    mean = sum(z) / n
    return mean, math.sqrt(sum((zi - mean) ** 2 for zi in z)) / n


def ipw(w, y):
    """Σw·y/n."""
    return mean_and_error([wi * yi for wi, yi in zip(w, y, strict=True)])


def self_normalized(w, y):
    """Σw·y/Σw, and √Σw²(y − v)²/Σw."""
    total = sum(w)
    value = sum(wi * yi for wi, yi in zip(w, y, strict=True)) / total
    squares = sum(wi**2 * (yi - value) ** 2 for wi, yi in zip(w, y, strict=True))
    return value, math.sqrt(squares) / abs(total)


def models_share(values):
    """(K − 1)/K · Σ(Vₖ − V̄)²: what K models add to a variance, all rows judged by each in turn."""
    folds = len(values)
    mean = sum(values) / folds
    return (folds - 1) / folds * sum((v - mean) ** 2 for v in values)


def direct_method(r_tau):
    """Σr̂(τ, x)/n."""
    return mean_and_error(r_tau)


def doubly_robust(w, y, r_tau, r_logged):
    """Σ(r̂(τ, x) + w(y − r̂(t, x)))/n."""
    rows = zip(w, y, r_tau, r_logged, strict=True)
    return mean_and_error([ri + wi * (yi - si) for wi, yi, ri, si in rows])


def doubly_robust_self_normalized(w, y, r_tau, r_logged):
    """Σr̂(τ, x)/n + Σw·e/Σw; the influence of a row is r̂ − mean r̂ + n·w(e − ē)/Σw."""
    n, total = len(w), sum(w)
    e = [yi - si for yi, si in zip(y, r_logged, strict=True)]
    base = sum(r_tau) / n
    correction = sum(wi * ei for wi, ei in zip(w, e, strict=True)) / total
    influence = [
        ri - base + n * wi * (ei - correction) / total
        for ri, wi, ei in zip(r_tau, w, e, strict=True)
    ]
    return base + correction, math.sqrt(sum(f * f for f in influence)) / n


def hidden_cause(alpha, e, gamma):
    """The largest Σα·λ·e over 1/Γ ≤ λ ≤ Γ with Σ|α|λ = Σ|α|, by filling up from the worst row.

    Every λ starts at 1/Γ. What is left of Σ|α| goes to the rows whose residual, with the sign of
    their weight, is largest, until it is used up.
    """
    rows = sorted(
        ((ei if ai >= 0 else -ei, abs(ai)) for ai, ei in zip(alpha, e, strict=True)),
        reverse=True,
    )
    left = sum(size for _, size in rows) * (1 - 1 / gamma)
    total = 0.0
    for value, size in rows:
        more = min(left, size * (gamma - 1 / gamma))
        left -= more
        total += value * (size / gamma + more)
    return total
