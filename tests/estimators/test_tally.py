"""The tally of weights: what the trust rules are computed from."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest

from titrant.estimators import Tally
from titrant.estimators.joint import KEPT

EXACT = 1e-12  # sums in another order


def test_known_answer():
    # w = 1, 3, 0, −1: Σw = 3, Σ|w| = 5, Σw² = 11; ESS 9/11, ν = 9/11 − 1 < 1 → 1,
    # purity 3/5, mean ¾, its SE √(11/4 − 9/16)/2.
    tally = Tally.of(np.array([[1.0], [3.0], [0.0], [-1.0]]))
    assert tally.n == 4
    assert tally.count.tolist() == [3]
    assert tally.ess == pytest.approx([9 / 11])
    assert tally.degrees_of_freedom == pytest.approx([1])
    assert tally.purity == pytest.approx([3 / 5])
    assert tally.mean == pytest.approx([3 / 4])
    assert tally.mean_se == pytest.approx([np.sqrt(11 / 4 - 9 / 16) / 2])
    assert tally.largest.tolist() == [[3, 1, 1, 0]]


def test_equal_weights_count_in_full():
    tally = Tally.of(np.full((50, 1), 0.7))
    assert tally.ess == pytest.approx([50])
    assert tally.degrees_of_freedom == pytest.approx([49])
    assert tally.purity == pytest.approx([1])
    assert tally.mean_se == pytest.approx([0], abs=1e-8)


def test_no_weights_are_no_overlap():
    tally = Tally.of(np.zeros((5, 1)))
    for zero in (tally.ess, tally.purity, tally.mean, tally.count):
        assert zero.tolist() == [0]


@pytest.mark.parametrize("cuts", [[1], [300], [100, 400, 401], [0, 250], [1000]], ids=str)
def test_blocks_add_up(cuts):
    w = np.random.default_rng(0).lognormal(size=(1000, 3)) * [1, -1, 1e6]
    whole = Tally.of(w)
    merged = reduce(add, map(Tally.of, np.split(w, cuts)))
    assert merged.n == whole.n
    for field in ("total", "absolute", "squares", "count"):
        expected = getattr(whole, field)
        np.testing.assert_allclose(getattr(merged, field), expected, rtol=EXACT, err_msg=field)
    np.testing.assert_array_equal(merged.largest, whole.largest)


def test_the_largest_weights_are_kept_in_order():
    w = np.random.default_rng(1).normal(size=(2000, 2))
    expected = -np.sort(-np.abs(w), axis=0)[:KEPT].T
    np.testing.assert_array_equal(Tally.of(w).largest, expected)


def test_scale_does_not_matter():
    w = np.random.default_rng(2).lognormal(size=(200, 1))
    small, large = Tally.of(w * 1e-6), Tally.of(w * 1e6)
    for field in ("ess", "degrees_of_freedom", "purity"):
        np.testing.assert_allclose(getattr(small, field), getattr(large, field), rtol=1e-10)
