"""The path from bins against the path of all terms side by side, and where that loses digits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest

from compiled.rows import BOUNDS, FUSED_ESTIMATORS, FUSED_KERNELS, rows
from titrant.bandwidth import path_of
from titrant.bandwidth.binned import PathGrid, binned, has_bins
from titrant.compiled import FEWEST, Loop, path
from titrant.compiled import path as loops
from titrant.estimators import DoublyRobust, Problem, SelfNormalized
from titrant.kernels import Biweight, Boundary, Epanechnikov, Gaussian, Triangular, Uniform
from titrant.kernels.polynomial import power_form

SAME = 1e-12  # relative: the same sums in another order
ADVERSARIAL = 1e-10  # relative: rows at the edges, offsets of 1e8, weights over 12 decades

FACTORS = np.geomspace(0.05, 2.0, 9)


def problem(estimator, some, parts=1):
    blocks = [some.take(i) for i in np.array_split(np.arange(len(some.y)), parts)]

    def over_rows(statistic):
        return reduce(add, map(statistic, blocks))

    return Problem(estimator, len(some.y), some.t.std(axis=0), over_rows, lambda: some)


@pytest.fixture
def from_bins(monkeypatch):
    """The path of few rows, from bins as if they were many."""

    def path(task, factors=FACTORS, *, joint=True):
        with monkeypatch.context() as patched:
            patched.setitem(FEWEST, Loop.PATH, 1)
            return path_of(task, factors, joint=joint)

    return path


def assert_same(actual, expected, rtol=SAME):
    np.testing.assert_allclose(actual.values, expected.values, rtol=rtol)
    np.testing.assert_allclose(actual.se, expected.se, rtol=rtol)
    sizes = np.outer(expected.se, expected.se)
    assert (np.abs(actual.covariance - expected.covariance) <= rtol * sizes).all()
    np.testing.assert_allclose(actual.ess, expected.ess, rtol=rtol)
    np.testing.assert_array_equal(actual.count, expected.count)
    assert actual.n == expected.n
    assert actual.baseline_variance == pytest.approx(expected.baseline_variance, rel=rtol)


@pytest.mark.parametrize("kernel", FUSED_KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("bounds", BOUNDS)
def test_every_kernel(kernel, bounds, from_bins):
    task = problem(SelfNormalized(kernel=kernel), rows(600, bounds=bounds))
    # Bounds of each row make weights of both signs, which cancel a few digits.
    rtol = 1e-11 if bounds == "of each row" else SAME
    assert_same(from_bins(task), path_of(task, FACTORS), rtol)


@pytest.mark.parametrize("estimator", FUSED_ESTIMATORS, ids=repr)
@pytest.mark.parametrize("bounds", [None, "shared"])
@pytest.mark.parametrize("parts", [1, 3])
def test_every_estimator(estimator, bounds, parts, from_bins):
    task = problem(estimator, rows(600, bounds=bounds), parts)
    assert_same(from_bins(task), path_of(task, FACTORS))


@pytest.mark.parametrize("boundary", [Boundary.NONE, Boundary.MASS])
def test_other_corrections_at_a_bound(boundary, from_bins):
    task = problem(SelfNormalized(boundary=boundary), rows(600, bounds="shared"))
    assert_same(from_bins(task), path_of(task, FACTORS))


@pytest.mark.parametrize("bounds", BOUNDS)
def test_more_rows_than_a_chunk_and_a_piece(bounds, from_bins):
    some = rows(loops.CHUNK + 700, bounds=bounds)
    assert len(some.y) > 4 * path.PIECE
    task, factors = problem(DoublyRobust(), some), np.array([0.1, 0.4, 1.5])
    rtol = 1e-11 if bounds == "of each row" else SAME
    assert_same(from_bins(task, factors), path_of(task, factors), rtol)


def test_an_upper_bound_is_a_lower_one_in_the_mirror(from_bins):
    some = rows(600, bounds="shared")
    mirrored = replace(some, t=-some.t, tau=-some.tau, lower=-some.upper, upper=-some.lower)
    here, there = (from_bins(problem(SelfNormalized(), side)) for side in (some, mirrored))
    np.testing.assert_array_equal(here.values, there.values)
    np.testing.assert_array_equal(here.covariance, there.covariance)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_threads_change_no_bit(bounds):
    kernel, h = Epanechnikov(), np.geomspace(0.05, 0.5, 7)
    parts = [rows(500, bounds=bounds, seed=seed) for seed in range(6)]

    def sums(part):
        return binned(DoublyRobust(), PathGrid(kernel, h), part)

    alone = reduce(add, map(sums, parts)).finish()
    for threads in (1, 2):
        with ThreadPoolExecutor(threads) as pool:
            together = reduce(add, pool.map(sums, parts)).finish()
        for name in ("e", "w", "be", "bw", "ee", "ew", "ww", "count"):
            np.testing.assert_array_equal(getattr(together, name), getattr(alone, name))


def test_three_rows_by_hand(from_bins):
    # a = |t − τ| = 0, 1, 2, q = 1, y = 4, 8, 100. At h = 2: w = 3/8, 9/32, 0, Σwy/Σw = 40/7.
    # At h = 4: w = K/4 with K = 3/4, 45/64, 9/16: 48, 45, 36 in 1/256 each;
    # Σwy/Σw = (192 + 360 + 3600)/129 = 1384/43.
    some = replace(
        rows(3, tau=np.zeros(3)),
        t=np.array([[0.0], [1.0], [2.0]]),
        y=np.array([4.0, 8.0, 100.0]),
        q=np.ones(3),
    )
    task = problem(SelfNormalized(), some)
    path = from_bins(task, np.array([2.0, 4.0]) / task.spread[0])
    np.testing.assert_allclose(path.values, [40 / 7, 1384 / 43], rtol=1e-14)
    assert path.count.tolist() == [2, 3]


def test_the_variances_alone(from_bins):
    task = problem(SelfNormalized(), rows(600, bounds="shared"))
    both, alone = from_bins(task), from_bins(task, joint=False)
    np.testing.assert_array_equal(alone.se, both.se)
    np.testing.assert_array_equal(alone.values, both.values)
    off_diagonal = ~np.eye(len(FACTORS), dtype=bool)
    assert np.isnan(alone.covariance[off_diagonal]).all()
    plain = path_of(task, FACTORS, joint=False)
    np.testing.assert_array_equal(np.isnan(plain.covariance), off_diagonal)


def test_bandwidths_out_of_reach(from_bins):
    task = problem(SelfNormalized(), rows(600, tau=np.full(600, 1.5)))
    path, expected = from_bins(task), path_of(task, FACTORS)
    assert (expected.count == 0).any()
    np.testing.assert_array_equal(path.count, expected.count)
    np.testing.assert_allclose(path.values, expected.values, rtol=SAME)


def test_a_row_at_a_bandwidth_and_cells_with_many():
    # Rows exactly at bandwidths, bandwidths closer than the cells of the table, and far apart.
    for kernel in (Epanechnikov(), Uniform()):
        h = np.array([0.125, 0.1250001, 0.1250002, 0.25, 0.2501, 8.0])
        a = np.array([0.0, 0.125, 0.25, 0.2501, 0.1250001, 0.3, 9.0, 0.05])
        some = replace(rows(8, tau=np.zeros(8)), t=a[:, None])
        sums = binned(SelfNormalized(kernel=kernel), PathGrid(kernel, h), some)
        inside = a[:, None] < h if isinstance(kernel, Epanechnikov) else a[:, None] <= h
        np.testing.assert_array_equal(sums.finish().count, inside.sum(axis=0))


# ── the steps of the loops ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("gamma", [1, 2])
def test_sums_at_every_bandwidth_from_bins(gamma):
    # Five rows, each in the bin of the first bandwidth above its distance.
    h, a = np.array([0.5, 0.7, 1.3]), np.array([0.1, 0.4, 0.6, 0.9, 1.2])
    g = np.array([2.0, 1.0, 3.0, 0.5, 1.5])
    r = np.maximum(1 - (a[:, None] / h) ** gamma, 0.0)
    first = np.argmax(a[:, None] < h, axis=1)
    bins = np.zeros((3, 1, 5))
    for row, k in enumerate(first):
        bins[k, 0] += g[row] * r[row, k] ** np.arange(5)
    sums = path.chained(bins, h, gamma)[:, 0]
    inside = a[:, None] < h
    expected = [[(g * inside[:, j] * r[:, j] ** s).sum() for s in range(5)] for j in range(3)]
    np.testing.assert_allclose(sums, expected, rtol=1e-14)
    # Products of K = 2r + r² at two bandwidths.
    kappa, weights = np.array([0.0, 2.0, 1.0]), (2 * r + r * r) / h
    twice = np.stack([sums] * 3, axis=1)
    expected = (weights * g[:, None]).T @ weights
    for found in path.products(twice, kappa, h, gamma):
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_rows_in_the_order_of_their_first_bandwidth():
    ends, order = path.sort(np.array([2, 0, 3, 0, 2], dtype=np.uint32), 5)
    assert ends.tolist() == [2, 2, 4, 5, 5]
    assert order.tolist() == [1, 3, 0, 4, 2]


@pytest.mark.parametrize("kernel", FUSED_KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("degree", [0, 1])
def test_a_bound_out_of_reach_does_not_matter(kernel, degree):
    rng, form = np.random.default_rng(0), power_form(kernel)
    v, left, g = rng.uniform(-0.4, 0.4, 50), rng.uniform(0, 0.8, 50), rng.uniform(1, 2, 50)
    one, two = np.empty(50), np.empty(50)
    h, settings = 0.5, (form.kappa, form.gamma - 1.0, degree, form.areas)
    path.one_sided(v, left, g, h, settings, one)
    path.two_sided(v, left, np.full(50, 0.5), g, h, settings, two)
    np.testing.assert_allclose(one, two, rtol=SAME)


# ── adversarial rows ─────────────────────────────────────────────────────────────────────────────


def exact(kernel, a, q, y, h):
    """Value and SE of the self-normalized estimate in extended precision."""
    a, q, y = (np.asarray(x, dtype=np.longdouble) for x in (a, q, y))
    r = (h - a) * (h + a) / (np.longdouble(h) * h) if power(kernel) == 2 else (h - a) / h
    w = np.where(r > 0, r * r if isinstance(kernel, Biweight) else r, 0) / q
    value = (w * y).sum() / w.sum()
    return float(value), float(np.sqrt((w * w * (y - value) ** 2).sum()) / w.sum())


def power(kernel):
    return 1 if isinstance(kernel, Triangular) else 2


@pytest.mark.parametrize("kernel", [Epanechnikov(), Triangular(), Biweight()], ids=repr)
def test_rows_at_the_edges_and_weights_over_twelve_decades(kernel, from_bins):
    n, h = 600, np.geomspace(0.1, 1.0, 25)
    rng = np.random.default_rng(0)
    a = rng.choice(h, n) * (1 - 1e-9 * rng.uniform(0.1, 1, n))
    q = 10.0 ** rng.uniform(-6, 6, n)
    some = replace(rows(n, tau=np.zeros(n)), t=a[:, None], q=q)
    task = problem(SelfNormalized(kernel=kernel), some)
    path = from_bins(task, h / task.spread[0])
    used = path.bandwidths
    expected = np.array([exact(kernel, a, q, some.y, x) for x in used])
    np.testing.assert_allclose(path.values, expected[:, 0], rtol=ADVERSARIAL)
    np.testing.assert_allclose(path.se, expected[:, 1], rtol=ADVERSARIAL)


def exact_near(a, tau, q, y, h):
    """The same where the dose is bounded by 0 from below, with the linear boundary kernel."""
    a, tau, q, y, h = (np.asarray(x, dtype=np.longdouble) for x in (a, tau, q, y, h))
    left = np.minimum(tau / h, 1)
    a0 = 0.75 * (left - left**3 / 3) + 0.5
    a1 = 0.75 * (left**4 / 4 - left**2 / 2) + np.longdouble(3) / 16
    a2 = 0.75 * (left**3 / 3 - left**5 / 5) + np.longdouble(1) / 10
    k = np.where(np.abs(a) < h, 0.75 * (h - np.abs(a)) * (h + np.abs(a)) / h**2, 0)
    w = k * (a2 - a1 * a / h) / (a0 * a2 - a1 * a1) / q
    value = (w * y).sum() / w.sum()
    return float(value), float(np.sqrt((w * w * (y - value) ** 2).sum()) / w.sum())


def test_rows_near_a_bound_at_the_edges_and_over_twelve_decades(from_bins):
    n, h = 600, np.geomspace(0.1, 1.0, 25)
    rng = np.random.default_rng(3)
    tau = rng.uniform(0.0, 0.6, n)
    # At the kernel's edge where that is a dose, above the bound.
    a = rng.choice(h, n) * (1 - 1e-9 * rng.uniform(0.1, 1, n))
    q = 10.0 ** rng.uniform(-6, 6, n)
    some = rows(n, tau=tau, bounds="shared")
    some = replace(some, t=(tau + a)[:, None], q=q)
    a = (some.t - some.tau)[:, 0]  # as rounded
    task = problem(SelfNormalized(), some)
    path = from_bins(task, h / task.spread[0])
    expected = np.array([exact_near(a, tau, q, some.y, x) for x in path.bandwidths])
    np.testing.assert_allclose(path.values, expected[:, 0], rtol=ADVERSARIAL)
    np.testing.assert_allclose(path.se, expected[:, 1], rtol=ADVERSARIAL)


@pytest.mark.parametrize("bounds", [None, "shared"])
@pytest.mark.parametrize("estimator", [SelfNormalized(), DoublyRobust()], ids=repr)
def test_outcomes_far_from_zero(estimator, bounds, from_bins):
    some, names = rows(600, bounds=bounds), ("y", "center", "r_tau", "r_logged")
    far = replace(some, **{name: getattr(some, name) + 1e8 for name in names})
    back = replace(far, **{name: getattr(far, name) - 1e8 for name in names})
    shifted, plain = from_bins(problem(estimator, far)), path_of(problem(estimator, back), FACTORS)
    np.testing.assert_allclose(shifted.values - 1e8, plain.values, atol=1e8 * 1e-15 * 4)
    np.testing.assert_allclose(shifted.se, plain.se, rtol=ADVERSARIAL)


# ── what it costs ────────────────────────────────────────────────────────────────────────────────


def test_more_bandwidths_are_no_more_passes_and_enter_no_row_twice(monkeypatch, from_bins):
    calls, loop = [], loops.add_rows
    monkeypatch.setattr(loops, "add_rows", lambda *a: (calls.append(len(a[0][0])), loop(*a))[1])
    for count in (3, 60):
        calls.clear()
        path = from_bins(problem(SelfNormalized(), rows(600)), np.geomspace(0.05, 2, count))
        assert calls == [600]
    # Each row in reach of the widest bandwidth is in one bin.
    some = rows(600)
    grid = PathGrid(Epanechnikov(), path.bandwidths)
    sums = binned(SelfNormalized(), grid, some)
    assert sums.bins[:, -1].sum() == path.count[-1]


def test_kernels_without_bins_and_unordered_grids_go_term_by_term(monkeypatch):
    monkeypatch.setitem(FEWEST, Loop.PATH, 1)
    some = rows(300)
    ordered = np.array([0.3, 0.7])
    for estimator in (SelfNormalized(kernel=Gaussian()), SelfNormalized(boundary=Boundary(2))):
        assert not has_bins(problem(estimator, some), ordered)
    assert has_bins(problem(SelfNormalized(), some), ordered)
    back, forth = (path_of(problem(SelfNormalized(), some), ordered[::k]) for k in (-1, 1))
    np.testing.assert_allclose(back.values[::-1], forth.values, rtol=SAME)


@pytest.mark.parametrize("estimator", [SelfNormalized(), DoublyRobust()], ids=repr)
@pytest.mark.parametrize("bounds", BOUNDS)
def test_no_rows_add_nothing_to_bins(estimator, bounds):
    some = rows(600, bounds=bounds)
    grid = PathGrid(estimator.kernel, FACTORS)
    whole, none = binned(estimator, grid, some), binned(estimator, grid, some.take(np.arange(0)))
    for both in (whole + none, none + whole):
        np.testing.assert_array_equal(both.bins, whole.bins)
        np.testing.assert_array_equal(both.first, whole.first)
        np.testing.assert_array_equal(both.finish().e, whole.finish().e)
