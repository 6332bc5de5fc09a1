"""Each kernel of the list against its definition: quadrature, finite differences, scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from kernels.nodes import nodes
from naive import KERNELS as FORMULAS
from naive import moment as quadrature
from titrant.kernels import (
    KERNELS,
    Biweight,
    Epanechnikov,
    Gaussian,
    Kernel,
    Triangular,
    Uniform,
)

ROUNDING = 1e-14  # a handful of operations on numbers of order one
QUADRATURE = 1e-12  # Gauss–Legendre with as many nodes as the kernel's degree asks for
DIFFERENCE = 1e-8  # central differences with step 1e-6: rounding 1e-16/1e-6, curvature 1e-12
GRID = 1e-4  # a maximum over 8,001 points is off by half a step times the slope there

EDGE = 8.0  # beyond it every kernel of the list has less mass than 2e-15

# A symmetric density on [−1, 1] of the form c(1 − u²)ᵃ is a beta density, stretched.
REFERENCES = {
    Epanechnikov: stats.beta(2, 2, loc=-1, scale=2),
    Gaussian: stats.norm(),
    Triangular: stats.triang(0.5, loc=-1, scale=2),
    Uniform: stats.uniform(-1, 2),
    Biweight: stats.beta(3, 3, loc=-1, scale=2),
}

# The table of the specification: κ₂, R, M_K, L_K.
TABLE = {
    Epanechnikov: (1 / 5, 3 / 5, 3 / 4, 3 / 2),
    Gaussian: (1, 1 / (2 * math.sqrt(math.pi)), 0.3989422804014327, 0.24197072451914337),
    Triangular: (1 / 6, 2 / 3, 1, 1),
    Uniform: (1 / 3, 1 / 2, 1 / 2, math.inf),
    Biweight: (1 / 7, 5 / 7, 15 / 16, 5 * math.sqrt(3) / 6),
}

each_kernel = pytest.mark.parametrize("kernel", [k() for k in KERNELS], ids=lambda k: str(k)[:-2])
# A kernel of the list obeys the laws; one that somebody else has computed too is held to that.
with_reference = pytest.mark.parametrize("kernel", [k() for k in TABLE], ids=lambda k: str(k)[:-2])


def integral(f, count):
    """∫ f over the line, in panels that end at the corners of every kernel."""
    panels = np.arange(-EDGE, EDGE)
    return sum(integrate.fixed_quad(f, a, a + 1, n=count)[0] for a in panels)


def smooth_points(kernel, step=1e-3):
    """Points of [−3, 3] without the corners 0, ±1 that a kernel may have."""
    u = np.linspace(-3, 3, 1_201)
    corners = np.array([-1.0, 0.0, 1.0])
    away = np.abs(u[:, None] - corners).min(axis=1) > step
    return u[away] if np.isfinite(kernel.support) else u


@each_kernel
def test_is_a_symmetric_density(kernel: Kernel):
    u = np.linspace(-3, 3, 601)
    assert (kernel(u) >= 0).all()
    np.testing.assert_array_equal(kernel(u), kernel(-u))
    assert integral(kernel, nodes(kernel)) == pytest.approx(1, abs=QUADRATURE)


@each_kernel
def test_constants_are_the_integrals_they_name(kernel: Kernel):
    second = integral(lambda u: u**2 * kernel(u), nodes(kernel))
    squared = integral(lambda u: kernel(u) ** 2, nodes(kernel, power=2))
    assert kernel.second_moment == pytest.approx(second, rel=1e-11)
    assert kernel.roughness == pytest.approx(squared, rel=QUADRATURE)
    u = np.linspace(-2, 2, 8_001)
    assert kernel.bound == pytest.approx(kernel(u).max(), abs=ROUNDING)
    # K rises nowhere faster than L_K, and somewhere as fast; a jump has no such constant.
    steepest = np.abs(np.diff(kernel(u))).max() / (u[1] - u[0])
    if math.isinf(kernel.lipschitz):
        assert steepest > 100
    else:
        assert steepest <= kernel.lipschitz * (1 + 1e-9)
        assert steepest == pytest.approx(kernel.lipschitz, abs=10 * GRID)


@with_reference
def test_constants_are_those_of_the_specification(kernel: Kernel):
    stated = kernel.second_moment, kernel.roughness, kernel.bound, kernel.lipschitz
    assert stated == pytest.approx(TABLE[type(kernel)], rel=ROUNDING)


@each_kernel
def test_vanishes_outside_its_support_and_not_inside(kernel: Kernel):
    if math.isinf(kernel.support):
        assert kernel(np.array([10.0]))[0] > 0
        return
    inside, outside = kernel.support * (1 - 1e-6), kernel.support * (1 + 1e-9)
    assert (kernel(np.array([inside, -inside])) > 0).all()
    assert not kernel(np.array([outside, -outside, 1e300, np.inf, -np.inf])).any()
    assert not kernel.derivative(np.array([outside, -outside, 1e300, np.inf, -np.inf])).any()


@with_reference
def test_value_is_the_formula(kernel: Kernel):
    u = np.linspace(-2.5, 2.5, 401)
    expected = [FORMULAS[type(kernel).__name__](v) for v in u.tolist()]
    np.testing.assert_allclose(kernel(u), expected, atol=ROUNDING)


@each_kernel
def test_derivative_is_that_of_the_value(kernel: Kernel):
    u, step = smooth_points(kernel), 1e-6
    slope = (kernel(u + step) - kernel(u - step)) / (2 * step)
    np.testing.assert_allclose(kernel.derivative(u), slope, atol=DIFFERENCE)


@each_kernel
def test_derivative_is_odd_and_zero_at_zero(kernel: Kernel):
    u = np.linspace(-0.99, 0.99, 199)
    np.testing.assert_allclose(kernel.derivative(u), -kernel.derivative(-u), atol=ROUNDING)
    assert kernel.derivative(np.zeros(1))[0] == 0


@with_reference
def test_cdf_is_that_of_scipy(kernel: Kernel):
    u = np.array([-np.inf, -1e300, -40, -3, -1, -0.7, -0.2, 0, 0.3, 0.999, 1, 2.5, 40, np.inf])
    reference = REFERENCES[type(kernel)]
    np.testing.assert_allclose(kernel.cdf(u), reference.cdf(u), atol=1e-15 * 10)
    np.testing.assert_allclose(kernel(u[3:-2]), reference.pdf(u[3:-2]), atol=ROUNDING)
    assert kernel.second_moment == pytest.approx(reference.var(), rel=ROUNDING)


@each_kernel
def test_derivative_of_the_cdf_is_the_value(kernel: Kernel):
    u, step = smooth_points(kernel), 1e-6
    slope = (kernel.cdf(u + step) - kernel.cdf(u - step)) / (2 * step)
    np.testing.assert_allclose(slope, kernel(u), atol=1e-9)


INTERVALS = [
    (-math.inf, math.inf),
    (0.0, math.inf),
    (-math.inf, -0.4),
    (-0.25, 0.8),
    (0.1, 0.3),
    (-3.0, 0.5),
    (-1.0, 1.0),
    (0.5, 0.5),
]


@with_reference
@pytest.mark.parametrize("j", range(5))
def test_moments_over_an_interval_are_the_integrals(kernel: Kernel, j: int):
    low, high = np.array(INTERVALS).T
    expected = [quadrature(type(kernel).__name__, j, a, b) for a, b in INTERVALS]
    np.testing.assert_allclose(kernel.moment(j, low, high), expected, atol=QUADRATURE)


@each_kernel
def test_moments_over_an_interval_are_those_of_scipy(kernel: Kernel):
    # An adaptive rule knows nothing of panels and corners: a check on the oracle itself.
    for j in range(5):
        expected, _ = integrate.quad(lambda u, j=j: u**j * kernel(u), -0.6, 0.9, points=[0.0])
        actual = kernel.moment(j, np.array([-0.6]), np.array([0.9]))
        assert actual[0] == pytest.approx(expected, abs=QUADRATURE)


@each_kernel
def test_moments_add_over_adjacent_intervals(kernel: Kernel):
    a, b, c = (np.array([x]) for x in (-0.9, 0.35, 1.7))
    for j in range(5):
        parts = kernel.moment(j, a, b) + kernel.moment(j, b, c)
        np.testing.assert_allclose(parts, kernel.moment(j, a, c), atol=ROUNDING)


@each_kernel
def test_keeps_the_shape_of_its_argument(kernel: Kernel):
    u = np.linspace(-2, 2, 24).reshape(2, 3, 4)
    for f in (kernel, kernel.derivative, kernel.cdf):
        assert f(u).shape == u.shape
        np.testing.assert_array_equal(f(u).ravel(), f(u.ravel()))


def test_triangular_is_a_difference_of_convex_functions():
    # K(u) = max(−1, u) − 2 max(0, u) + max(1, u): what a policy search by linear programs rests on.
    u = np.linspace(-3, 3, 601)
    pieces = np.maximum(-1, u) - 2 * np.maximum(0, u) + np.maximum(1, u)
    np.testing.assert_allclose(Triangular()(u), pieces, atol=ROUNDING)


def test_kernels_are_values():
    assert Epanechnikov() == Epanechnikov()
    assert Epanechnikov() != Biweight()
    assert repr(Gaussian()) == "Gaussian()"
