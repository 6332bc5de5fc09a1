"""Where searches begin."""

from __future__ import annotations

import numpy as np
import pytest

from titrant.optimize import nearest_params, starts_around, usual_starts

RNG = np.random.default_rng(0)
X = np.column_stack([np.ones(500), RNG.normal(size=500), 1000 * RNG.normal(size=500)])
T = 2.0 + 0.5 * X[:, 1] + RNG.normal(size=500)


def test_the_usual_starts_come_first():
    points = usual_starts(X, T, doses=[1.5, X[:, 1]], count=10)
    assert points.shape == (10, 3)
    # A constant dose is the intercept alone; a dose that is in the class is met exactly.
    np.testing.assert_allclose(points[0], [T.mean(), 0, 0], atol=1e-12)
    np.testing.assert_allclose(points[1], np.linalg.lstsq(X, T, rcond=None)[0])
    np.testing.assert_allclose(points[2], [1.5, 0, 0], atol=1e-12)
    np.testing.assert_allclose(points[3], [0, 1, 0], atol=1e-12)


def test_without_an_intercept_the_nearest_doses_are_taken():
    # One feature x = (1, 2): the dose 3 for both is nearest to β = (1·3 + 2·3)/(1 + 4) = 9/5.
    np.testing.assert_allclose(nearest_params(np.array([[1.0], [2.0]]), 3.0), [1.8])


def test_random_starts_move_doses_alike_whatever_the_units():
    points = starts_around(np.zeros((1, 3)), X, count=4001, scale=0.7, seed=1)
    moved = points[1:] @ X.T
    assert np.sqrt(np.mean(moved**2)) == pytest.approx(0.7, rel=0.03)
    each = np.sqrt(np.mean((points[1:] * np.sqrt(np.mean(X**2, axis=0))) ** 2, axis=0))
    np.testing.assert_allclose(each, 0.7 / np.sqrt(3), rtol=0.05)


def test_seeds():
    same = [usual_starts(X, T, count=8, seed=seed) for seed in (3, 3, 4)]
    assert np.array_equal(same[0], same[1])
    assert not np.array_equal(same[0][2:], same[2][2:])
    assert np.array_equal(same[0][:2], same[2][:2])


def test_more_points_than_asked_for_are_kept():
    assert usual_starts(X, T, doses=[1.0, 2.0], count=2).shape == (4, 3)


def test_a_feature_that_is_always_0_stays_0():
    phi = np.column_stack([np.ones(5), np.zeros(5)])
    points = starts_around(np.ones((1, 2)), phi, count=4, scale=1.0, seed=0)
    assert np.all(points[:, 1] == 1.0)


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="The `count` of `starts_around` must be"):
        usual_starts(X, T, count=0)
    with pytest.raises(ValueError, match="The `scale` of `starts_around` must be"):
        starts_around(np.zeros((1, 3)), X, count=2, scale=-1.0, seed=0)
