"""The convex-concave procedure: descends, ends where exact search does, keeps its constraints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from laws.designs import name
from optimize.lines import H, design, negated
from optimize.problems import POLICIES, fused, log
from titrant.estimators import IPW, DoublyRobust, SelfNormalized
from titrant.kernels import Epanechnikov, Triangular
from titrant.optimize import LBFGS, AffineSearch, Ball, Box, PolicyObjective, Status, exact_line
from titrant.paper.cccp import CCCP

DESCENT = 1e-12  # rounding of the objective; the programs themselves never go up
SAME = 1e-7  # the tolerance of a linear program, in β

TRIANGULAR = [
    IPW(kernel=Triangular(), centered=True),
    IPW(kernel=Triangular()),
    SelfNormalized(kernel=Triangular()),
]


def line_objective(estimator, x, rows) -> PolicyObjective:
    b, e = estimator.baseline(rows)
    search = AffineSearch(
        phi=x[:, None],
        t=rows.t[:, 0],
        e=e,
        q=rows.q,
        kernel=estimator.kernel,
        h=H,
        center=float(b[0]),
    )
    return PolicyObjective(statistics=search, estimator=estimator)


def test_the_kernel_is_a_difference_of_convex_functions():
    u = np.linspace(-3, 3, 601)
    parts = np.maximum(-1, u) - 2 * np.maximum(0, u) + np.maximum(1, u)
    np.testing.assert_allclose(Triangular()(u), parts, atol=1e-15)


@pytest.mark.parametrize("estimator", TRIANGULAR, ids=name)
def test_it_never_increases_the_objective(estimator):
    policy, data = POLICIES["linear"], log(120)
    objective = fused(estimator, policy, data)
    for seed in range(3):
        start = policy.params + 0.3 * np.random.default_rng(seed).normal(size=4)
        told = []
        solution = CCCP(progress=lambda k, v: told.append((k, v))).minimize(objective, start[None])  # noqa: B023
        values = np.array([objective(start[None])[0][0], *(value for _, value in told)])
        assert len(values) > 2
        assert np.all(np.diff(values) <= DESCENT)
        assert solution.status is Status.CONVERGED
        assert solution.value == pytest.approx(values[-1], abs=1e-12)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("estimator", TRIANGULAR, ids=name)
def test_it_ends_where_exact_search_does_when_started_near(estimator, maximize):
    x, rows = design(200, 3)
    # In this range the floor of exact search never binds; the procedure knows none.
    judged = negated(rows) if maximize else rows
    exact = exact_line(estimator, judged, H, slope=x, low=0.5, high=1.5)
    objective = replace(line_objective(estimator, x, rows), maximize=maximize)
    procedure = CCCP(constraint=Box(np.array([0.5]), np.array([1.5])))
    ends = procedure.minimize(objective, np.array([exact.params, exact.params + 0.02]))
    assert ends.value == pytest.approx(exact.value, abs=SAME)
    assert ends.values.min() >= exact.value - 1e-12


def test_it_does_not_lose_to_lbfgs_from_the_same_starts():
    policy, data = POLICIES["linear"], log(120)
    for estimator in TRIANGULAR[::2]:
        objective = fused(estimator, policy, data)
        starts = policy.params + 0.2 * np.random.default_rng(0).normal(size=(4, 4))
        ours, peer = CCCP().minimize(objective, starts), LBFGS().minimize(objective, starts)
        assert ours.value <= peer.value + 1e-3
        # Where one ends, the other finds nothing better nearby: both are local minima.
        assert LBFGS().minimize(objective, ours.params[None]).value >= ours.value - 1e-3


def test_a_box_holds():
    policy, data = POLICIES["linear"], log(120)
    objective = fused(TRIANGULAR[2], policy, data)
    box = Box(np.full(4, -0.15), np.array([0.3, 0.1, 0.1, 0.1]))
    starts = np.array([[0.0, 0.0, 0.0, 0.0], [0.3, 0.1, 0.1, 0.1]])
    solution = CCCP(constraint=box).minimize(objective, starts)
    assert np.all((solution.ends >= box.lower) & (solution.ends <= box.upper))
    assert solution.value <= objective(starts[:1])[0][0]
    free = CCCP().minimize(objective, starts)
    assert free.value <= solution.value


def test_a_run_that_fails_is_a_status():
    policy, data = POLICIES["linear"], log(120)
    objective = fused(TRIANGULAR[2], policy, data)
    nowhere = CCCP().minimize(objective, np.array([[50.0, 0.0, 0.0, 0.0]]))
    assert nowhere.status is Status.NOT_FINITE
    short = CCCP(steps=1).minimize(objective, policy.params[None])
    assert short.status is Status.OUT_OF_STEPS


def test_what_is_no_linear_program_is_refused():
    policy, data = POLICIES["linear"], log(60)
    for objective in (
        fused(SelfNormalized(kernel=Epanechnikov()), policy, data),
        fused(DoublyRobust(kernel=Triangular()), policy, data),
        fused(TRIANGULAR[2], policy, data, ridge=0.1),
        fused(TRIANGULAR[2], policy, data, ess_floor=20.0),
        fused(TRIANGULAR[2], POLICIES["clipped"], data),
        fused(TRIANGULAR[2], policy, log(60, bounded=True)),
    ):
        with pytest.raises(
            ValueError, match=r"needs `IPW` or `SelfNormalized` with `Triangular\(\)`"
        ):
            CCCP().minimize(objective, policy.params[None])
    with pytest.raises(ValueError, match="must be `Free` or a `Box`"):
        CCCP(constraint=Ball(1.0))
    with pytest.raises(ValueError, match="The `steps` of `CCCP` must be"):
        CCCP(steps=0)
