"""Extremely randomized trees, smoothed over the dose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn import config_context
from sklearn.tree import ExtraTreeRegressor
from sklearn.utils import check_array

from titrant import _check
from titrant.outcome.base import BLOCK, OutcomeModel, blocks, inputs, scaled_weights, training
from titrant.scaling import Standard, residual_sd

if TYPE_CHECKING:
    from numpy.typing import NDArray

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

    def fit(self, X: Array, t: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Learn from contexts X (n, p), doses t (n,) or (n, d) and outcomes y (n,)."""
        x, doses, outcome = training(X, t, y, "Trees")
        width = _check.nonnegative(self.width, "width", "Trees")
        self.context_, self.dose_ = Standard.of_contexts(x), Standard.of_doses(doses)
        self.outcome_ = Standard.of(outcome[:, None])
        self.steps_ = width * residual_sd(x, doses)
        trees = _check.count(self.trees, "trees", "Trees")
        leaf = _check.count(self.leaf, "leaf", "Trees")
        draws = np.random.RandomState(_check.count(self.seed, "seed", "Trees", at_least=0))
        columns, aim = self._columns(x, doses), self.outcome_.grained(outcome[:, None])
        weights = scaled_weights(sample_weight, len(x), "Trees")
        # The very trees of scikit-learn's `ExtraTreesRegressor`, whose copies, threads and checks
        # of each tree take half as long again as growing it.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            self.trees_ = [
                ExtraTreeRegressor(min_samples_leaf=leaf, random_state=seed).fit(
                    columns, aim, weights, check_input=False
                )
                for seed in draws.randint(np.iinfo(np.int32).max, size=trees)
            ]
        return self

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        x, doses = inputs(X, t, "Trees")
        mean = np.zeros(len(x))
        for direction in np.diag(self.steps_):
            # One call for all steps: a forest's call costs more than its rows.
            shifted = np.vstack([self._columns(x, doses + step * direction) for step in STEPS])
            at_steps = self._predicted(shifted).reshape(len(STEPS), -1)
            mean += WEIGHTS @ at_steps / len(self.steps_)
        return self.outcome_.back(mean[:, None])[:, 0]

    def curve(self, X: Array, doses: Array) -> Array:
        """Return r̂(doses[j], xᵢ) (n, G) for a grid of scalar doses (G,)."""
        from titrant.compiled.forest import forest_curves  # noqa: PLC0415  (numba)

        nodes = _nodes(self.trees_)
        # All five steps in one ascending grid: a row walks down each tree once for all of it.
        shifted = (doses + np.outer(STEPS, self.steps_)).ravel()
        order = np.argsort(shifted)
        grid = _single(self.dose_.grained(shifted[order, None]))[:, 0]
        curves = np.empty((len(X), len(doses)))
        for rows in blocks(len(X), max(1, BLOCK // len(doses))):
            sorted_steps = forest_curves(_single(self.context_.grained(X[rows])), grid, *nodes)
            at_steps = sorted_steps[:, np.argsort(order)].reshape(-1, len(STEPS), len(doses))
            mean = WEIGHTS @ at_steps.swapaxes(0, 1).reshape(len(STEPS), -1)
            curves[rows] = self.outcome_.back(mean[:, None]).reshape(-1, len(doses))
        return curves

    def _columns(self, x: Array, t: Array) -> NDArray[np.float32]:
        """Return what the trees see of contexts x (n, p) and doses t (n, d)."""
        return _single(np.hstack([self.context_.grained(x), self.dose_.grained(t)]))

    def _predicted(self, columns: NDArray[np.float32]) -> Array:
        """Return the mean of the trees (n,), in sds of the outcome from its mean."""
        total = np.zeros(len(columns))
        for tree in self.trees_:
            total += tree.tree_.predict(columns)[:, 0]
        return total / len(self.trees_)


def _single(x: Array) -> NDArray[np.float32]:
    """Return finite numbers as scikit-learn's trees compare them."""
    return np.asarray(check_array(x, dtype=np.float32, ensure_min_features=0))


def _nodes(grown: list[ExtraTreeRegressor]) -> tuple[NDArray[Any], ...]:
    """Return the roots of all trees, then children, features, thresholds and values of all nodes.

    See `titrant.compiled.forest`.
    """
    trees = [estimator.tree_ for estimator in grown]
    roots = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
    sides = [np.column_stack([tree.children_left, tree.children_right]) for tree in trees]
    children = [np.where(s < 0, s, s + root) for s, root in zip(sides, roots, strict=True)]
    columns = ((t.feature, t.threshold, t.value[:, 0, 0]) for t in trees)
    return roots, np.concatenate(children), *map(np.concatenate, zip(*columns, strict=True))
