"""Several doses at once: the score, the doses of leaves, and which class is chosen."""

from __future__ import annotations

import numpy as np
import pytest

import titrant as tt
from learn.examples import changed
from titrant.data.simulate import DESIGNS
from titrant.kernels import Epanechnikov
from titrant.learn import TrainingLog
from titrant.learn.candidates import CANDIDATE_FLOOR, SCORE_FLOOR
from titrant.learn.classes.tree import least_point
from titrant.learn.vector import POINTS, VectorArena, VectorDR, evenly, near, unseen

EXACT = 1e-12
SEARCH = 1e-4  # where a search ends that stops at 2e-9 of the objective
PLANE = DESIGNS["quadratic-2d"]
ANYWHERE = -np.inf, np.inf
DOSES = np.array([[1.0, -1.0], [-1.0, 0.5]])


def grouped(n=300, seed=0) -> tt.LoggedData:
    """Those of middle age and the others, each with two doses of their own."""
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(-1, 1, size=(n, 2)), rng.normal(size=(n, 2))
    y = np.sum((t - DOSES[(np.abs(x[:, 0]) > 0.5).astype(int)]) ** 2, axis=1)
    return tt.LoggedData(x, t, y + 0.5 * rng.normal(size=n), names=("age", "weight"))


def arena_of(log) -> VectorArena:
    return VectorArena.of(TrainingLog.of(log), ANYWHERE, 3, 0)


def learned(log, policy=None) -> tt.PolicyLearner:
    return tt.PolicyLearner(policy=policy, honest=False).fit(log)


# ── parts ────────────────────────────────────────────────────────────────────────────────────────
def test_a_quadratic_surface_has_its_minimum_between_the_points():
    # Known answer: (u − a)'B(u − a) is least at a, wherever the points are.
    points = np.array([0.0, -3.0]) + np.array([2.0, 6.0]) * evenly(POINTS, 2)
    for best in ([0.7, 0.2], [1.31, -2.0]):
        away = points - best
        curve = away[:, 0] ** 2 + 0.3 * away[:, 0] * away[:, 1] + 0.5 * away[:, 1] ** 2
        np.testing.assert_allclose(least_point(points, curve[None])[0], best, atol=1e-9)
    # A plane has no minimum: the least point it is.
    plane = points @ [1.0, 1.0]
    np.testing.assert_array_equal(least_point(points, plane[None])[0], points[np.argmin(plane)])


def test_points_are_within_their_cube_and_smoothing_leans_to_no_side():
    assert 0.0 < evenly(50, 3).min() < evenly(50, 3).max() < 1.0
    assert np.abs(near(3)).max() < 1.0
    np.testing.assert_allclose(near(3).sum(axis=0), 0.0, atol=EXACT)


def test_the_score_is_that_of_a_loop():
    # S = ΣK(u)·r̂(τ + u)/ΣK(u) + K(t − τ)/(h₁h₂q)·(y − r̂(t)), u the points around τ.
    arena = arena_of(PLANE.draw(60, 1))
    log, s, kernel = arena.log, arena.sd, Epanechnikov()
    at = unseen(log, np.arange(60), arena.fold)
    tau = np.column_stack([np.linspace(-0.5, 0.8, 60), np.full(60, 0.3)])
    steps = kernel.support * s * near(2)
    weights = np.prod(kernel(steps / s), axis=1)
    smooth = sum(w * at(tau + u) for w, u in zip(weights, steps, strict=True)) / weights.sum()
    q = np.maximum(log.propensity, np.prod(SCORE_FLOOR / s))
    w = np.prod(kernel((log.treatment - tau) / s), axis=1) / np.prod(s) / q
    expected = smooth + w * (log.outcome - at(log.treatment))
    np.testing.assert_allclose(arena.score(tau), expected, rtol=1e-9, atol=1e-9)


def test_curves_are_those_of_a_loop():
    arena = arena_of(PLANE.draw(60, 1))
    log, s, kernel = arena.log, arena.sd, Epanechnikov()
    train = arena.splits[1].train
    at = unseen(log, train, arena.fold[train])
    e = log.outcome[train] - at(log.treatment[train])
    q = np.maximum(log.propensity[train], np.prod(CANDIDATE_FLOOR / s))
    curves = arena.curves(1)
    for j in (0, 100, 255):
        tau = np.tile(arena.points[j], (len(train), 1))
        w = np.prod(kernel((log.treatment[train] - tau) / s), axis=1) / np.prod(s) / q
        np.testing.assert_allclose(curves.model[:, j], at(tau))
        np.testing.assert_allclose(curves.robust[:, j], at(tau) + w * e, rtol=1e-9, atol=1e-9)


# ── what is learned ──────────────────────────────────────────────────────────────────────────────
@pytest.mark.long
def test_a_tree_is_chosen_where_groups_differ(tmp_path):
    log = grouped()
    found = learned(log)
    assert [one.name for one in found.choice_.classes] == ["constant", "linear", "tree"]
    assert found.choice_.chosen == "tree"
    assert "A linear rule would lose" in found.choice_.finding
    assert found.policy_.features == ("age", "weight")
    table = dict(zip(log.names, log.context.T, strict=True))
    off = found.predict(table) - DOSES[(np.abs(log.context[:, 0]) > 0.5).astype(int)]
    assert np.mean(np.sum(off**2, axis=1)) < 0.5  # the best constant's is 1.6
    found.save(tmp_path / "policy.json")
    again = tt.load_policy(tmp_path / "policy.json")
    np.testing.assert_array_equal(again(table), found.predict(table))


@pytest.mark.long
def test_a_chosen_line_is_the_line_that_is_asked_for():
    log = PLANE.draw(150, 3)
    usual, line = learned(log), learned(log, tt.LinearClass())
    assert usual.choice_.chosen == "linear"
    assert usual.policy_ == line.policy_
    assert {*usual.learned_.report["candidates"]["scores"]} == {"direct", "doubly robust"}
    assert isinstance(learned(log, tt.TreeClass(depth=1)).policy_, tt.Tree)


@pytest.mark.parametrize(
    "kind",
    [pytest.param(tt.LinearClass(), marks=pytest.mark.long), tt.TreeClass(depth=1)],
    ids=repr,
)
def test_units_do_not_matter(kind):
    # Law: doses times 1,024 and outcomes times 64 give 1,024 times the doses.
    log = grouped(120)
    mine, yours = learned(log, kind), learned(changed(log, dose=1024.0, outcome=64.0), kind)
    np.testing.assert_allclose(
        yours.policy_(log.context) / 1024, mine.policy_(log.context), atol=SEARCH
    )


def test_limits_are_kept():
    log = grouped(120)
    limits = tt.learn.ClippedClass(tt.TreeClass(), np.array([-0.5, -0.4]), np.array([0.5, 0.4]))
    doses = learned(log, limits).policy_(log.context)
    assert np.all(np.abs(doses) <= [0.5, 0.4])
    with_rewards = tt.PolicyLearner(policy=tt.TreeClass(depth=1), maximize=True, honest=False)
    rewards = with_rewards.fit(log.with_outcome(-log.outcome)).policy_
    assert rewards == learned(log, tt.TreeClass(depth=1)).policy_


def test_few_rows_are_refused():
    with pytest.raises(tt.DataError, match="`VectorDR` with 3 folds needs at least 12 rows"):
        learned(grouped(11))
    with pytest.raises(tt.InvalidArgument, match="`folds` of `VectorDR`"):
        VectorDR(folds=2)
