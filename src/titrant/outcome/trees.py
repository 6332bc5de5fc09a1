"""Extremely randomized trees, smoothed over the dose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from titrant import _check
from titrant.outcome.base import OutcomeModel, inputs, training
from titrant.outcome.standard import Standard, residual_sd

if TYPE_CHECKING:
    from titrant._types import Array

STEPS = np.arange(-2.0, 3.0)
WEIGHTS = np.array([1.0, 4.0, 6.0, 4.0, 1.0]) / 16.0
"""The binomial kernel: variance 1 in steps, next to a Gaussian, five evaluations."""


class Trees(OutcomeModel):
    """r̂(t, x) = Σₖ wₖ·forest(x, t + k·width·s), k = −2 … 2: a forest smoothed over nearby doses.

    s is the sd of the dose that the context does not explain (after least squares on x), and the
    binomial weights 1, 4, 6, 4, 1 make `width`·s the standard deviation of the smoothing. Several
    doses are smoothed one at a time and averaged.

    Parameters
    ----------
    trees : their number.
    leaf : the fewest rows in a leaf.
    width : of the smoothing, in s.
    seed : draws the splits.
    """

    def __init__(
        self, *, trees: int = 40, leaf: int = 5, width: float = 0.25, seed: int = 0
    ) -> None:
        self.trees = trees
        self.leaf = leaf
        self.width = width
        self.seed = seed

    def fit(self, X: Array, t: Array, y: Array) -> Self:
        """Learn from contexts X (n, p), doses t (n,) or (n, d) and outcomes y (n,)."""
        x, doses, outcome = training(X, t, y, "Trees")
        width = _check.nonnegative(self.width, "width", "Trees")
        self.columns_ = Standard.of(np.hstack([x, doses]))
        self.outcome_ = Standard.of(outcome[:, None])
        self.steps_ = width * residual_sd(x, doses)
        self.forest_ = ExtraTreesRegressor(
            _check.count(self.trees, "trees", "Trees"),
            min_samples_leaf=_check.count(self.leaf, "leaf", "Trees"),
            random_state=_check.count(self.seed, "seed", "Trees", at_least=0),
        )
        self.forest_.fit(
            self.columns_.grained(np.hstack([x, doses])),
            self.outcome_.grained(outcome[:, None])[:, 0],
        )
        return self

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        x, doses = inputs(X, t, "Trees")
        mean = np.zeros(len(x))
        for direction in np.diag(self.steps_):
            # One call for all steps: a forest's call costs more than its rows.
            shifted = np.vstack([np.hstack([x, doses + step * direction]) for step in STEPS])
            at_steps = self.forest_.predict(self.columns_.grained(shifted)).reshape(len(STEPS), -1)
            mean += WEIGHTS @ at_steps / len(self.steps_)
        return self.outcome_.back(mean[:, None])[:, 0]
