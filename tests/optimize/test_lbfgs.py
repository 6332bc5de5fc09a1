"""L-BFGS: against scipy, inside sets, alone and in company, and how it fails."""

from __future__ import annotations

import numpy as np
import pytest

from optimize.functions import Absolute, Nowhere, Quadratic, Rosenbrock, by_scipy
from optimize.problems import POLICIES, applies, around, fused, log
from titrant.estimators import DirectMethod, DoublyRobust, SelfNormalized
from titrant.optimize import LBFGS, Ball, Box, Status

GRADIENT = 1e-6  # the default tolerance of a projected gradient
PLACE = 5e-5  # a gradient of 1e-6 over the least curvature .05, and scipy's own error
HELD = 1e-9  # constraints, as promised
VALUE = 1e-9  # of a smooth objective, at a gradient of 1e-6

EXACT = LBFGS(value_tolerance=0.0)


def starts(size: int, count: int = 6, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, size))


# ── without constraints ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(4))
def test_a_quadratic_is_solved(seed):
    objective = Quadratic.random(12, seed)
    solution = EXACT.minimize(objective, starts(12))
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.ends, np.tile(objective.solution, (6, 1)), atol=PLACE)
    assert solution.value == solution.values.min()
    assert np.abs(objective(solution.params[None])[1]).max() <= GRADIENT


def test_evaluations_are_about_those_of_scipy():
    objective, points = Quadratic.random(12, 0), starts(12)
    peers = [by_scipy(objective, p, options={"ftol": 0, "gtol": GRADIENT}) for p in points]
    assert EXACT.minimize(objective, points).evaluations < 1.25 * sum(p.nfev for p in peers)
    rosenbrock, points = Rosenbrock(), 1.5 * starts(5)
    peers = [by_scipy(rosenbrock, p, options={"ftol": 2e-9, "gtol": 1e-6}) for p in points]
    assert LBFGS().minimize(rosenbrock, points).evaluations < 1.25 * sum(p.nfev for p in peers)


def test_rosenbrock_is_solved_from_everywhere():
    solution = LBFGS().minimize(Rosenbrock(), 1.5 * starts(5, 12))
    # Its other local minimum, near (−1, 1, …, 1), has the value 3.93 in five dimensions.
    assert np.all((solution.values < 1e-7) | (np.abs(solution.values - 3.930839) < 1e-5))
    assert solution.value < 1e-8
    np.testing.assert_allclose(solution.params, 1.0, atol=1e-3)


def test_a_kink_is_reached_and_called_so():
    solution = LBFGS().minimize(Absolute(), starts(4))
    np.testing.assert_allclose(solution.params, 0.3, atol=1e-6)
    assert solution.status in {Status.STALLED, Status.CONVERGED}


def test_a_start_at_the_solution_stays():
    objective = Quadratic.random(3, 2)
    solution = LBFGS().minimize(objective, objective.solution[None])
    assert solution.evaluations == 1
    assert solution.status is Status.CONVERGED
    assert np.array_equal(solution.params, objective.solution)


# ── inside a set ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["quadratic", "rosenbrock"])
def test_a_box_is_kept_and_solved(name, seed):
    rng = np.random.default_rng(seed)
    objective = Quadratic.random(8, seed) if name == "quadratic" else Rosenbrock()
    box = Box(-rng.uniform(0, 1, 8), rng.uniform(0, 0.9, 8))
    solution = LBFGS(value_tolerance=0.0, constraint=box).minimize(objective, starts(8))
    assert np.all((solution.ends >= box.lower) & (solution.ends <= box.upper))
    peer = by_scipy(
        objective,
        box.project(starts(8))[0],
        bounds=list(zip(box.lower, box.upper, strict=True)),
        options={"ftol": 0, "gtol": GRADIENT},
    )
    assert solution.value <= peer.fun + VALUE
    # First-order conditions: no way on against the gradient within the box.
    gradient = objective(solution.params[None])[1][0]
    move = box.project((solution.params - gradient)[None])[0] - solution.params
    assert np.abs(move).max() <= GRADIENT


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["quadratic", "rosenbrock"])
@pytest.mark.parametrize("all_count", [True, False])
def test_a_ball_is_kept_and_solved(name, seed, all_count):
    objective = Quadratic.random(6, seed) if name == "quadratic" else Rosenbrock()
    counted = np.ones(6, dtype=bool)
    counted[0] = all_count
    ball = Ball(0.7, counted)
    solution = LBFGS(value_tolerance=0.0, constraint=ball).minimize(objective, starts(6))
    assert np.linalg.norm(solution.ends[:, counted], axis=1).max() <= 0.7 + HELD
    peer = by_scipy(
        objective,
        ball.project(starts(6))[0],
        "SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda x: 0.49 - np.sum((x * counted) ** 2),
            "jac": lambda x: -2 * x * counted,
        },
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    assert solution.value <= peer.fun + VALUE
    # First-order conditions: the gradient over the counted points to the origin, else it is 0.
    gradient, x = objective(solution.params[None])[1][0], solution.params
    assert np.linalg.norm(x[counted]) == pytest.approx(0.7, abs=HELD)
    mu = -(gradient @ (x * counted)) / 0.49
    assert mu > 0
    assert np.abs(gradient + mu * x * counted).max() <= GRADIENT


def test_a_set_around_the_solution_changes_nothing():
    objective = Quadratic.random(5, 1)
    wide = 2 * np.abs(objective.solution).max() + np.ones(5)
    for constraint in (Box(-wide, wide), Ball(10 * float(np.linalg.norm(wide)))):
        solution = LBFGS(value_tolerance=0.0, constraint=constraint).minimize(objective, starts(5))
        np.testing.assert_allclose(solution.params, objective.solution, atol=PLACE)


