"""Moments: a commutative monoid, exact where exact arithmetic says so."""

from __future__ import annotations

import pickle
from fractions import Fraction
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from titrant.moments import Moments

CHUNKS = 1e-12  # any partition of the same rows, relative to the size of the numbers
SAME = 1e-9  # laws on wild examples: 1e6 squared, with the rounding of 60 rows

TERMS = st.integers(0, 20).flatmap(
    lambda n: arrays(np.float64, (n, 2), elements=st.floats(-1e6, 1e6, allow_subnormal=False))
)


def assert_same(a: Moments, b: Moments, scale: float, tolerance: float) -> None:
    assert a.n == b.n
    np.testing.assert_allclose(a.mean, b.mean, rtol=0, atol=tolerance * scale)
    limit = tolerance * scale**2 * max(a.n, 1)
    np.testing.assert_allclose(a.comoment, b.comoment, rtol=0, atol=limit)


def size(*blocks: np.ndarray) -> float:
    return max([1.0, *(float(np.abs(b).max()) for b in blocks if b.size)])


def exact(z: np.ndarray) -> tuple[list[Fraction], list[list[Fraction]]]:
    """The mean and comoment in rational arithmetic, without any rounding."""
    rows = [[Fraction(v) for v in row] for row in z.tolist()]
    n, k = len(rows), len(rows[0])
    mean = [sum(row[j] for row in rows) / n for j in range(k)]
    comoment = [
        [sum((row[i] - mean[i]) * (row[j] - mean[j]) for row in rows) for j in range(k)]
        for i in range(k)
    ]
    return mean, comoment


def test_known_answer():
    # Rows (1, 2), (3, 2), (5, 8): means 3, 4; deviations (−2, −2), (0, −2), (2, 4);
    # C₀₀ = 4 + 0 + 4 = 8, C₀₁ = 4 + 0 + 8 = 12, C₁₁ = 4 + 4 + 16 = 24; covariance C/3.
    m = Moments.of(np.array([[1.0, 2.0], [3.0, 2.0], [5.0, 8.0]]))
    assert m.n == 3
    assert m.mean.tolist() == [3, 4]
    assert m.comoment.tolist() == [[8, 12], [12, 24]]
    np.testing.assert_allclose(m.covariance, [[8 / 3, 4], [4, 8]], rtol=1e-15)


def test_known_answer_of_a_merge():
    # {(1), (3)}: mean 2, C 2. {(8)}: mean 8, C 0. δ = 6: mean 2 + 6/3 = 4, C = 2 + 36·2·1/3 = 26;
    # directly: deviations −3, −1, 4 give 9 + 1 + 16 = 26.
    m = Moments.of(np.array([[1.0], [3.0]])) + Moments.of(np.array([[8.0]]))
    assert (m.n, m.mean.tolist(), m.comoment.tolist()) == (3, [4], [[26]])


def test_covariance_is_numpys():
    z = np.random.default_rng(0).normal(size=(50, 4)) @ np.diag([1, 10, 0.1, 3]) + 2
    np.testing.assert_allclose(Moments.of(z).covariance, np.cov(z.T, bias=True), rtol=1e-12)


def test_one_row_has_no_spread():
    m = Moments.of(np.array([[3.7, -1e8]]))
    assert m.mean.tolist() == [3.7, -1e8]
    assert not m.comoment.any()


def test_no_rows():
    m = Moments.of(np.empty((0, 3)))
    assert (m.n, m.mean.tolist(), m.comoment.shape) == (0, [0, 0, 0], (3, 3))


def test_terms_are_left_alone():
    z = np.arange(6.0).reshape(3, 2)
    Moments.of(z)
    assert z.tolist() == [[0, 1], [2, 3], [4, 5]]


@given(TERMS, TERMS, TERMS)
def test_monoid(a, b, c):
    x, y, z = map(Moments.of, (a, b, c))
    scale = size(a, b, c)
    # e + x = x = x + e, to the bit
    zero = Moments.empty(2)
    for left in (x + zero, zero + x):
        assert left.n == x.n
        assert left.mean.tobytes() == x.mean.tobytes()
        assert left.comoment.tobytes() == x.comoment.tobytes()
    # (x + y) + z = x + (y + z)
    assert_same((x + y) + z, x + (y + z), scale, SAME)
    # x + y = y + x
    assert_same(x + y, y + x, scale, SAME)
    # of(a ∪ b) = of(a) + of(b)
    assert_same(Moments.of(np.concatenate([a, b])), x + y, scale, SAME)


