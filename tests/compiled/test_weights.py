"""Weights by compiled loops against numpy's, and against extended precision at the edges."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest

from compiled.rows import BOUNDS, rows
from titrant.compiled import FEWEST, Loop
from titrant.compiled.weights import CHUNK
from titrant.estimators import ESTIMATORS, DoublyRobust, Question, SelfNormalized, SmoothedEstimator
from titrant.estimators.joint import joint_estimates, statistics_of
from titrant.estimators.weight import compiled_weight, has_loop, weight
from titrant.kernels import KERNELS, Biweight, Boundary, Epanechnikov, Gaussian, Scale, Triangular
from titrant.kernels.base import CompactKernel
from titrant.kernels.polynomial import power_form

SAME = 1e-12  # relative to the largest weight: the same formula in another order
SOLVE = 1e-10  # the same of a 3 × 3 system solved in another way
EDGE = 1e-10  # relative: rows within 1e-9 of the kernel's edge
H = 0.31

LOOPED = [kernel() for kernel in KERNELS if power_form(kernel()) is not None]
SMOOTHED = [e for e in ESTIMATORS if isinstance(e, SmoothedEstimator)]
each_kernel = pytest.mark.parametrize("kernel", LOOPED, ids=lambda k: type(k).__name__)
each_boundary = pytest.mark.parametrize("boundary", Boundary, ids=lambda b: b.name)
each_bounds = pytest.mark.parametrize("bounds", BOUNDS)
each_way = pytest.mark.parametrize("many", [1, 10**9], ids=["loops", "numpy"])


def question(estimator, h=H, policy=0):
    return Question(estimator, policy, Scale.of(h, 1))


def numpy_weight(some, *smoothing):
    """As `weight` computes those of few rows, whatever was asked of them before."""
    assert not has_loop(smoothing[0], some)
    return weight(replace(some), *smoothing)


def assert_same(some, kernel, boundary, h):
    expected = numpy_weight(some, kernel, boundary, Scale.of(h, 1))
    actual = compiled_weight(some, kernel, boundary, Scale.of(h, 1))
    tolerance = SOLVE if boundary is Boundary.QUADRATIC else SAME
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max())
    assert np.array_equal(actual != 0, expected != 0)


@each_kernel
@each_boundary
@each_bounds
def test_weights_are_numpys(kernel, boundary, bounds):
    assert_same(rows(2 * CHUNK + 100, bounds=bounds), kernel, boundary, H)


@each_boundary
@pytest.mark.parametrize("bounds", BOUNDS[1:])
def test_every_row_is_near_a_bound(boundary, bounds):
    assert_same(rows(CHUNK + 100, bounds=bounds), Epanechnikov(), boundary, 3.0)


def test_some_chunks_are_near_a_bound_and_others_are_not():
    some = rows(8 * CHUNK, bounds="shared")
    order = np.argsort(some.tau[:, 0])
    for index in (order, order[::-1]):
        assert_same(some.take(index), Epanechnikov(), Boundary.LINEAR, H)


@pytest.mark.parametrize("kernel", [Epanechnikov(), Triangular(), Biweight()], ids=repr)
def test_rows_at_the_kernels_edge(kernel):
    # All rows within 1e-9 of the edge: 1 − u² keeps 7 digits, (h − a)(h + a)/h² all of them.
    n, h = 800, 0.75
    rng = np.random.default_rng(2)
    t = h * (1 - 1e-9 * rng.uniform(0.1, 1, n)) * rng.choice([-1, 1], n)
    some = replace(rows(n, tau=np.zeros(n)), t=t[:, None])
    w = compiled_weight(some, kernel, Boundary.LINEAR, Scale.of(h, 1))
    a = np.abs(t).astype(np.longdouble)
    r = (h - a) * (1 if isinstance(kernel, Triangular) else h + a)
    shape = np.asarray((r * r if isinstance(kernel, Biweight) else r) / some.q, dtype=np.float64)
    np.testing.assert_allclose(w / w.sum(), shape / shape.sum(), rtol=EDGE)


def test_three_rows_worked_out():
    # τ = 0, h = 2; t = 0, 1, 3: K = 3/4, 9/16, 0; q = 1, ½, 1: w = 3/8, 9/16, 0.
    some = replace(
        rows(3, tau=np.zeros(3)), t=np.array([[0.0], [1.0], [3.0]]), q=np.array([1.0, 0.5, 1.0])
    )
    for compute in (numpy_weight, compiled_weight):
        w = compute(some, Epanechnikov(), Boundary.LINEAR, Scale.of(2.0, 1))
        assert w.tolist() == pytest.approx([3 / 8, 9 / 16, 0.0], rel=1e-15)


# ── when loops are used, and that it does not matter ─────────────────────────────────────────────


@dataclass(frozen=True)
class Cubic(CompactKernel):
    """A user's kernel that no loop knows."""

    coefficients = (1.0, 0.0, -2.0, 1.0)


@dataclass(frozen=True)
class Own(CompactKernel):
    """A user's kernel with a value of its own."""

    coefficients = (0.75, 0.0, -0.75)

    def __call__(self, u):
        return np.exp(-np.abs(u))


