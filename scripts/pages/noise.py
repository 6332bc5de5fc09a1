"""Learning from nothing: outcomes are noise, so every policy has the value zero."""

from __future__ import annotations

import numpy as np

import titrant as tt


def noise(contexts: int, seed: int, n: int = 300) -> tt.LoggedData:
    """Return a log whose outcome depends on neither context nor dose."""
    rng = np.random.default_rng(seed)
    x, t, y = rng.normal(size=(n, contexts)), rng.normal(size=n), rng.normal(size=n)
    return tt.LoggedData(x, t, y, np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi))


def learned_from_noise(contexts: int, seed: int) -> float:
    """Return the value of a learned linear policy on the rows it was learned from."""
    search = tt.CPO(estimator=tt.SelfNormalized(), bandwidth=0.4, ess_floor=30, restarts=8)
    learner = tt.PolicyLearner(procedure=search, honest=False).fit(noise(contexts, seed))
    return float(learner.solution_.value)
