"""The searches end where they should: L-BFGS, the exact line, CCCP, and the sets they stay in.

Sizes are small because these tests also run as plain Python, without numba.
"""

import numpy as np
import pytest
from scipy import optimize as reference

from optimize.functions import Numerical
from titrant.errors import InvalidArgument
from titrant.estimators import IPW, Rows, SelfNormalized
from titrant.kernels import Epanechnikov, Scale, Triangular
from titrant.optimize import (
    LBFGS,
    AffineSearch,
    Ball,
    Box,
    Objective,
    PolicyObjective,
    Status,
    exact_line,
)
from titrant.paper.cccp import CCCP

EXACT = 1e-9  # rounding of a few hundred sums
SEARCHED = 1e-6  # a converged search stops within its gradient tolerance of a smooth minimum
INSIDE = 1e-9  # constraints hold to this


class Quadratic(Objective):
    """½(β − c)'A(β − c), to be minimized in a set."""

    def __init__(self, a, c):
        self.a, self.c = a, c

    def __call__(self, params):
        away = params - self.c
        pulled = away @ self.a
        return 0.5 * np.einsum("mp,mp->m", away, pulled), pulled


def convex(p=4, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(p, p))
    return Quadratic(root @ root.T + np.eye(p), rng.normal(size=p))


def rows(n=60, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, n)
    t = x + 0.5 * rng.normal(size=n)
    y = (t - x) ** 2 + 0.1 * rng.normal(size=n) + 1.0
    q = np.exp(-2 * (t - x) ** 2) / 0.5 / np.sqrt(2 * np.pi)
    tau = np.zeros((n, 1))
    return Rows(tau=tau, t=t[:, None], y=y, q=q, x=x[:, None], center=float(y.mean()))


def search(estimator, r, h, kernel):
    phi = np.column_stack([np.ones(len(r.y)), r.x])
    e = r.y - (r.center if estimator.normalized else 0.0)
    sums = AffineSearch(phi=phi, t=r.t[:, 0], e=e, q=r.q, kernel=kernel, h=h)
    return PolicyObjective(statistics=sums, estimator=estimator)


def value_at(estimator, r, h, tau):
    at = Rows(tau=tau[:, None], t=r.t, y=r.y, q=r.q, x=r.x, center=r.center)
    return float(estimator.value(estimator.terms(at, Scale.of(h, 1)).mean(axis=0)))


def test_lbfgs_solves_a_convex_quadratic_from_every_start():
    objective = convex()
    solution = LBFGS().minimize(objective, np.random.default_rng(0).normal(size=(5, 4)))
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.ends, np.tile(objective.c, (5, 1)), atol=1e-4)
    assert solution.value == pytest.approx(0.0, abs=SEARCHED)


def test_lbfgs_follows_a_curved_valley():
    rosenbrock = Numerical(lambda b: float(reference.rosen(b)), step=1e-6)
    solution = LBFGS(steps=500).minimize(rosenbrock, np.array([[-1.2, 1.0]]))
    np.testing.assert_allclose(solution.params, [1.0, 1.0], atol=1e-3)


def test_runs_together_are_runs_alone():
    # Law: a batch of starts changes no run, bit for bit.
    objective = search(SelfNormalized(kernel=Epanechnikov()), rows(), 0.8, Epanechnikov())
    starts = np.random.default_rng(3).normal(0.3, 0.3, size=(4, 2))
    together = LBFGS().minimize(objective, starts)
    for j, start in enumerate(starts):
        alone = LBFGS().minimize(objective, start[None])
        np.testing.assert_array_equal(together.ends[j], alone.ends[0])


@pytest.mark.parametrize("seed", range(3))
def test_a_box_holds_and_is_solved_as_scipy_does(seed):
    objective = convex(seed=seed)
    box = Box(np.full(4, -0.3), np.full(4, 0.4))
    found = LBFGS(constraint=box).minimize(objective, np.zeros((1, 4)))
    known = reference.minimize(
        lambda b: float(objective(b[None])[0][0]),
        np.zeros(4),
        jac=lambda b: objective(b[None])[1][0],
        bounds=[(-0.3, 0.4)] * 4,
        method="L-BFGS-B",
    )
    assert np.all(found.params >= -0.3 - INSIDE)
    assert np.all(found.params <= 0.4 + INSIDE)
    assert found.value == pytest.approx(known.fun, abs=1e-5)


