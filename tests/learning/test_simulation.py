"""Repeated logs: regret, safe deployment without an effect, coverage of the honest interval."""

from __future__ import annotations

import numpy as np
import pytest

import titrant as tt
from titrant.data.simulate import DESIGNS, Synthetic, UniformDose
from titrant.outcome import Stack, ridge_pair

SIGMAS = 3  # a seeded simulation may be this many of its own standard errors off

RIDGE = {
    "procedure": tt.StackedDR(models=ridge_pair()),
    "grade": tt.DoublyRobust(outcome=Stack(ridge_pair())),
}


def mean_and_se(values) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "goal"),
    [(Synthetic(), 0.012), (Synthetic(law=UniformDose(lower=-0.5, upper=1.3)), 0.008)],
    ids=["normal", "uniform"],
)
def test_regret_on_the_papers_design(design, goal, replications):
    # The best policy, t = x, is worth 0: a value is a regret.
    regrets = [
        design.value(tt.PolicyLearner(honest=False).fit(design.draw(300, [7, r])).policy_)
        for r in range(replications(8, 100))
    ]
    assert mean_and_se(regrets)[0] <= goal


@pytest.mark.long
@pytest.mark.slow
def test_without_an_effect_little_is_deployed(replications):
    n = replications(25, 500)
    deployed = []
    for r in range(n):
        rng = np.random.default_rng([11, r])
        log = DESIGNS["synthetic"].draw(300, rng).with_outcome(rng.normal(size=300))
        deployed.append(tt.PolicyLearner(safe=True, **RIDGE).fit(log).deployed_)
    # At most 7 % of the time, give or take the error of so few replications.
    error = np.sqrt(0.05 * 0.95 / n)
    assert np.mean(deployed) <= 0.05 + max(SIGMAS * error, 0.02)


@pytest.mark.long
@pytest.mark.slow
def test_the_honest_interval_covers_the_value_of_what_was_learned(replications):
    # What is graded are the two policies learned on halves: the interval is of their mean value.
    n = replications(8, 200)
    design, covered = DESIGNS["quadratic"], []
    for r in range(n):
        log = design.draw(300, [13, r])
        found = tt.PolicyLearner(**RIDGE).fit(log)
        low, high = found.estimate_.interval()
        covered.append(low <= design.value(found.policy_) <= high)
    assert np.mean(covered) >= 0.92 - SIGMAS * np.sqrt(0.05 * 0.95 / n)
