"""Weights as densities over the dose: their integrals in one, two and three dimensions.

With q = 1 the weight is a density in t around τ. Integrating over a grid of doses t shows at once
the kernel, the bandwidth's volume and the boundary correction.
"""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import linalg

from kernels.nodes import nodes
from titrant.estimators import Rows
from titrant.estimators.weight import weight
from titrant.kernels import KERNELS, Boundary, Epanechnikov, Gaussian, Scale

QUADRATURE = 1e-9  # Gauss–Legendre over panels that end at corners; weights up to 1e3
TRAPEZOID = 1e-6  # a smooth density on a grid of a third of its width: e^(−2π²·3²)

each_kernel = pytest.mark.parametrize("kernel", [k() for k in KERNELS], ids=lambda k: str(k)[:-2])
corrected = pytest.mark.parametrize(
    "boundary", [Boundary.MASS, Boundary.LINEAR, Boundary.QUADRATIC], ids=lambda b: b.name
)


def panels(low, high, corners, count):
    """Nodes and weights of Gauss–Legendre on [low, high], cut at the corners within."""
    x, w = np.polynomial.legendre.leggauss(count)
    cuts = [low, *sorted(c for c in corners if low < c < high), high]
    spans = list(pairwise(cuts))
    points = np.concatenate([(a + b) / 2 + (b - a) / 2 * x for a, b in spans])
    return points, np.concatenate([(b - a) / 2 * w for a, b in spans])


def tensor(axes):
    """The grid (n, d) and its weights (n,) from the nodes and weights of each axis."""
    points = np.array(list(product(*(p for p, _ in axes))))
    return points, np.prod(list(product(*(w for _, w in axes))), axis=1)


def density(t, tau, kernel, boundary, scale, bounds=None):  # noqa: PLR0917
    """w (n,) of doses t (n, d) around one τ (d,), with q = 1."""
    n, d = t.shape
    lower, upper = (None, None) if bounds is None else (np.tile(b, (n, 1)) for b in bounds)
    ones = np.ones(n)
    policy = np.tile(np.asarray(tau, dtype=float), (n, 1))
    assert policy.shape == (n, d)
    rows = Rows(tau=policy, t=t, y=ones, q=ones, lower=lower, upper=upper)
    return weight(rows, kernel, boundary, scale)


def axis(kernel, tau, h, low=-math.inf, high=math.inf, *, count):
    """Nodes for one dose, `count` between two corners of the kernel."""
    reach = 1.0 if math.isfinite(kernel.support) else 9.0
    steps = np.arange(-reach, reach + 1) if reach > 1 else np.array([-1.0, 0.0, 1.0])
    corners = (tau + h * steps).tolist()
    return panels(max(low, corners[0]), min(high, corners[-1]), corners, count)


# Three Gaussian doses would be (18 × 8)³ nodes; their trapezoidal sum is below.
SPACES = [
    (kernel(), d) for kernel in KERNELS for d in (1, 2, 3) if d < 3 or math.isfinite(kernel.support)
]


@pytest.mark.parametrize(("kernel", "d"), SPACES, ids=str)
def test_product_kernels_integrate_to_one(kernel, d):
    # ∫w dt = 1, ∫w(t − τ)dt = 0, ∫w(t − τ)(t − τ)ᵀdt = κ₂·diag(h²)
    tau, h = np.array([0.3, -2.0, 11.0])[:d], np.array([0.2, 1.7, 0.6])[:d]
    count = nodes(kernel, times=2, otherwise=8)
    t, dt = tensor([axis(kernel, *th, count=count) for th in zip(tau, h, strict=True)])
    w = density(t, tau, kernel, Boundary.LINEAR, Scale.of(h, d)) * dt
    assert w.sum() == pytest.approx(1, abs=QUADRATURE)
    np.testing.assert_allclose(w @ (t - tau), 0, atol=QUADRATURE)
    second = (t - tau).T @ (w[:, None] * (t - tau))
    np.testing.assert_allclose(second, kernel.second_moment * np.diag(h**2), atol=QUADRATURE)


MATRICES = {
    1: [[0.3]],
    2: [[0.5, 0.2], [0.2, 0.3]],
    3: [[0.5, 0.2, -0.1], [0.2, 0.6, 0.15], [-0.1, 0.15, 0.4]],
}


