"""One absurd outcome decides neither the class nor the doses of a learned rule, and is named."""

from __future__ import annotations

import numpy as np
import pytest

import titrant as tt
from learn.examples import FAST, GRADE
from titrant.learn.vector import VectorDR

NEAR = 0.05
"""Of the sd of the doses: one row of some hundreds counts as the median in place of itself."""
N = 400


def straight(rng, x, t):
    return (t - 0.6 * x[:, 0] - 0.3) ** 2 + 0.5 * rng.normal(size=len(t))


def bent(rng, x, t):
    return np.abs(t - np.maximum(x[:, 0], 0.0)) + 5.0 + 0.3 * rng.normal(size=len(t))


def yes_or_no(rng, x, t):
    return 1.0 * (rng.random(len(t)) < 1.0 / (1.0 + np.exp(2.0 - (t - x[:, 0]) ** 2)))


def costs(rng, x, t):
    gap = np.minimum((t - 0.7 * x[:, 0]) ** 2, 6.0)
    return np.exp(0.5 * gap + 0.8 * rng.normal(size=len(t)))


DESIGNS = [straight, bent, yes_or_no, costs]


def drawn(outcome, n=N):
    rng = np.random.default_rng(5)
    x, t = rng.normal(size=(n, 2)), rng.normal(size=n)
    return x, t, outcome(rng, x, t)


def spoiled(y, by):
    z = y.copy()
    z[np.flatnonzero(y > 0.0)[7]] *= by
    return z


def learned(x, t, y, **how):
    q = np.exp(-0.5 * (t**2).reshape(len(t), -1).sum(axis=1)) / (2.0 * np.pi) ** (t[0].size / 2)
    how = {"procedure": FAST, "honest": False, **how}
    return tt.PolicyLearner(**how).fit(tt.LoggedData(x, t, y, q))


@pytest.mark.parametrize("outcome", DESIGNS)
def test_the_rule_is_that_of_the_clean_log(outcome):
    x, t, y = drawn(outcome)
    clean = learned(x, t, y)
    doses = clean.policy_(x)
    assert clean.notes_ == ()
    for by in (1e6, -1e6):
        found = learned(x, t, spoiled(y, by))
        assert found.choice_.chosen == clean.choice_.chosen
        assert np.sqrt(np.mean((found.policy_(x) - doses) ** 2)) < NEAR * max(doses.std(), 0.1)


def test_rewards_are_held_as_losses_are():
    x, t, y = drawn(straight)
    loss = learned(x, t, spoiled(y, 1e6))
    reward = learned(x, t, -spoiled(y, 1e6), maximize=True)
    np.testing.assert_allclose(reward.policy_(x), loss.policy_(x), atol=1e-8)


def test_it_is_told_and_without_an_honest_value_too():
    x, t, y = drawn(straight)
    z = spoiled(y, 1e6)
    held, doubt = learned(x, t, z).notes_
    assert "1 of 400 rows" in held
    assert f"counts it as the median, {np.median(z):.6g}" in held
    assert "far from all others" in doubt


def test_the_honest_value_counts_it_as_it_is():
    x, t, y = drawn(straight)
    z = spoiled(y, 1e6)
    found = learned(x, t, z, honest=True, grade=GRADE)
    assert len(found.notes_) == 1
    graded = found.estimate_.comparison
    assert graded["learned"].diagnostics["stray_outcomes"].verdict.value == "warn"
    # The status quo has the mean of all outcomes, the absurd one among them.
    assert graded["status quo"].value == pytest.approx(z.mean())


@pytest.mark.long
def test_several_doses_are_learned_from_held_outcomes():
    rng = np.random.default_rng(3)
    x, t = rng.normal(size=(N, 1)), rng.normal(size=(N, 2))
    y = np.sum((t - 0.5 * x) ** 2, axis=1) + 0.3 * rng.normal(size=N)
    clean = learned(x, t, y, procedure=VectorDR())
    found = learned(x, t, spoiled(y, -1e6), procedure=VectorDR())
    assert found.choice_.chosen == clean.choice_.chosen
    assert np.abs(found.policy_(x) - clean.policy_(x)).max() < NEAR
    assert "1 of 400 rows" in found.notes_[0]


def test_an_absurd_dose_is_named_where_nothing_can_be_graded():
    x, t, y = drawn(straight)
    z = t.copy()
    z[7] = 1e5  # the mean dose is 250, where nobody is
    learner = tt.PolicyLearner(procedure=FAST, grade=GRADE)
    with pytest.raises(tt.NoOverlap, match=r"'mean dose' cannot be graded\. .* such as 100000:"):
        learner.fit(tt.LoggedData(x, z, y))
