"""Sets of parameters: nearest points, the paper's bounds, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from titrant.optimize import CONSTRAINTS, LBFGS, Ball, Box, mean_box

ROUNDING = 1e-9

POINTS = arrays(np.float64, (4, 3), elements=st.floats(-1e3, 1e3, allow_subnormal=False))


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)
@given(points=POINTS, others=POINTS)
def test_projection_is_the_nearest_point(constraint, points, others):
    # The nearest point p of a convex set: (z − p)'(q − p) ≤ 0 for every q in the set.
    nearest, inside = constraint.project(points), constraint.project(others)
    np.testing.assert_allclose(constraint.project(nearest), nearest, atol=ROUNDING)
    angle = np.sum((points - nearest) * (inside - nearest), axis=1)
    assert np.all(angle <= ROUNDING * (1 + np.sum(points**2, axis=1) + np.sum(inside**2, axis=1)))


def test_a_ball_counts_what_it_is_told_to():
    # (3, 4) has norm 5 and is pulled to norm 1: (.6, .8); the intercept 7 stays.
    ball = Ball(1.0, np.array([False, True, True]))
    np.testing.assert_allclose(ball.project(np.array([[7.0, 3.0, 4.0]])), [[7.0, 0.6, 0.8]])


def test_the_bounds_of_the_paper():
    # Mean dose 30; mean contexts 2, −5 and 0: 0 ≤ β₁ ≤ 15, −6 ≤ β₂ ≤ 0, no bound on β₃.
    context = np.array([[1.0, -4.0, -1.0], [3.0, -6.0, 1.0]])
    box = mean_box(context, np.array([20.0, 40.0]))
    np.testing.assert_allclose(box.lower, [0.0, -6.0, -np.inf])
    np.testing.assert_allclose(box.upper, [15.0, 0.0, np.inf])


def test_impossible_sets_are_refused():
    with pytest.raises(ValueError, match="at least `lower`, and as long"):
        Box(np.array([1.0]), np.array([0.0]))
    with pytest.raises(ValueError, match="at least `lower`, and as long"):
        Box(np.zeros(2), np.ones(3))
    with pytest.raises(ValueError, match="The `radius` of `Ball` must be a finite number > 0"):
        Ball(0.0)
    for constraint in (Box(np.zeros(2), np.ones(2)), Ball(1.0, np.ones(2, dtype=bool))):
        with pytest.raises(ValueError, match="as long as the 3 parameters"):
            LBFGS(constraint=constraint).minimize(lambda x: (x[:, 0], x), np.zeros((1, 3)))
