"""Kernels near a bound: what each reproduces, how fast its bias falls, how it moves with τ."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate

import naive
from kernels.nodes import nodes
from titrant.kernels import KERNELS, Boundary, Epanechnikov, Gaussian, Kernel, Uniform
from titrant.kernels.boundary import local_factor, local_kernel_slope

ORACLE = 1e-9  # the 3 × 3 systems of the short interval have condition 1e4
QUADRATURE = 1e-9  # as above: rounding times the size of the boundary kernel's values
DIFFERENCE = 1e-6  # central differences, step 1e-5, of functions with third derivatives ≤ 1e4

each_kernel = pytest.mark.parametrize("kernel", [k() for k in KERNELS], ids=lambda k: str(k)[:-2])
# The loops of the oracle know the kernels whose formula they hold.
with_formula = pytest.mark.parametrize(
    "kernel", [k() for k in KERNELS if k.__name__ in naive.KERNELS], ids=lambda k: str(k)[:-2]
)
each_boundary = pytest.mark.parametrize("boundary", list(Boundary), ids=lambda b: b.name)
corrected = pytest.mark.parametrize(
    "boundary", [Boundary.MASS, Boundary.LINEAR, Boundary.QUADRATIC], ids=lambda b: b.name
)

# [L, U] around τ in bandwidths: interior, at a bound, near either, near both, one-sided.
INTERVALS = [
    (-math.inf, math.inf),
    (-7.0, 9.0),
    (0.0, 3.0),
    (-0.3, math.inf),
    (-math.inf, 0.0),
    (-2.0, 0.55),
    (-0.4, 0.7),
    (-0.9, 0.0),
]


def degree(boundary: Boundary) -> int | None:
    return None if boundary is Boundary.NONE else int(boundary)


def over(kernel, f, low, high):
    """∫ f over [low, high], panels ending at every corner; kernels are nil beyond ±12.

    f is the kernel times what is at most as bent as a polynomial of degree 20.
    """
    count = nodes(kernel, times=20)
    a, b = max(low, -12.0), min(high, 12.0)
    cuts = [a, *(k for k in range(-12, 13) if a < k < b), b]
    return sum(
        integrate.fixed_quad(f, left, right, n=count)[0] for left, right in itertools.pairwise(cuts)
    )


def local_kernel(kernel, boundary, v, low, high):
    """K*(v), the kernel times what corrects it."""
    return kernel(v) * local_factor(kernel, boundary, v, low, high)


def at(f, kernel, boundary, v, interval):
    low, high = interval
    v = np.atleast_1d(np.asarray(v, dtype=float))
    return f(kernel, boundary, v, np.full(v.shape, low), np.full(v.shape, high))


@with_formula
@each_boundary
def test_is_the_loop_of_the_oracle(kernel: Kernel, boundary: Boundary):
    rng = np.random.default_rng(1)
    low, high = np.repeat(np.array(INTERVALS), 5, axis=0).T
    v = rng.uniform(np.maximum(low, -1.2), np.minimum(high, 1.2))
    expected = [
        naive.local_kernel(type(kernel).__name__, degree(boundary), *row)
        for row in zip(v.tolist(), low.tolist(), high.tolist(), strict=True)
    ]
    actual = local_kernel(kernel, boundary, v, low, high)
    np.testing.assert_allclose(actual, expected, rtol=ORACLE, atol=ORACLE)


@each_kernel
@corrected
@pytest.mark.parametrize("interval", INTERVALS)
def test_reproduces_polynomials_of_its_degree(kernel, boundary, interval):
    # ∫K*(v)vʲdv = 1{j = 0} for j ≤ p: an estimate of a polynomial of degree p has no bias.
    for j in range(boundary + 1):
        moment = over(
            kernel, lambda v, j=j: at(local_kernel, kernel, boundary, v, interval) * v**j, *interval
        )
        assert moment == pytest.approx(float(j == 0), abs=QUADRATURE)


@each_kernel
@corrected
def test_reproduces_no_more_at_a_bound(kernel, boundary):
    # At τ = lo the first polynomial beyond its degree is missed by far: the test above can fail.
    j = boundary + 1
    missed = over(
        kernel, lambda v: at(local_kernel, kernel, boundary, v, (0, math.inf)) * v**j, 0, math.inf
    )
    assert abs(missed) > 0.01


@each_kernel
@pytest.mark.parametrize("boundary", [Boundary.NONE, Boundary.MASS, Boundary.LINEAR])
def test_is_the_kernel_itself_far_from_both_bounds(kernel, boundary):
    v = np.linspace(-1.5, 1.5, 61)
    for interval in [(-math.inf, math.inf), (-12, 12)]:
        value = at(local_kernel, kernel, boundary, v, interval)
        np.testing.assert_allclose(value, kernel(v), atol=1e-14)
        again, slope = at(local_kernel_slope, kernel, boundary, v, interval)
        np.testing.assert_array_equal(again, value)
        np.testing.assert_allclose(slope, -kernel.derivative(v), atol=1e-14)


@each_kernel
def test_quadratic_is_of_order_four_in_the_interior(kernel):
    whole = (-math.inf, math.inf)
    moments = [
        over(
            kernel,
            lambda v, j=j: at(local_kernel, kernel, Boundary.QUADRATIC, v, whole) * v**j,
            -12,
            12,
        )
        for j in range(5)
    ]
    assert moments[:4] == pytest.approx([1, 0, 0, 0], abs=QUADRATURE)
    assert moments[4] < -0.01


@each_kernel
@each_boundary
def test_mirror_image(kernel, boundary):
    # Swapping the bounds and the sign of v changes nothing; the slope turns around.
    v = np.array([-0.6, -0.1, 0.2, 0.7])
    value, slope = at(local_kernel_slope, kernel, boundary, v, (-0.6, 1.9))
    mirrored, turned = at(local_kernel_slope, kernel, boundary, -v, (-1.9, 0.6))
    np.testing.assert_allclose(value, mirrored, rtol=1e-12)
    np.testing.assert_allclose(slope, -turned, rtol=1e-11, atol=1e-12)


@each_kernel
@each_boundary
@pytest.mark.parametrize(
    ("low", "high"), [(-0.2, 5.0), (-4.0, 0.3), (-0.45, 0.65), (-0.2, math.inf), (-3.0, 4.0)]
)
def test_slope_is_the_finite_difference_in_tau(kernel, boundary, low, high):
    # With h = 1: moving τ by s moves v, low and high by −s.
    v, s = np.array([-0.15, -0.05, 0.12, 0.27]), 1e-5
    value, slope = at(local_kernel_slope, kernel, boundary, v, (low, high))
    up = at(local_kernel, kernel, boundary, v - s, (low - s, high - s))
    down = at(local_kernel, kernel, boundary, v + s, (low + s, high + s))
    np.testing.assert_array_equal(value, at(local_kernel, kernel, boundary, v, (low, high)))
    size = np.abs(slope).max() + 1
    np.testing.assert_allclose(slope, (up - down) / (2 * s), atol=DIFFERENCE * size)


def test_known_answer_epanechnikov_at_a_bound():
    # K = ¾(1−v²) on [0, 1]: a₀ = ½, a₁ = ¾(½ − ¼) = 3/16, a₂ = ¾(⅓ − ⅕) = 1/10.
    # Mass: K(½)/a₀ = (9/16)/(½) = 9/8.
    # Linear: (9/16)(1/10 − 3/32)/(1/20 − 9/256) = (9/16)(1/160)/(19/1280) = (9/16)(8/19) = 9/38.
    kernel, half = Epanechnikov(), 0.5
    assert at(local_kernel, kernel, Boundary.NONE, half, (0, 5))[0] == pytest.approx(9 / 16)
    assert at(local_kernel, kernel, Boundary.MASS, half, (0, 5))[0] == pytest.approx(9 / 8)
    assert at(local_kernel, kernel, Boundary.LINEAR, half, (0, 5))[0] == pytest.approx(9 / 38)


def test_known_answer_slope_of_the_mass_factor():
    # Spec: K/α with α′(τ) = (K(L) − K(U))/h. Uniform, L = −½, U = ∞: α = ¾, K(L) = ½, so
    # ∂(K/α)/∂τ = −Kα′/α² = −½·½/(9/16) = −4/9: moving inwards, the weight falls.
    _, slope = at(local_kernel_slope, Uniform(), Boundary.MASS, 0.25, (-0.5, math.inf))
    assert slope[0] == pytest.approx(-4 / 9)


@each_kernel
def test_bandwidth_far_wider_than_the_bounds(kernel):
    # h → ∞: K is flat between the bounds; on [0, ε] the linear kernel is (4 − 6v/ε)/ε.
    width = 1e-6
    v = np.linspace(0, width, 7)
    linear = at(local_kernel, kernel, Boundary.LINEAR, v, (0, width))
    np.testing.assert_allclose(linear * width, 4 - 6 * v / width, atol=1e-5)
    mass = at(local_kernel, kernel, Boundary.MASS, v, (0, width))
    np.testing.assert_allclose(mass * width, 1, atol=1e-5)


@each_kernel
@corrected
def test_bounds_that_stand_for_no_bound(kernel, boundary):
    # A table may say 1e308 where it means ∞: the same value and slope, no overflow, no nan.
    v = np.array([-0.2, 0.4])
    for infinite, huge in [((-0.3, math.inf), (-0.3, 1e308)), ((-math.inf, 0.5), (-1e200, 0.5))]:
        expected = at(local_kernel_slope, kernel, boundary, v, infinite)
        actual = at(local_kernel_slope, kernel, boundary, v, huge)
        np.testing.assert_allclose(actual, expected, rtol=1e-13)


BIAS_ORDERS = {Boundary.NONE: 0, Boundary.MASS: 1, Boundary.LINEAR: 2, Boundary.QUADRATIC: 3}


@each_kernel
@each_boundary
def test_order_of_the_bias_at_a_bound(kernel, boundary):
    # E[estimate] − m(τ) at τ = lo with m = eᵗ falls like h^(p+1); halving h divides it by 2^(p+1).
    def bias(h):
        smoothed = over(
            kernel,
            lambda v: at(local_kernel, kernel, boundary, v, (0, math.inf)) * np.exp(h * v),
            0,
            12,
        )
        return smoothed - 1.0

    order = math.log2(abs(bias(0.02) / bias(0.01)))
    assert order == pytest.approx(BIAS_ORDERS[boundary], abs=0.12)


@with_formula
def test_only_linear_and_quadratic_have_second_order_bias_where_it_matters(kernel):
    # Bias at t = lo, h = .2, of m = 5 + 3t: none loses about half of 5, mass is off by 3h·a₁/a₀.
    def estimate(boundary):
        return over(
            kernel,
            lambda v: at(local_kernel, kernel, boundary, v, (0, math.inf)) * (5 + 3 * 0.2 * v),
            0,
            12,
        )

    a1 = naive.moment(type(kernel).__name__, 1, 0.0, math.inf)
    assert estimate(Boundary.NONE) == pytest.approx(2.5 + 0.6 * a1)
    assert estimate(Boundary.MASS) == pytest.approx(5 + 0.6 * a1 / 0.5)
    assert estimate(Boundary.LINEAR) == pytest.approx(5)
    assert estimate(Boundary.QUADRATIC) == pytest.approx(5)


OUTSIDE = [0.0, 1e-9, 0.3, 0.9, 0.999999, 1.0, 1.5, 8.0, 45.0, math.inf]


@each_kernel
@corrected
def test_a_dose_outside_the_bounds_has_bounded_weights(kernel, boundary):
    # A policy may ask for a dose below lo (a search passes there). No polynomial is extrapolated:
    # the weight fades like the kernel of a dose at the bound, and is 0 where the kernel is.
    at_bound = np.abs(
        at(local_kernel, kernel, boundary, np.linspace(0, 1, 201), (0, math.inf))
    ).max()
    for low in OUTSIDE[:-1]:
        v = low + np.linspace(0, 1, 11)
        value, slope = at(local_kernel_slope, kernel, boundary, v, (low, math.inf))
        assert np.isfinite(value).all()
        assert np.isfinite(slope).all()
        assert (np.abs(value) <= at_bound * (1 + 1e-12)).all()
        assert not value[kernel(v) == 0].any()


@each_kernel
@corrected
def test_a_dose_outside_the_bounds_moves_smoothly(kernel, boundary):
    # Continuous as τ crosses the bound, and the slope is still that of the value.
    v, s = np.array([0.35, 0.62]), 1e-5
    crossing = at(local_kernel, kernel, boundary, v, (np.array([1e-12]), math.inf))
    np.testing.assert_allclose(crossing, at(local_kernel, kernel, boundary, v, (0.0, math.inf)))
    for low, high in [(0.2, math.inf), (0.2, 0.7), (-math.inf, -0.2)]:
        signed = v if low > 0 else -v
        _, slope = at(local_kernel_slope, kernel, boundary, signed, (low, high))
        up = at(local_kernel, kernel, boundary, signed - s, (low - s, high - s))
        down = at(local_kernel, kernel, boundary, signed + s, (low + s, high + s))
        size = np.abs(slope).max() + 1
        np.testing.assert_allclose(slope, (up - down) / (2 * s), atol=DIFFERENCE * size)


def test_rows_do_not_disturb_each_other():
    # Rows near and far from bounds share one call; each has the answer it would have alone.
    low, high = np.array(INTERVALS).T
    v = np.clip(np.linspace(-0.2, 0.2, len(low)), low, high)
    for kernel in (Epanechnikov(), Gaussian()):
        for boundary in Boundary:
            together = np.stack(local_kernel_slope(kernel, boundary, v, low, high))
            alone = np.stack(
                [
                    np.concatenate(
                        local_kernel_slope(
                            kernel, boundary, v[i : i + 1], low[i : i + 1], high[i : i + 1]
                        )
                    )
                    for i in range(len(v))
                ],
                axis=1,
            )
            np.testing.assert_allclose(together, alone, rtol=1e-14)
