"""A constraint in other units is the same constraint."""

from __future__ import annotations

import numpy as np
import pytest

import titrant as tt
from titrant.optimize import CONSTRAINTS, Ball, Box, Scaled
from titrant.optimize.constraints import limits_of

ROUNDING = 1e-14

POINTS = np.random.default_rng(0).normal(size=(20, 3)) * 4
# A box may have a scale for each parameter.
SETS = [(inside, 2.5) for inside in CONSTRAINTS] + [
    (inside, np.array([2.5, 0.1, 7.0])) for inside in CONSTRAINTS if isinstance(inside, Box)
]


@pytest.mark.parametrize(("inside", "scale"), SETS, ids=str)
def test_projections_agree(inside, scale):
    # Law: scale·project(γ) is the projection of scale·γ.
    found = Scaled(inside, scale).project(POINTS)
    np.testing.assert_allclose(found * scale, inside.project(POINTS * scale), atol=ROUNDING)


@pytest.mark.parametrize(("inside", "scale"), SETS, ids=str)
def test_limits_agree_with_the_projection(inside, scale):
    # Law: what the compiled search is told holds for every projected point.
    if limits_of(inside, 3) is None:
        assert limits_of(Scaled(inside, scale), 3) is None
        return
    limits, radius = limits_of(Scaled(inside, scale), 3)
    found = Scaled(inside, scale).project(POINTS)
    assert (found >= limits[0] - ROUNDING).all()
    assert (found <= limits[1] + ROUNDING).all()
    assert (np.linalg.norm(found * limits[2], axis=1) <= radius + ROUNDING).all()
    untouched = limits_of(inside, 3)
    assert np.array_equal(untouched[0][2], limits[2])


def test_a_ball_in_other_units_has_another_radius():
    # Known answer: |2.5·γ| ≤ 1.5 is |γ| ≤ .6, and a point far out is pulled to exactly there.
    _, radius = limits_of(Scaled(Ball(1.5), 2.5), 3)
    assert radius == pytest.approx(0.6, rel=ROUNDING)
    far = Scaled(Ball(1.5), 2.5).project(np.array([[30.0, 0.0, 40.0]]))
    np.testing.assert_allclose(far, [[0.36, 0.0, 0.48]], rtol=ROUNDING)


@pytest.mark.parametrize("policy_class", [None, tt.Constant(0.0)], ids=["linear", "constant"])
def test_a_learned_policy_reaches_the_end_of_its_ball(policy_class):
    # Doses around 40 with an sd of 5, while the ball holds all parameters within 33: the best
    # parameters lie beyond it, so the search ends on the sphere, in the units of the dose.
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    t = 40 + 5 * rng.normal(size=400)
    log = tt.LoggedData(x, t, (t - 42 - x[:, 0]) ** 2, np.full(400, 0.05))
    procedure = tt.CPO(bandwidth=8.0, constraint=Ball(33.0), restarts=2, clipped=False)
    learner = tt.PolicyLearner(policy=policy_class, procedure=procedure, honest=False).fit(log)
    search = learner.learned_
    unit = search.report["dose_unit"][0]
    assert np.linalg.norm(search.solution.params * unit) == pytest.approx(33.0, rel=1e-6)