def test_sets_hold_for_policies():
    data, policy = log(200), POLICIES["linear"]
    objective = fused(SelfNormalized(), policy, data, ridge=0.01)
    box = Box(np.array([-1.0, 0.0, 0.0, 0.0]), np.array([1.0, 0.1, 0.3, 0.2]))
    inside = LBFGS(constraint=box).minimize(objective, around(policy, 8))
    assert np.all((inside.ends >= box.lower) & (inside.ends <= box.upper))
    counted = np.array([False, True, True, True])
    ball = LBFGS(constraint=Ball(0.2, counted)).minimize(objective, around(policy, 8))
    assert np.linalg.norm(ball.ends[:, 1:], axis=1).max() <= 0.2 + HELD
    free = LBFGS().minimize(objective, around(policy, 8))
    assert free.value <= min(inside.value, ball.value)


# ── many starts at once ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("estimator", [SelfNormalized(), DoublyRobust()], ids=str)
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_run_in_company_is_the_run_alone_bit_for_bit(estimator, in_memory):
    policy, penalties = POLICIES["clipped"], {"se_weight": 0.2, "ess_floor": 20.0, "ridge": 0.01}
    objective = fused(estimator, policy, log(150), in_memory=in_memory, **penalties)
    points = around(policy, 7, seed=3)
    together = LBFGS().minimize(objective, points)
    for i, point in enumerate(points):
        alone = LBFGS().minimize(objective, point[None])
        assert np.array_equal(alone.params, together.ends[i])
        assert alone.value == together.values[i]


@pytest.mark.parametrize(
    ("estimator", "penalties"),
    [
        (estimator, penalties)
        for estimator in (SelfNormalized(), DoublyRobust(self_normalized=False), DirectMethod())
        for penalties in ({}, {"ess_floor": 40.0}, {"se_weight": 0.2})
        if applies(estimator, penalties)
    ],
    ids=str,
)
def test_a_whole_search_in_compiled_code_has_the_bits_of_its_rounds(estimator, penalties):
    policy = POLICIES["clipped"]
    objective = fused(estimator, policy, log(150), ridge=0.01, **penalties)
    whole = LBFGS().minimize(objective, around(policy, 5, seed=3))
    told = []
    by_rounds = LBFGS(progress=lambda k, value: told.append((k, value))).minimize(
        objective, around(policy, 5, seed=3)
    )
    assert np.array_equal(whole.ends, by_rounds.ends)
    assert np.array_equal(whole.values, by_rounds.values)
    assert whole.evaluations == by_rounds.evaluations
    assert whole.status is by_rounds.status
    assert told[-1][1] == whole.value


def test_the_same_seed_gives_the_same_solution_bit_for_bit():
    data, policy = log(150), POLICIES["linear"]
    objective = fused(SelfNormalized(), policy, data, ridge=0.01)
    first, again, other = (
        LBFGS().minimize(objective, around(policy, 9, seed)) for seed in (4, 4, 5)
    )
    assert np.array_equal(first.params, again.params)
    assert np.array_equal(first.values, again.values)
    assert not np.array_equal(first.starts, other.starts)


def test_the_best_run_is_reported_and_all_are_kept():
    solution = LBFGS().minimize(Rosenbrock(), 1.5 * starts(5, 12))
    best = int(np.argmin(solution.values))
    assert solution.value == solution.values[best]
    assert np.array_equal(solution.params, solution.ends[best])
    assert solution.starts.shape == solution.ends.shape == (12, 5)


# ── failing, and telling ─────────────────────────────────────────────────────────────────────────


def test_nothing_finite_is_a_status():
    solution = LBFGS().minimize(Nowhere(), -np.ones((3, 2)))
    assert solution.status is Status.NOT_FINITE
    assert "Check the bandwidth" in solution.to_dict()["advice"]
    assert np.array_equal(solution.params, -np.ones(2))
    assert np.isnan(solution.value)


def test_one_finite_start_suffices_and_no_step_leaves_it():
    points = np.array([[-1.0, 1.0], [1.0, 1.0], [np.nan, 0.0]])
    solution = LBFGS().minimize(Nowhere(), points)
    assert np.isfinite(solution.value)
    assert np.isnan(solution.values[[0, 2]]).all()
    assert solution.params[0] > 0


def test_too_few_steps_is_a_status():
    solution = LBFGS(steps=3).minimize(Rosenbrock(), starts(5))
    assert solution.status is Status.OUT_OF_STEPS
    assert "Raise `steps`" in solution.to_dict()["advice"]
    assert solution.value < Rosenbrock()(starts(5))[0].min()


def test_progress_is_told_each_round():
    told = []
    LBFGS(progress=lambda k, value: told.append((k, value))).minimize(Rosenbrock(), starts(4))
    rounds, values = zip(*told, strict=True)
    assert rounds == tuple(range(1, len(rounds) + 1))
    assert np.all(np.diff(values) <= 0)
    assert values[-1] < 1e-6


def test_a_solution_is_plain_values_for_a_file():
    plain = LBFGS().minimize(Rosenbrock(), starts(2, 3)).to_dict()
    assert plain["status"] == "converged"
    assert plain["bound"] is None
    assert len(plain["values"]) == 3
    assert len(plain["params"]) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "The `steps` of `LBFGS` must be a whole number ≥ 1; got 0."),
        ({"memory": 0}, "The `memory` of `LBFGS` must be a whole number ≥ 1; got 0."),
        ({"value_tolerance": -1.0}, "a finite number ≥ 0; got -1.0"),
        ({"gradient_tolerance": np.nan}, "a finite number ≥ 0; got nan"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        LBFGS(**settings)