def test_a_ball_holds_and_reaches_the_boundary_when_the_minimum_is_outside():
    objective = convex()
    ball = Ball(0.5 * float(np.linalg.norm(objective.c)))
    found = LBFGS(constraint=ball).minimize(objective, np.zeros((1, 4)))
    assert np.linalg.norm(found.params) <= ball.radius + INSIDE
    angles = np.random.default_rng(0).normal(size=(20_000, 4))
    shell = ball.radius * angles / np.linalg.norm(angles, axis=1, keepdims=True)
    assert found.value <= objective(shell)[0].min() + SEARCHED


def test_a_failed_run_is_a_solution_with_advice():
    nowhere = Numerical(lambda b: float("nan"))  # noqa: ARG005
    solution = LBFGS().minimize(nowhere, np.zeros((2, 2)))
    assert solution.status is Status.NOT_FINITE
    assert "Check" in solution.status.value


def test_progress_is_told_each_round():
    seen = []
    LBFGS(progress=lambda step, value: seen.append((step, value))).minimize(
        convex(), np.ones((2, 4))
    )
    assert len(seen) > 1
    assert seen[-1][1] <= seen[0][1]


@pytest.mark.parametrize("kernel", [Epanechnikov(), Triangular()], ids=repr)
@pytest.mark.parametrize("normalized", [True, False], ids=["self-normalized", "centered"])
def test_the_exact_line_is_never_above_a_dense_grid(kernel, normalized):
    r, h = rows(40), 0.5
    estimator = SelfNormalized(kernel=kernel) if normalized else IPW(kernel=kernel, centered=True)
    found = exact_line(estimator, r, h, slope=r.x[:, 0], low=0.0, high=1.3, ess_floor=0.0)
    grid = np.linspace(0.0, 1.3, 401)
    values = [value_at(estimator, r, h, b * r.x[:, 0]) for b in grid]
    assert found.value <= min(values) + EXACT
    assert value_at(estimator, r, h, found.params[0] * r.x[:, 0]) == pytest.approx(
        found.value, abs=EXACT
    )
    assert found.gap == pytest.approx(0.0, abs=EXACT)


def test_the_exact_line_does_not_leave_the_data():
    # Losses are positive, so off the data an un-floored estimate of 0 would look best.
    r = rows(40)
    found = exact_line(SelfNormalized(), r, 0.5, low=-20.0, high=20.0)
    assert abs(found.params[0]) < 3.0


def test_the_exact_line_refuses_what_it_cannot_solve():
    with pytest.raises(InvalidArgument):
        exact_line(SelfNormalized(), rows(), 0.0, low=0.0, high=1.0)


@pytest.mark.parametrize(
    "estimator", [SelfNormalized(kernel=Triangular()), IPW(kernel=Triangular())]
)
def test_cccp_never_increases_the_objective(estimator):
    r = rows(40)
    objective = search(estimator, r, 0.6, Triangular())
    start = np.array([[0.2, 0.5]])
    seen = []
    found = CCCP(progress=lambda step, value: seen.append(value)).minimize(objective, start)  # noqa: ARG005
    path = [float(objective(start)[0][0]), *seen]
    assert np.all(np.diff(path) <= EXACT)
    assert found.value <= path[0] + EXACT


def test_cccp_keeps_to_its_box():
    r = rows(40)
    objective = search(SelfNormalized(kernel=Triangular()), r, 0.6, Triangular())
    box = Box(np.array([-0.1, 0.0]), np.array([0.1, 0.6]))
    found = CCCP(constraint=box).minimize(objective, np.array([[0.0, 0.3]]))
    assert np.all(found.params >= box.lower - INSIDE)
    assert np.all(found.params <= box.upper + INSIDE)