def test_kernels_without_a_loop_go_through_numpy(monkeypatch):
    monkeypatch.setitem(FEWEST, Loop.WEIGHTS, 1)
    assert all(has_loop(kernel, rows()) for kernel in LOOPED)
    assert not any(has_loop(kernel, rows()) for kernel in (Gaussian(), Cubic(), Own()))


@pytest.mark.parametrize("kernel", [Epanechnikov(), Gaussian(), Own()], ids=repr)
@pytest.mark.parametrize("estimator", [SelfNormalized, DoublyRobust])
def test_many_rows_give_what_few_do(kernel, estimator, monkeypatch):
    asked = [question(estimator(kernel=kernel)), question(estimator(kernel=kernel), h=0.7)]
    few = joint_estimates(asked, statistics_of(asked, [rows(600)]))
    monkeypatch.setitem(FEWEST, Loop.WEIGHTS, 1)
    many = joint_estimates(asked, statistics_of(asked, [rows(600)]))
    np.testing.assert_allclose(many.values, few.values, rtol=SAME)
    np.testing.assert_allclose(many.covariance, few.covariance, rtol=SAME, atol=0)


def test_a_row_that_is_not_in_reach_costs_nothing():
    # The kernel is asked about rows within h of the policy's dose alone.
    seen = []

    @dataclass(frozen=True)
    class Watched(CompactKernel):
        coefficients = (0.75, 0.0, -0.75)

        def __call__(self, u):
            seen.append(len(u))
            return CompactKernel.__call__(self, u)

    some = rows(tau=np.full(700, 0.5))
    numpy_weight(some, Watched(), Boundary.NONE, Scale.of(0.1, 1))
    assert seen == [np.count_nonzero(np.abs(some.t[:, 0] - 0.5) <= 0.1)]


# ── weights that are asked for again ─────────────────────────────────────────────────────────────


def test_a_weight_is_computed_once():
    some = rows()
    first = weight(some, Epanechnikov(), Boundary.LINEAR, Scale.of(H, 1))
    again = weight(some, Epanechnikov(), Boundary.LINEAR, Scale.of(H, 1))
    assert again is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1.0  # what others were given too cannot be changed by one of them


@pytest.mark.parametrize(
    "other",
    [
        (Biweight(), Boundary.LINEAR, Scale.of(H, 1)),
        (Epanechnikov(), Boundary.QUADRATIC, Scale.of(H, 1)),
        (Epanechnikov(), Boundary.LINEAR, Scale.of(np.nextafter(H, 1), 1)),
    ],
    ids=["kernel", "boundary", "bandwidth"],
)
def test_another_smoothing_has_weights_of_its_own(other):
    some = rows(bounds="shared")
    one = weight(some, Epanechnikov(), Boundary.LINEAR, Scale.of(H, 1))
    assert not np.array_equal(weight(some, *other), one)


def test_rows_that_are_changed_or_taken_know_no_weights():
    some, smoothing = rows(), (Epanechnikov(), Boundary.LINEAR, Scale.of(H, 1))
    before = weight(some, *smoothing)
    moved = replace(some, tau=some.tau + 0.1)
    assert not np.array_equal(weight(moved, *smoothing), before)
    np.testing.assert_array_equal(weight(moved, *smoothing), numpy_weight(moved, *smoothing))
    index = np.arange(0, 700, 3)
    np.testing.assert_array_equal(weight(some.take(index), *smoothing), before[index])


@each_way
@each_boundary
@each_bounds
def test_no_rows_have_no_weights(boundary, bounds, many, monkeypatch):
    monkeypatch.setitem(FEWEST, Loop.WEIGHTS, many)
    # A side of the policy's dose in a late block of a long log may be empty.
    none = replace(rows(bounds=bounds).take(np.arange(0)), first_row=100_000)
    for kernel in KERNELS:
        assert weight(none, kernel(), boundary, Scale.of(H, 1)).shape == (0,)


@each_way
@pytest.mark.parametrize("estimator", SMOOTHED, ids=repr)
def test_no_rows_add_nothing(estimator, many, monkeypatch):
    monkeypatch.setitem(FEWEST, Loop.WEIGHTS, many)
    asked, some = [question(estimator)] * 2, rows(bounds="shared")
    none = replace(some.take(np.arange(0)), first_row=100_000)
    whole, empty = statistics_of(asked, [some]), statistics_of(asked, [none])
    for both in (whole + empty, empty + whole):
        np.testing.assert_array_equal(both.moments.mean, whole.moments.mean)
        np.testing.assert_array_equal(both.moments.comoment, whole.moments.comoment)
        np.testing.assert_array_equal(both.tally.largest, whole.tally.largest)
        np.testing.assert_array_equal(both.tally.total, whole.tally.total)


def test_threads_change_no_bit():
    parts = [rows(800, seed=seed) for seed in range(4)]
    smoothing = Epanechnikov(), Boundary.LINEAR, Scale.of(H, 1)
    alone = [compiled_weight(part, *smoothing) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda part: compiled_weight(part, *smoothing), parts))
    for a, b in zip(alone, together, strict=True):
        assert np.array_equal(a, b)
