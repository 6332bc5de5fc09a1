"""A constraint in other units is the same constraint."""

from __future__ import annotations

import numpy as np
import pytest

from titrant.learn.scaled import Scaled
from titrant.optimize import Ball, Box, Free

ROUNDING = 1e-14

POINTS = np.random.default_rng(0).normal(size=(20, 3)) * 4
SETS = [
    (Free(), 2.5),
    (Box([-1, -2, 0], [1, np.inf, 0.5]), 2.5),
    (Box([-1, -2, 0], [1, np.inf, 0.5]), np.array([2.5, 0.1, 7.0])),
    (Ball(1.5), 2.5),
    (Ball(1.5, counted=[False, True, True]), 2.5),
]


@pytest.mark.parametrize(("inside", "scale"), SETS, ids=str)
def test_projections_agree(inside, scale):
    # Law: scale·project(γ) is the projection of scale·γ.
    found = Scaled(inside, scale).project(POINTS)
    np.testing.assert_allclose(found * scale, inside.project(POINTS * scale), atol=ROUNDING)


@pytest.mark.parametrize(("inside", "scale"), SETS, ids=str)
def test_limits_agree_with_the_projection(inside, scale):
    # Law: what the compiled search is told holds for every projected point.
    limits, radius = Scaled(inside, scale).limits(3)
    found = Scaled(inside, scale).project(POINTS)
    assert (found >= limits[0] - ROUNDING).all()
    assert (found <= limits[1] + ROUNDING).all()
    assert (np.linalg.norm(found * limits[2], axis=1) <= radius + ROUNDING).all()
    untouched = inside.limits(3)
    assert np.array_equal(untouched[0][2], limits[2])