@pytest.mark.parametrize("d", [1, 2, 3])
def test_bandwidth_matrices_integrate_to_one(d):
    # The same three integrals over a plain grid of doses: κ₂·H comes out, turned axes and all.
    H = np.array(MATRICES[d])
    # In units of the narrowest direction the grid's step is a third, its reach six widest.
    narrow, wide = np.sqrt(np.linalg.eigvalsh(H)[[0, -1]])
    step = narrow / (3 if d < 3 else 1.4)
    reach = 6.5 * wide if d < 3 else 5.5 * wide
    tau = np.array([0.3, -2.0, 11.0])[:d]
    ticks = np.arange(-reach, reach + step, step)
    t = np.stack(np.meshgrid(*(tau_j + ticks for tau_j in tau), indexing="ij"), -1).reshape(-1, d)
    w = density(t, tau, Gaussian(), Boundary.LINEAR, Scale.of(H, d)) * step**d
    assert w.sum() == pytest.approx(1, abs=TRAPEZOID)
    np.testing.assert_allclose(w @ (t - tau), 0, atol=TRAPEZOID)
    np.testing.assert_allclose((t - tau).T @ (w[:, None] * (t - tau)), H, atol=10 * TRAPEZOID)


@each_kernel
@pytest.mark.parametrize("d", [2, 3])
def test_bandwidth_matrices_turn_the_kernel(kernel, d):
    # In u = H^{−1/2}(t − τ) the weight is ∏K(uⱼ)/|H|^{1/2}, with the symmetric root.
    H, tau = np.array(MATRICES[d]), np.array([0.3, -2.0, 11.0])[:d]
    u = np.random.default_rng(d).uniform(-1.1, 1.1, size=(200, d))
    w = density(tau + u @ linalg.sqrtm(H), tau, kernel, Boundary.NONE, Scale.of(H, d))
    expected = np.prod(kernel(u), axis=1) / math.sqrt(np.linalg.det(H))
    np.testing.assert_allclose(w, expected, rtol=1e-6, atol=1e-12)


@each_kernel
@corrected
@pytest.mark.parametrize("tau", [0.0, 0.1, 0.5, 0.93, 1.0])
@pytest.mark.parametrize("h", [0.2, 0.9, 30.0])
def test_bounded_doses_in_one_dimension(kernel, boundary, tau, h):
    # ∫w(t)·tʲ dt over [0, 1] is τʲ for every j up to the degree of the correction.
    t, dt = axis(kernel, tau, h, 0.0, 1.0, count=nodes(kernel, otherwise=16))
    bounds = np.array([[0.0], [1.0]])
    w = density(t[:, None], [tau], kernel, boundary, Scale.of(h, 1), bounds) * dt
    for j in range(boundary + 1):
        assert w @ t**j == pytest.approx(tau**j, abs=QUADRATURE * 100)
    # without the correction the mass beyond the bounds is missing
    raw = density(t[:, None], [tau], kernel, Boundary.NONE, Scale.of(h, 1), bounds) @ dt
    inside = kernel.cdf(np.array((1 - tau) / h)) - kernel.cdf(np.array(-tau / h))
    assert raw == pytest.approx(inside, abs=QUADRATURE)


@corrected
@pytest.mark.parametrize("tau", [(0.0, 1.0), (0.05, 0.5), (0.9, 0.2)])
def test_bounded_doses_in_two_dimensions(boundary, tau):
    # A product of corrections reproduces products: E.g. t₁ᵃt₂ᵇ for a, b up to the degree.
    kernel, h, bounds = Epanechnikov(), [0.3, 0.5], np.array([[0.0, -0.2], [1.0, 1.0]])
    count = nodes(kernel)
    t, dt = tensor([axis(kernel, tau[j], h[j], *bounds[:, j], count=count) for j in range(2)])
    w = density(t, tau, kernel, boundary, Scale.of(h, 2), bounds) * dt
    for a, b in product(range(boundary + 1), repeat=2):
        expected = tau[0] ** a * tau[1] ** b
        assert w @ (t[:, 0] ** a * t[:, 1] ** b) == pytest.approx(expected, abs=QUADRATURE)


def test_bounded_doses_in_three_dimensions():
    kernel, h, tau = Epanechnikov(), [0.3, 0.5, 0.4], [0.0, 1.0, 0.1]
    count = nodes(kernel, times=2)
    t, dt = tensor([axis(kernel, tau[j], h[j], 0.0, 1.0, count=count) for j in range(3)])
    bounds = np.array([[0.0] * 3, [1.0] * 3])
    w = density(t, tau, kernel, Boundary.LINEAR, Scale.of(h, 3), bounds) * dt
    assert w.sum() == pytest.approx(1, abs=QUADRATURE)
    np.testing.assert_allclose(w @ t, tau, atol=QUADRATURE)


@each_kernel
@pytest.mark.parametrize("d", [1, 2])
def test_roughness_of_the_product(kernel, d):
    # ∫w² dt = Rᵈ/∏h: the variance of an estimate, with the d-dimensional constant.
    h = np.array([0.2, 1.7])[:d]
    count = nodes(kernel, power=2, times=0, otherwise=12)
    t, dt = tensor([axis(kernel, 0.0, h_j, count=count) for h_j in h])
    w = density(t, np.zeros(d), kernel, Boundary.NONE, Scale.of(h, d))
    assert w**2 @ dt == pytest.approx(kernel.roughness**d / h.prod(), rel=1e-6)
