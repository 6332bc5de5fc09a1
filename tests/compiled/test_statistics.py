"""Fused statistics against numpy's, and against extended precision where numpy loses digits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest

from compiled.rows import BOUNDS, FUSED_ESTIMATORS, FUSED_KERNELS, rows
from titrant.compiled import statistics as loops
from titrant.estimators import IPW, DoublyRobust, Question, SelfNormalized, Tally
from titrant.estimators import joint as fused_module
from titrant.estimators import weight as fused_weight_module
from titrant.estimators.joint import (
    KEPT,
    Statistics,
    fused_statistics,
    fusible,
    joint_estimates,
    rows_of_chunk,
    statistics_of,
)
from titrant.estimators.weight import fused_weight, weight
from titrant.kernels import KERNELS, Biweight, Boundary, Epanechnikov, Gaussian, Scale, Triangular
from titrant.kernels.base import CompactKernel
from titrant.kernels.polynomial import power_form

SAME = 1e-12  # relative: the same sums in another order
ADVERSARIAL = 1e-10  # relative: rows at the kernel's edge, offsets of 1e8, weights over 12 decades
SOLVE = 1e-10  # relative to the largest weight: a 3 × 3 system solved in another way

H = 0.31

each_kernel = pytest.mark.parametrize("kernel", FUSED_KERNELS, ids=lambda k: type(k).__name__)
each_boundary = pytest.mark.parametrize("boundary", Boundary, ids=lambda b: b.name)
each_bounds = pytest.mark.parametrize("bounds", BOUNDS)


def question(estimator, h=H, policy=0):
    return Question(estimator, policy, Scale.of(h, 1))


def numpy_statistics(questions, some):
    """As `statistics_of` computes few rows."""
    assert not fusible(questions, some)
    return statistics_of(questions, some)


def assert_same(questions, some, *, rtol=SAME, numpy=None):
    fused = Statistics(*fused_statistics(questions, some))
    expected = numpy_statistics(questions, some) if numpy is None else numpy
    assert fused.moments.n == expected.moments.n
    np.testing.assert_allclose(fused.moments.mean, expected.moments.mean, rtol=rtol, atol=rtol)
    sizes = np.sqrt(np.diagonal(expected.moments.comoment))
    difference = np.abs(fused.moments.comoment - expected.moments.comoment)
    assert (difference <= rtol * np.maximum(np.outer(sizes, sizes), rtol)).all()
    for field in ("total", "absolute", "squares", "fourths"):
        actual, known = getattr(fused.tally, field), getattr(expected.tally, field)
        np.testing.assert_allclose(actual, known, rtol=rtol, err_msg=field)
    np.testing.assert_array_equal(fused.tally.count, expected.tally.count)
    np.testing.assert_allclose(
        fused.tally.largest,
        expected.tally.largest,
        rtol=rtol,
        atol=rtol * fused.tally.largest[0, 0],
    )
    a, b = joint_estimates(questions, fused), joint_estimates(questions, expected)
    np.testing.assert_allclose(a.values, b.values, rtol=rtol)
    np.testing.assert_allclose(a.se, b.se, rtol=rtol)


# ── ordinary rows ────────────────────────────────────────────────────────────────────────────────


@each_kernel
@each_boundary
@each_bounds
def test_weights_are_numpys(kernel, boundary, bounds):
    some = rows(bounds=bounds)
    expected = weight(some, kernel, boundary, Scale.of(H, 1))
    actual = fused_weight(some, kernel, boundary, Scale.of(H, 1))
    tolerance = SOLVE if boundary is Boundary.QUADRATIC else SAME
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max())
    assert np.array_equal(actual != 0, expected != 0)


@pytest.mark.parametrize("estimator", FUSED_ESTIMATORS, ids=repr)
@pytest.mark.parametrize("bounds", [None, "shared"])
def test_one_question(estimator, bounds):
    assert_same([question(estimator)], [rows(bounds=bounds)])


@each_kernel
def test_one_question_by_every_kernel(kernel):
    assert_same([question(SelfNormalized(kernel=kernel))], [rows(600)])


@pytest.mark.parametrize("boundary", [Boundary.MASS, Boundary.LINEAR])
def test_bounds_of_each_row(boundary):
    asked = [question(DoublyRobust(boundary=boundary))]
    assert_same(asked, [rows(bounds="of each row")], rtol=1e-11)  # weights of both signs cancel


@pytest.mark.parametrize("bounds", BOUNDS[1:])
@pytest.mark.parametrize("boundary", [Boundary.MASS, Boundary.LINEAR])
def test_every_row_is_near_a_bound(boundary, bounds):
    # Rows near a bound wait until there are enough of them: here they have to be added thrice.
    some = rows(2 * loops.WAITING + 100, bounds=bounds)
    for estimator in (SelfNormalized(boundary=boundary), DoublyRobust(boundary=boundary)):
        assert_same([question(estimator, h=3.0)], [some], rtol=1e-11)  # weights of both signs


def test_some_chunks_are_near_a_bound_and_others_are_not():
    some = rows(8 * loops.CHUNK, bounds="shared")
    order = np.argsort(some.tau[:, 0])
    for column in (order, order[::-1]):
        parts = {
            name: np.ascontiguousarray(getattr(some, name)[column])
            for name in ("tau", "t", "y", "x", "q", "r_logged", "r_tau")
        }
        assert_same([question(DoublyRobust())], [replace(some, **parts)])


def test_several_questions_about_two_policies():
    first = rows(1300, bounds="shared")
    other = replace(first, tau=np.clip(first.tau + 0.1, 0, 1))
    asked = [
        question(SelfNormalized()),
        question(DoublyRobust(), policy=1),
        question(IPW(kernel=Biweight()), h=0.7),
    ]
    assert_same(asked, [first, other])


def test_few_rows_and_none_in_reach():
    assert_same([question(SelfNormalized())], [rows(3)])
    far = rows(20, tau=np.full(20, 9.0))
    moments, tally = fused_statistics([question(SelfNormalized())], [far])
    assert tally.count[0] == 0
    assert not tally.largest.any()
    assert np.isnan(
        joint_estimates([question(SelfNormalized())], Statistics(moments, tally)).values
    )


def test_three_rows_worked_out():
    # τ = 0, h = 2; t = 0, 1, 3: K = 3/4, 9/16, 0; q = 1, ½, 1: w = 3/8, 9/16, 0. y = 4, 8, 100:
    # Σwy/Σw = (3/2 + 9/2)/(15/16) = 32/5; Σw² = 9/64 + 81/256 = 117/256.
    some = replace(
        rows(3, tau=np.zeros(3)),
        t=np.array([[0.0], [1.0], [3.0]]),
        y=np.array([4.0, 8.0, 100.0]),
        q=np.array([1.0, 0.5, 1.0]),
    )
    asked = [question(SelfNormalized(), h=2.0)]
    moments, tally = fused_statistics(asked, [some])
    joint = joint_estimates(asked, Statistics(moments, tally))
    assert joint.values[0] == pytest.approx(32 / 5, rel=1e-15)
    assert tally.squares[0] == pytest.approx(117 / 256, rel=1e-15)
    assert tally.largest[0].tolist() == pytest.approx([9 / 16, 3 / 8, 0.0])


def test_the_largest_weights_of_many():
    # Rising weights fill the pool of candidates again and again.
    n = 4000
    some = replace(rows(n, tau=np.zeros(n)), t=np.zeros((n, 1)), q=1.0 / np.arange(1.0, n + 1))
    for asked in ([question(SelfNormalized())], [question(SelfNormalized())] * 2):
        _, tally = fused_statistics(asked, [some])
        expected = Tally.of(SelfNormalized().weight(some, Scale.of(H, 1))[:, None]).largest
        assert expected.shape == (1, KEPT)
        np.testing.assert_allclose(tally.largest[:1], expected, rtol=SAME)


def test_equal_weights_fill_the_pool_too():
    n = 3000
    some = replace(rows(n, tau=np.zeros(n)), t=np.zeros((n, 1)), q=np.full(n, 0.5))
    _, tally = fused_statistics([question(SelfNormalized())], [some])
    assert len(set(tally.largest[0].tolist())) == 1


# ── adversarial rows ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "estimator", [SelfNormalized(), IPW(centered=True), DoublyRobust()], ids=repr
)
def test_outcomes_far_from_zero(estimator):
    near = rows(900)
    far = replace(
        near,
        y=near.y + 1e8,
        center=near.center + 1e8,
        r_tau=near.r_tau + 1e8,
        r_logged=near.r_logged + 1e8,
    )
    # What the offset rounded off the outcomes themselves is taken as given.
    back = replace(
        far,
        y=far.y - 1e8,
        center=far.center - 1e8,
        r_tau=far.r_tau - 1e8,
        r_logged=far.r_logged - 1e8,
    )
    asked = [question(estimator)]
    shifted = joint_estimates(asked, Statistics(*fused_statistics(asked, [far])))
    plain = joint_estimates(asked, numpy_statistics(asked, [back]))
    np.testing.assert_allclose(shifted.values - 1e8, plain.values, atol=1e8 * 1e-15 * 4)
    np.testing.assert_allclose(shifted.se, plain.se, rtol=ADVERSARIAL)


def test_outcomes_far_from_zero_near_a_bound():
    # All weights are almost equal, so that the moments of w·y are small beside its mean.
    n = loops.WAITING + 900
    tau = np.full(n, 0.5)
    some = replace(rows(n, bounds="shared", tau=tau), q=np.ones(n))
    far = replace(some, t=0.5 + 1e-3 * some.t, y=some.y + 1e8)
    asked = [question(IPW(centered=False), h=2.0)]
    fused = joint_estimates(asked, Statistics(*fused_statistics(asked, [far])))
    w = weight(far, Epanechnikov(), Boundary.LINEAR, Scale.of(2.0, 1)).astype(np.longdouble)
    z = w * far.y.astype(np.longdouble)
    assert fused.values[0] == pytest.approx(float(z.mean()), rel=SAME)
    assert fused.se[0] == pytest.approx(float(z.std() / np.sqrt(n)), rel=ADVERSARIAL)


def test_weights_over_twelve_decades():
    some = rows(900)
    spread = 10.0 ** np.random.default_rng(1).uniform(-6, 6, 900)
    assert_same([question(SelfNormalized())], [replace(some, q=spread)], rtol=ADVERSARIAL)
    rising = replace(some, q=np.sort(spread))  # the running mean is never the mean
    assert_same([question(DoublyRobust())], [rising], rtol=ADVERSARIAL)


@pytest.mark.parametrize("kernel", [Epanechnikov(), Triangular(), Biweight()], ids=repr)
def test_rows_at_the_kernels_edge(kernel):
    # All rows within 1e-9 of the edge: 1 − u² keeps 7 digits, (h − a)(h + a)/h² all of them.
    n, h = 800, 0.75
    rng = np.random.default_rng(2)
    t = h * (1 - 1e-9 * rng.uniform(0.1, 1, n)) * rng.choice([-1, 1], n)
    some = replace(rows(n, tau=np.zeros(n)), t=t[:, None])
    asked = [question(SelfNormalized(kernel=kernel), h=h)]
    joint = joint_estimates(asked, Statistics(*fused_statistics(asked, [some])))
    u, y = np.abs(t.astype(np.longdouble)) / np.longdouble(h), some.y.astype(np.longdouble)
    r = 1 - (u if isinstance(kernel, Triangular) else u * u)
    w = (r * r if isinstance(kernel, Biweight) else r) / some.q
    value = (w * y).sum() / w.sum()
    se = np.sqrt((w * w * (y - value) ** 2).sum()) / w.sum()
    assert joint.values[0] == pytest.approx(float(value), rel=ADVERSARIAL)
    assert joint.se[0] == pytest.approx(float(se), rel=ADVERSARIAL)
    assert joint.tally.count[0] == n


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


def test_kernels_without_a_loop_go_through_numpy():
    # Of the built-in kernels all but one have loops; a list of none would test nothing.
    assert {type(k) for k in FUSED_KERNELS} >= {Epanechnikov, Triangular, Biweight}
    assert len(FUSED_KERNELS) < len(KERNELS)
    assert [power_form(k) for k in (Gaussian(), Cubic(), Own())] == [None] * 3


@pytest.mark.parametrize("kernel", [Epanechnikov(), Gaussian(), Own()], ids=repr)
def test_many_rows_give_what_few_do(kernel, monkeypatch):
    some, asked = rows(600), [question(SelfNormalized(kernel=kernel))]
    few = joint_estimates(asked, statistics_of(asked, [some]))
    monkeypatch.setattr(fused_weight_module, "MANY", 1)
    many = joint_estimates(asked, statistics_of(asked, [some]))
    assert fusible(asked, [some]) == isinstance(kernel, Epanechnikov)
    np.testing.assert_allclose(many.values, few.values, rtol=SAME)
    np.testing.assert_allclose(many.se, few.se, rtol=SAME)
    np.testing.assert_allclose(
        weight(some, kernel, Boundary.LINEAR, Scale.of(H, 1)).sum(), few.tally.total[0], rtol=SAME
    )


@pytest.mark.parametrize("many", [1, 10**9], ids=["loops", "numpy"])
@each_kernel
@each_boundary
@each_bounds
def test_no_rows_have_no_weights(kernel, boundary, bounds, many, monkeypatch):
    monkeypatch.setattr(fused_weight_module, "MANY", many)
    # A side of the policy's dose in a late block of a long log may be empty.
    none = replace(rows(bounds=bounds).take(np.arange(0)), first_row=100_000)
    assert weight(none, kernel, boundary, Scale.of(H, 1)).shape == (0,)
    assert fused_weight(none, kernel, boundary, Scale.of(H, 1)).shape == (0,)


@pytest.mark.parametrize("many", [1, 10**9], ids=["loops", "numpy"])
@pytest.mark.parametrize("estimator", FUSED_ESTIMATORS, ids=repr)
@pytest.mark.parametrize("questions", [1, 2])
@each_bounds
def test_no_rows_add_nothing(estimator, questions, bounds, many, monkeypatch):
    monkeypatch.setattr(fused_weight_module, "MANY", many)
    asked, some = [question(estimator)] * questions, rows(bounds=bounds)
    none = replace(some.take(np.arange(0)), first_row=100_000)
    whole, empty = statistics_of(asked, [some]), statistics_of(asked, [none])
    for both in (whole + empty, empty + whole):
        np.testing.assert_array_equal(both.moments.mean, whole.moments.mean)
        np.testing.assert_array_equal(both.moments.comoment, whole.moments.comoment)
        np.testing.assert_array_equal(both.tally.largest, whole.tally.largest)
        np.testing.assert_array_equal(both.tally.total, whole.tally.total)


def test_estimators_with_weights_of_their_own_go_through_numpy(monkeypatch):
    monkeypatch.setattr(fused_weight_module, "MANY", 1)

    class Doubled(SelfNormalized):
        def weight(self, some, scale):
            return 2.0 * SelfNormalized.weight(self, some, scale)

    some = rows(100)
    assert fusible([question(SelfNormalized())], [some])
    assert not fusible([question(Doubled())], [some])


def test_threads_change_no_bit():
    parts = [rows(800, seed=seed) for seed in range(4)]
    asked = [question(DoublyRobust())]
    alone = [fused_statistics(asked, [part]) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda part: fused_statistics(asked, [part]), parts))
    for (a, c), (b, d) in zip(alone, together, strict=True):
        assert np.array_equal(a.mean, b.mean)
        assert np.array_equal(a.comoment, b.comoment)
        assert np.array_equal(c.largest, d.largest)
        assert np.array_equal(c.fourths, d.fourths)


def test_a_pass_reads_the_rows_once(monkeypatch):
    # One call of the loop for one question, however many statistics it returns.
    calls, loop = [], loops.statistics
    monkeypatch.setattr(loops, "statistics", lambda *a: (calls.append(len(a[0][0])), loop(*a))[1])
    fused_module.fused_statistics([question(SelfNormalized())], [rows(700)])
    assert calls == [700]


def test_chunks_are_whole_words_of_flags():
    # 7 questions of 3 terms: 65,536 // 21 = 3,120 rows would end amid eight words.
    for k in range(3, 200):
        assert rows_of_chunk(k) % 64 == 0
        assert 512 <= rows_of_chunk(k) <= 4096