@given(TERMS, st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_shift_and_scale(z, shift, factor):
    m = Moments.of(z)
    if not m.n:
        return
    moved = Moments.of(z * factor + shift)
    scale = size(z) * max(abs(factor), 1) + abs(shift)
    np.testing.assert_allclose(moved.mean, m.mean * factor + shift, atol=SAME * scale)
    limit = SAME * scale**2 * m.n
    np.testing.assert_allclose(moved.comoment, m.comoment * factor**2, atol=limit)


@given(TERMS)
def test_comoment_is_symmetric_and_not_negative(z):
    m = Moments.of(z)
    np.testing.assert_array_equal(m.comoment, m.comoment.T)
    assert (np.diagonal(m.comoment) >= 0).all()


@pytest.mark.parametrize("sizes", [[1000], [1] * 1000, [1, 999], [500, 0, 500], [7] * 142 + [6]])
def test_any_chunks_equal_the_whole(sizes):
    z = np.random.default_rng(2).lognormal(size=(1000, 3)) * [1, 1e-3, 1e3] + [0, 5, -1e4]
    parts = np.split(z, np.cumsum(sizes)[:-1])
    whole, merged = Moments.of(z), reduce(add, map(Moments.of, parts))
    assert merged.n == 1000
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=CHUNKS)
    sd = np.sqrt(np.diagonal(whole.comoment))
    relative = (merged.comoment - whole.comoment) / np.outer(sd, sd)
    assert np.abs(relative).max() < CHUNKS


def test_any_tree_of_merges_equals_the_whole():
    z = np.random.default_rng(3).normal(size=(256, 2)) + 50
    level = [Moments.of(part) for part in np.split(z, 64)]
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2], strict=True)]
    assert_same(level[0], Moments.of(z), 50, CHUNKS)


def test_the_same_partition_gives_the_same_bits():
    # Blocks may be computed in any order and elsewhere, as long as they are merged in order.
    z = np.random.default_rng(4).normal(size=(999, 3)) * 1e3 + 7
    parts = np.split(z, 9)
    first = reduce(add, [Moments.of(p) for p in parts])
    done = {i: pickle.loads(pickle.dumps(Moments.of(parts[i]))) for i in reversed(range(9))}  # noqa: S301
    second = reduce(add, [done[i] for i in range(9)])
    assert first.mean.tobytes() == second.mean.tobytes()
    assert first.comoment.tobytes() == second.comoment.tobytes()


def test_an_outcome_far_from_zero_keeps_its_variance():
    # 1e8 + noise of size 1: Σz² would hold 16 digits of 1e16·n and none of the variance.
    z = np.random.default_rng(5).normal(size=(400, 2)) + 1e8
    mean, comoment = (np.array(v, dtype=float) for v in exact(z))
    whole, merged = Moments.of(z), reduce(add, map(Moments.of, np.split(z, 8)))
    for m in (whole, merged):  # half a unit in the last place of 1e8 is 7e-9
        np.testing.assert_allclose(m.mean, mean, rtol=0, atol=3e-8)
    np.testing.assert_allclose(whole.comoment, comoment, rtol=0, atol=1e-12 * 400)
    # A chunk's mean is kept to 7e-9, and its 400 deviations are of size 1.
    np.testing.assert_allclose(merged.comoment, comoment, rtol=0, atol=7e-9 * 400)


def test_a_constant_has_no_variance_however_large_and_many():
    # Added up one by one, 200,000 copies of 1e8 + 0.1 have a mean that is 3e-4 off.
    m = Moments.of(np.full((200_000, 2), 1e8 + 0.1))
    assert m.mean.tolist() == [1e8 + 0.1, 1e8 + 0.1]
    assert not m.comoment.any()


def test_a_mean_of_many_rows_far_from_zero():
    z = np.random.default_rng(6).integers(0, 64, size=(200_000, 3)) / 64 + 1e8
    true = [float(Fraction(int(v), 64) / len(z)) for v in ((z - 1e8) * 64).sum(axis=0)]
    np.testing.assert_allclose(Moments.of(z).mean - 1e8, true, atol=2e-8)
