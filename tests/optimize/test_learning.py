"""What a learned policy owes its user: no zero of the outcome, no doses off the data, the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from laws.designs import name
from optimize.affine import affine_search
from optimize.lines import reach
from optimize.problems import POLICIES, around, fused, log
from titrant.estimators import IPW, DirectMethod, DoublyRobust, Rows, SelfNormalized
from titrant.optimize import (
    LBFGS,
    PolicyObjective,
    Second,
    exact_line,
)
from titrant.policies import Constant, Linear

POLICY = 1e-4  # parameters where the last step lowered the objective by 2e-9
PRECISE = LBFGS(value_tolerance=1e-13)

INVARIANT = [
    SelfNormalized(),
    IPW(centered=True),
    DoublyRobust(),
    DoublyRobust(self_normalized=False),
    DirectMethod(),
]


@pytest.mark.parametrize("shift", [-20.0, 20.0, 1000.0])
@pytest.mark.parametrize("estimator", INVARIANT, ids=name)
def test_a_shift_of_the_outcome_changes_no_policy(estimator, shift):
    policy = POLICIES["clipped"]
    starts = around(policy, 6)
    plain, moved = (
        PRECISE.minimize(fused(estimator, policy, log(300, shift=s), ridge=0.01), starts)
        for s in (0.0, shift)
    )
    np.testing.assert_allclose(moved.params, plain.params, atol=POLICY)
    assert moved.value == pytest.approx(plain.value + shift, abs=1e-9 * abs(shift))


def test_plain_ipw_is_moved_by_a_shift():
    policy = POLICIES["linear"]
    starts = around(policy, 6)
    plain, moved = (
        PRECISE.minimize(fused(IPW(), policy, log(300, shift=s), ridge=0.01), starts)
        for s in (0.0, 20.0)
    )
    assert np.abs(moved.params - plain.params).max() > 0.1


# ── off the data ─────────────────────────────────────────────────────────────────────────────────


def truth(n: int, seed: int = 0, loss: float = 3.0, noise: float = 0.5):
    """Rows with the best dose 1 + x'(.5, −.5, 0, 0, .3), losses around 3 and above."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5))
    best = 1 + x @ np.array([0.5, -0.5, 0.0, 0.0, 0.3])
    t = best + 0.5 * x[:, 2] + rng.normal(size=n)
    q = np.exp(-0.5 * (t - best - 0.5 * x[:, 2]) ** 2) / np.sqrt(2 * np.pi)
    y = loss + (t - best) ** 2 + noise * rng.normal(size=n)
    return best, Rows(
        tau=t[:, None],
        t=t[:, None],
        y=y,
        x=x,
        center=float(y.mean()),
        q=np.maximum(q, 0.02),
    )


def objective(estimator, rows, **penalties):
    second = Second.WEIGHTS if penalties.get("ess_floor") else Second.NONE
    search = affine_search(estimator, Linear(np.zeros(5)), rows, 0.8, second=second)
    return PolicyObjective(statistics=search, estimator=estimator, **penalties)


def searched(estimator, rows, **penalties):
    """The solution of an unbounded linear class, with starts far off the data among others."""
    phi = np.column_stack([np.ones(len(rows.t)), rows.x])
    regression = np.linalg.lstsq(phi, rows.t[:, 0], rcond=None)[0]
    noise = np.random.default_rng(1).normal(size=(12, phi.shape[1]))
    starts = regression + 2.0 * rows.t.std() / np.sqrt(phi.shape[1]) * noise
    return LBFGS().minimize(objective(estimator, rows, **penalties), starts)


def overlap(rows, params):
    """The mean weight of a policy, about 1 on the data, and its effective sample size."""
    search = affine_search(IPW(), Linear(np.zeros(5)), rows, 0.8, second=Second.ALL)
    sums = search(params[None])
    weight, square = sums.z[0, 2], sums.zz[0, 2, 2]
    return weight / sums.n, weight**2 / square if square else 0.0


def test_a_policy_off_the_data_is_never_preferred():
    # Positive losses and an unbounded class. Plain IPW rewards leaving the data: the fewer rows
    # have weight, the lower its value. This is why it is not offered without a warning.
    _, rows = truth(400)
    away = searched(IPW(), rows)
    assert away.value < 1.0 < rows.y.min()
    assert overlap(rows, away.params)[0] < 0.3

    centered = searched(IPW(centered=True), rows)
    assert centered.value < rows.center
    assert overlap(rows, centered.params)[0] > 0.7

    floor = searched(SelfNormalized(), rows, ess_floor=60.0, ess_strength=10.0)
    assert overlap(rows, floor.params)[0] > 0.7
    assert overlap(rows, floor.params)[1] > 50

    # Without a floor a self-normalized value may rest on a handful of rows.
    few = searched(SelfNormalized(), rows)
    assert few.value < floor.value


def test_with_an_ess_floor_no_start_off_the_data_looks_good():
    _, rows = truth(400)
    off = np.array([[60.0, 0, 0, 0, 0, 0], [-60.0, 0, 0, 0, 0, 0]])
    for estimator in (SelfNormalized(), IPW(), IPW(centered=True)):
        assert not np.isfinite(objective(estimator, rows, ess_floor=20.0)(off)[0]).any()


# ── the truth ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("estimator", "penalties"),
    [
        (IPW(centered=True), {"ridge": 0.001}),
        (SelfNormalized(), {"ess_floor": 100.0, "ridge": 0.001}),
    ],
    ids=["centered", "self-normalized"],
)
def test_a_linear_truth_is_found(estimator, penalties):
    # The regret of doses τ is mean (τ − best)²; logging has 1.25.
    best, rows = truth(2000)
    solution = searched(estimator, rows, **penalties)
    doses = solution.params[0] + rows.x @ solution.params[1:]
    assert np.mean((doses - best) ** 2) < 0.1


def test_maximizing_a_reward_is_minimizing_its_loss():
    _, rows = truth(300)
    reward = replace(rows, y=-rows.y, center=-rows.center)
    for estimator in (SelfNormalized(), IPW(centered=True)):
        loss = searched(estimator, rows, ridge=0.01)
        gain = searched(estimator, reward, ridge=0.01, maximize=True)
        np.testing.assert_allclose(gain.params, loss.params, atol=1e-9)
        assert gain.value == pytest.approx(loss.value)


def test_one_parameter_is_the_same_by_both_ways():
    # The constant class: L-BFGS from many starts never ends below the bound, and once on it.
    _, rows = truth(500)
    estimator = IPW(centered=True)
    exact = exact_line(estimator, rows, 0.8, ess_floor=0.0, **reach(rows, 0.8))
    search = affine_search(estimator, Constant(0.0), rows, 0.8)
    solution = LBFGS().minimize(
        PolicyObjective(statistics=search, estimator=estimator), np.linspace(-3, 5, 60)[:, None]
    )
    assert solution.values.min() >= exact.bound - 1e-12
    assert solution.value == pytest.approx(exact.value, abs=1e-8)
