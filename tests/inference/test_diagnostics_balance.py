"""Covariate balance: three rows by hand, the difference of two means, laws."""

from __future__ import annotations

import numpy as np
import pytest

from titrant.inference.balance import Contexts, balance_sums, imbalance
from titrant.scaling import Held

# Sums of a few numbers of order 1 in another order.
EXACT = 1e-12


def found(w: np.ndarray, x: np.ndarray):
    contexts = Contexts.of(x, tuple("abcdefgh"[: x.shape[1]]), Held.of(x))
    return imbalance(balance_sums(w, x, w.mean(), contexts), contexts)


def test_three_rows_by_hand():
    """w = (0, 2, 1), x = (1, 2, 6).

    Weighted mean (4 + 6)/3 = 10/3, plain mean 3: they differ by 1/3. The sd of x is √(14/3).
    z = (w − 1)(x − 3) = (2, −1, 0): Σz = 1 and Σz² = 5, so the difference is 1/√5 of its SE.
    """
    result = found(np.array([0.0, 2.0, 1.0]), np.array([[1.0], [2.0], [6.0]]))
    assert result.in_sd == pytest.approx([(1 / 3) / (14 / 3) ** 0.5], rel=EXACT)
    assert result.in_se == pytest.approx([1 / 5**0.5], rel=EXACT)


def test_it_is_the_weighted_mean_less_the_plain_one():
    rng = np.random.default_rng(0)
    w, x = rng.exponential(size=50) * 3, rng.normal(size=(50, 4))
    expected = np.abs(np.average(x, axis=0, weights=w) - x.mean(axis=0)) / x.std(axis=0)
    assert found(w, x).in_sd == pytest.approx(expected, rel=1e-9)


def test_units_of_context_and_weight_do_not_matter():
    rng = np.random.default_rng(1)
    w, x = rng.exponential(size=50), rng.normal(size=(50, 2))
    a, b = found(w, x), found(7 * w, 40 + 1e-3 * x)
    assert b.in_sd == pytest.approx(a.in_sd, rel=1e-9)
    assert b.in_se == pytest.approx(a.in_se, rel=1e-9)


def test_in_se_is_about_standard_normal_when_weights_know_nothing_of_the_context():
    rng = np.random.default_rng(2)
    z = [found(rng.exponential(size=400), rng.normal(size=(400, 8))).in_se for _ in range(200)]
    # Means of 1,600 squared standard normals: 1 ± 3·√(2/1600).
    assert np.mean(np.square(z)) == pytest.approx(1.0, abs=0.11)


def test_a_constant_context_is_in_balance():
    x = np.column_stack([np.full(9, 0.1), np.zeros(9), np.arange(9.0)])
    result = found(np.arange(9.0), x)
    assert result.in_sd[:2].tolist() == [0.0, 0.0]
    assert result.in_se[:2].tolist() == [0.0, 0.0]
    assert result.in_sd[2] > 0
    # Equal weights move nothing.
    assert found(np.ones(9), x).in_sd.tolist() == [0.0, 0.0, 0.0]
