"""Gradients of every objective against finite differences, and the compiled path against numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from laws.designs import name
from optimize.problems import (
    DIFFERENTIABLE,
    PENALTIES,
    POLICIES,
    OwnSums,
    applies,
    around,
    differences,
    fused,
    generic,
    log,
    with_boundary,
)
from policies.examples import PARAMETRIC
from titrant.estimators import (
    IPW,
    DirectMethod,
    DoublyRobust,
    Rows,
    SelfNormalized,
    SmoothedEstimator,
)
from titrant.kernels import Biweight, Boundary, Gaussian, Scale, Triangular, Uniform
from titrant.optimize import PolicyObjective, search_statistics, stacked
from titrant.policies import Additive, Clipped, Constant, Linear, LinearTree, Products, Tree

STEP = 1e-6
DIFFERENCE = 2e-6  # of the largest slope: rounding 1e-16/STEP, kinks of the kernel STEP × curvature
SAME = 1e-11  # relative: the same sums in another order, second moments once more removed

BENT = {
    "additive": Additive(
        [0.3, -0.2, 0.25],
        0.2,
        knots=[[-1, 0, 1], [], []],
        bends=[0.1, -0.2, 0.15],
        reach=[0.5, 0, 0],
    ),
    "products": Products(
        [0.3, -0.2, 0.25], 0.2, pairs=[(0, 2)], bends=[0.1], center=[0, 0, 0], size=[1, 1, 1]
    ),
    "tree": Tree([0], [0.1], [-1], [-2], [0.3, -0.4]),
    "linear tree": LinearTree(
        *([0], [0.1], [-1], [-2], [0.3, -0.4]),
        slopes=[[0.3, 0.0, -0.2], [0.0, 0.25, 0.0]],
        lower=[-0.4, -0.9],
        upper=[0.9, 0.5],
    ),
}
SEARCHED = POLICIES | BENT


def cases(policies):
    """Every estimator with every policy and every penalty; those that only combine them are long.

    Penalties are functions of an estimator's sums, whatever the policy: each meets the linear one,
    and every policy the richest of them.
    """

    def richest(estimator):
        return [q for q in ("se", "all, maximized") if applies(estimator, PENALTIES[q])][-1]

    return [
        pytest.param(
            *(e, policy, penalties),
            id=f"{name(e)}-{p}-{q}",
            marks=[] if p == "linear" or q == richest(e) else pytest.mark.long,
        )
        for e in DIFFERENTIABLE
        for p, policy in policies.items()
        for q, penalties in PENALTIES.items()
        if applies(e, penalties)
    ]


CASES = cases(POLICIES)


def assert_close(actual, expected, tolerance):
    size = 1 + np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * size)


def test_every_policy_with_parameters_is_among_the_cases():
    searched = {type(policy) for policy in SEARCHED.values()}
    assert searched == {type(policy) for policy in PARAMETRIC.values()}


@pytest.mark.parametrize(("estimator", "policy", "penalties"), cases(SEARCHED))
def test_gradient_is_the_finite_difference(estimator, policy, penalties):
    objective = generic(estimator, policy, log(), **penalties)
    points = around(policy)
    value, gradient = objective(points)
    assert value.shape == (3,)
    assert gradient.shape == points.shape
    assert np.abs(gradient).max() > 1e-3
    assert_close(gradient, differences(objective, points, STEP), DIFFERENCE)


@pytest.mark.parametrize(("estimator", "policy", "penalties"), CASES)
def test_compiled_sums_are_those_of_numpy(estimator, policy, penalties):
    points = around(policy, 5)
    expected = generic(estimator, policy, log(), **penalties)(points)
    for in_memory in (True, False):
        compiled = fused(estimator, policy, log(), in_memory=in_memory, **penalties)
        value, gradient = compiled(points)
        assert_close(value, expected[0], SAME)
        assert_close(gradient, expected[1], SAME)


@pytest.mark.parametrize("boundary", [Boundary.NONE, Boundary.MASS, Boundary.LINEAR])
@pytest.mark.parametrize("policy", ["linear", "clipped"])
@pytest.mark.parametrize("kernel", [Triangular(), Biweight(), Uniform()], ids=str)
@pytest.mark.parametrize("estimator", [SelfNormalized(), DoublyRobust()], ids=name)
def test_compiled_boundary_kernel_is_that_of_numpy(estimator, kernel, policy, boundary):
    # Unclipped doses also pass the bounds, where the correction is that at the bound.
    data = log(bounded=True)
    estimator = replace(with_boundary(estimator, boundary), kernel=kernel)
    points = around(POLICIES[policy], 4)
    tau = POLICIES[policy].with_params(points[0])(data.x)
    assert (tau < data.lower + 0.9).any()
    assert (tau > data.upper - 0.9).any()
    penalties = {"se_weight": 0.5, "ess_floor": 40.0}
    expected = generic(estimator, POLICIES[policy], data, **penalties)(points)
    for in_memory in (True, False):
        compiled = fused(estimator, POLICIES[policy], data, in_memory=in_memory, **penalties)
        value, gradient = compiled(points)
        assert_close(value, expected[0], SAME)
        assert_close(gradient, expected[1], SAME)


@pytest.mark.parametrize("boundary", [Boundary.MASS, Boundary.LINEAR, Boundary.QUADRATIC])
def test_gradient_near_bounds_is_the_finite_difference(boundary):
    data, policy = log(bounded=True), POLICIES["clipped"]
    estimator = SelfNormalized(boundary=boundary)
    objective = generic(estimator, policy, data, se_weight=0.3)
    points = around(policy, 2)
    assert_close(objective(points)[1], differences(objective, points, STEP), DIFFERENCE)


def test_gaussian_kernel_goes_through_numpy():
    estimator = SelfNormalized(kernel=Gaussian())
    objective = generic(estimator, POLICIES["linear"], log(), se_weight=0.3)
    points = around(POLICIES["linear"])
    assert_close(objective(points)[1], differences(objective, points, STEP), DIFFERENCE)
    with pytest.raises(ValueError, match="must be compact"):
        fused(estimator, POLICIES["linear"], log())


# ── two doses at once ────────────────────────────────────────────────────────────────────────────

PLANES = {
    "constant": Constant([0.3, -0.1]),
    "linear": Linear([[0.3, 0.1], [-0.2, 0.5], [0.25, 0.0]], [0.2, -0.1]),
    "clipped": Clipped(
        Linear([[0.6, 0.3], [-0.2, 0.5], [0.25, 0.4]], [0.2, 0.1]), -0.6, [0.7, 0.9]
    ),
}


def plane_rows(policy) -> Rows:
    rng = np.random.default_rng(5)
    x, t = rng.normal(size=(80, 3)), rng.normal(size=(80, 2)) * 0.7
    y = ((t - 0.3 * x[:, :2]) ** 2).sum(axis=1) + 0.2 * rng.normal(size=80)
    tau = policy(x)
    return Rows(
        tau=tau,
        t=t,
        y=y,
        x=x,
        center=float(y.mean()),
        q=rng.uniform(0.2, 1.0, 80),
        r_tau=np.cos(tau).sum(axis=1) + x[:, 0] * tau[:, 1],
        r_logged=np.cos(t).sum(axis=1) + x[:, 0] * t[:, 1],
        r_slope=-np.sin(tau) + np.stack([np.zeros(80), x[:, 0]], axis=1),
    )


@pytest.mark.parametrize("penalties", ["none", "all, maximized"])
@pytest.mark.parametrize("policy", PLANES.values(), ids=PLANES)
@pytest.mark.parametrize("estimator", DIFFERENTIABLE, ids=name)
def test_gradient_of_two_doses(estimator, policy, penalties):
    settings = dict(PENALTIES[penalties])
    if isinstance(estimator, DirectMethod):
        settings.pop("ess_floor", None)
    scale = Scale.of([1.1, 1.4], 2)

    def statistics(params):
        moved = [policy.with_params(p) for p in params]
        return stacked([search_statistics(estimator, p, scale, plane_rows(p)) for p in moved])

    objective = PolicyObjective(statistics=OwnSums(statistics), estimator=estimator, **settings)
    points = around(policy, 2)
    assert_close(objective(points)[1], differences(objective, points, STEP), DIFFERENCE)


# ── the gradients of the specification ───────────────────────────────────────────────────────────


def test_gradients_of_the_specification():
    # IPW, Epanechnikov: dv/dβ = −(3/(2nh²)) Σ x u (y/q) 1{|u| ≤ 1}, u = (τ − t)/h;
    # SN: (1/(hB)) Σ x K′(u)(y − v)/q, B = ΣK(u)/q.
    data, policy, h = log(), POLICIES["linear"], 0.9
    x = np.column_stack([np.ones(len(data.t)), data.x])
    u = (policy(data.x) - data.t) / h
    inside, k = np.abs(u) <= 1, 0.75 * (1 - u**2) * (np.abs(u) <= 1)
    ipw = -1.5 / (len(u) * h**2) * x.T @ (u * data.y / data.q * inside)
    b = (k / data.q).sum()
    v = (k * data.y / data.q).sum() / b
    sn = x.T @ (-1.5 * u * inside * (data.y - v) / data.q) / (h * b)
    for estimator, expected in ((IPW(), ipw), (SelfNormalized(), sn)):
        _, gradient = fused(estimator, policy, data)(policy.params[None])
        assert_close(gradient[0], expected, SAME)


def test_every_kernel_estimator_is_here():
    assert sum(isinstance(e, SmoothedEstimator) for e in DIFFERENTIABLE) == 5
    assert any(isinstance(e, DirectMethod) for e in DIFFERENTIABLE)
