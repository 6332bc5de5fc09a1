"""A forest that predicts outcome and dose from the context, for other models to build on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from titrant import _check
from titrant.errors import DataError
from titrant.outcome.base import asked_about, learned_from, scaled_weights, some, training
from titrant.outcome.crossfit import Folded, Folds, need_rows
from titrant.outcome.landmarks import Landmarks
from titrant.outcome.repeated import RepeatedValues
from titrant.scaling import Standard, grained

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array

FEW = 6
"""Contexts up to which a split may use any; beyond, a third of them, drawn anew."""


class Forest(BaseEstimator):
    """Random forest on x for several targets at once: m̂(x) = E[Y | x], ê(x) = E[T | x].

    Predictions are in sds of each target from its mean. To the mean of the trees they add the
    effects of values that a context repeats (`RepeatedValues`), such as the number of a clinic.
    No tree sees the dose beside the context:
    the forest supplies features, against the confounding that a penalty would leave in.

    Parameters
    ----------
    trees : their number.
    leaf : the fewest rows in a leaf.
    rows : the most rows drawn for a tree (with replacement).
    seed : draws the rows of each tree and, with many contexts, the columns of each split.

    Fitted: `trees_`, `repeated_`, `importance_` (k,), the share of each context (in its units) in
    what splits explain.
    """

    def __init__(
        self, *, trees: int = 40, leaf: int = 15, rows: int = 1_600, seed: int = 0
    ) -> None:
        self.trees = trees
        self.leaf = leaf
        self.rows = rows
        self.seed = seed

    def fit(self, X: ArrayLike, targets: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn targets (n,) or (n, m) from contexts X (n, p)."""
        self.fit_out_of_bag(X, targets, sample_weight=sample_weight)
        return self

    def fit_out_of_bag(
        self,
        X: ArrayLike,
        targets: ArrayLike,
        *,
        units: NDArray[np.int64] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Array:
        """Learn as `fit` does; return for each row what the trees grown without it say (n, m).

        Rows with equal `units` (n,) belong together: a tree is grown with all of them or none.
        Weights do not change which rows a tree is grown with, but how much each of them counts.
        """
        self._check()
        contexts, aims = learned_from(X, targets, "Forest")
        weights = scaled_weights(sample_weight, len(contexts), "Forest")
        self.n_features_in_, self.n_targets_ = contexts.shape[1], aims.shape[1]
        self.context_ = Standard.of_contexts(contexts)
        x, u = self._columns(contexts), grained(Standard.of(aims)(aims))
        rng = np.random.default_rng(self.seed)
        total, voters = np.zeros_like(u), np.zeros(len(u))
        self.trees_ = []
        size = min(len(u), self.rows)
        whole = None if units is None else np.unique(units, return_inverse=True)[1]
        # Of few rows a tree leaves out 37 %; of many nearly all, and a part of them is enough.
        stride = 1 if len(u) < 4 * size else 2
        # What is checked here a hundred times over is known: a tenth of the time.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            for k in range(self.trees):
                drawn = _drawn(rng, len(u), size, whole)
                counts = drawn if weights is None else drawn * weights
                tree = self._grown(x, u, counts, int(rng.integers(2**31)))
                out = np.flatnonzero(drawn == 0)[k % stride :: stride]
                total[out] += _values(tree, x[out])
                voters[out] += 1.0
                self.trees_.append(tree)
        self.importance_ = np.mean([tree.feature_importances_ for tree in self.trees_], axis=0)
        # A row that every tree has seen (there are very few rows) gets the mean, which is 0.
        out_of_bag = total / np.maximum(voters, 1.0)[:, None]
        left = u - out_of_bag
        self.repeated_, effects = RepeatedValues.fit_out_of_fold(
            contexts, left, self.seed, units, weights
        )
        return np.asarray(out_of_bag + effects)

    def predict(self, X: ArrayLike) -> Array:
        """Return the mean of all trees and the effects of repeated values (n, m).

        They are in sds of the targets from their means.
        """
        check_is_fitted(self)
        contexts = asked_about(X, self.n_features_in_, "Forest")
        x = self._columns(contexts)
        # Rows that lie side by side go the same way: trees take two thirds of the time.
        order = np.argsort(x[:, np.argmax(self.importance_)])
        x = x[order]
        total = _values(self.trees_[0], x)
        for tree in self.trees_[1:]:
            total += _values(tree, x)
        mean = np.empty_like(total)
        mean[order] = total / len(self.trees_)
        return np.asarray(mean + self.repeated_(contexts, total.shape[1]))

    def _check(self) -> None:
        for name in ("trees", "leaf", "rows"):
            _check.count(getattr(self, name), name, "Forest")
        _check.count(self.seed, "seed", "Forest", at_least=0)

    def _columns(self, X: Array) -> NDArray[np.float32]:
        # Grained, so that the same contexts in other units meet the same splits.
        z = self.context_.grained(X) if X.shape[1] else np.zeros((len(X), 1))
        return np.ascontiguousarray(z, dtype=np.float32)

    def _grown(
        self, x: NDArray[np.float32], u: Array, counts: Array | NDArray[np.intp], seed: int
    ) -> DecisionTreeRegressor:
        p = x.shape[1]
        rows = np.flatnonzero(counts)
        tree = DecisionTreeRegressor(
            min_samples_leaf=self.leaf,
            max_features=p if p <= FEW else max(2, p // 3),
            random_state=seed,
        )
        return tree.fit(x[rows], u[rows], counts[rows].astype(np.float64), check_input=False)


def _drawn(
    rng: np.random.Generator, n: int, size: int, unit: NDArray[np.intp] | None
) -> NDArray[np.intp]:
    """Return how often each of n rows is among about `size` drawn ones; units (n,) as a whole."""
    if unit is None:
        return np.bincount(rng.integers(n, size=size), minlength=n)
    units = int(unit.max()) + 1
    several = rng.integers(units, size=max(1, round(size * units / n)))
    return np.bincount(several, minlength=units)[unit]


def _values(tree: DecisionTreeRegressor, x: NDArray[np.float32]) -> Array:
    """Return what a tree says of each row (n, m)."""
    values = np.ascontiguousarray(tree.tree_.value[:, :, 0])
    return np.asarray(values.take(tree.tree_.apply(x), axis=0))


class FoldForests(Folded, BaseEstimator):
    """A forest and landmarks for each fold, and contexts extended by what they say of each row.

    The extended context is (x, m̂(x), ê(x), m̃(x), ẽ(x)): outcome and dose as the forest predicts
    them, then as `Landmarks` do, scaled by what mattered to the forest; ê and ẽ have one column a
    dose. A model of a fold learns from predictions that lack the row (out of bag, or out of an
    inner fold), and is asked with those of the same forest and landmarks, which have seen no row of
    the fold: they serve both nuisances.

    Parameters
    ----------
    forest : the forest to fit; it is cloned, never changed. None is `Forest(seed=seed)`.
    folds, seed : as those of the `CrossFit` it serves, so that both have the same folds.
    """

    def __init__(self, forest: Forest | None = None, *, folds: int = 5, seed: int = 0) -> None:
        self.forest = forest
        self.folds = folds
        self.seed = seed

    def fit(
        self, X: ArrayLike, t: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit on X (n, p), doses t (n,) or (n, d), outcomes y (n,) of the first rows of a log."""
        self.fit_extend(X, t, y, sample_weight=sample_weight)
        return self

    def fit_extend(
        self,
        X: ArrayLike,
        t: ArrayLike,
        y: ArrayLike,
        *,
        first_row: int = 0,
        numbers: NDArray[np.int64] | None = None,
        units: NDArray[np.int64] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> list[Array]:
        """Fit on X (n, p), doses t (n,) or (n, d), outcomes y (n,); extend the training contexts.

        Returns, for each fold, the extended contexts (n_k, p + `extra_`) of the rows outside it, in
        their order. `first_row`, `numbers` and `units` are those of `CrossFit.fit`.
        """
        _check.count(self.folds, "folds", "FoldForests", at_least=2)
        _check.count(self.seed, "seed", "FoldForests", at_least=0)
        x, doses, outcome = training(X, t, y, "FoldForests")
        need_rows(len(x), self.folds, "FoldForests")
        weights = scaled_weights(sample_weight, len(x), "FoldForests")
        fold = self.fold(first_row, len(x), numbers)
        targets = np.column_stack([outcome, doses])
        self.extra_ = 2 * targets.shape[1]
        forest = Forest(seed=self.seed) if self.forest is None else self.forest
        self.forests_: tuple[Forest, ...] = tuple(clone(forest) for _ in range(self.folds))
        self.landmarks_ = tuple(Landmarks(seed=self.seed) for _ in range(self.folds))
        extended = []
        for k, (trees, near) in enumerate(zip(self.forests_, self.landmarks_, strict=True)):
            rows = fold != k
            own, aims = x[rows], targets[rows]
            alike = None if units is None else units[rows]
            w = some(weights, rows)
            out_of_bag = trees.fit_out_of_bag(own, aims, units=alike, sample_weight=w)
            smooth = near.fit_out_of_fold(
                own, aims, trees.importance_, units=alike, sample_weight=w
            )
            extended.append(np.hstack([own, out_of_bag, smooth]))
        return extended

    def extend(self, fold: Folds, X: ArrayLike) -> Array:
        """Return the extended contexts (n, p + `extra_`), each row by the models of its fold."""
        check_is_fitted(self)
        x, fold = asked_about(X, self.forests_[0].n_features_in_, "FoldForests"), np.asarray(fold)
        if fold.shape != (len(x),):
            raise DataError(
                f"`FoldForests` needs the fold of each of {len(x):,} rows; got an array of shape "
                f"{fold.shape}."
            )
        parts = [(k, np.flatnonzero(fold == k)) for k in range(self.folds)]
        if sum(len(rows) for _, rows in parts) < len(fold):
            raise _check.invalid("fold", "FoldForests", f"between 0 and {self.folds - 1}", fold)
        extra = np.empty((len(x), self.extra_))
        for k, rows in parts:
            if len(rows):
                said = [m[k].predict(x[rows]) for m in (self.forests_, self.landmarks_)]
                extra[rows] = np.hstack(said)
        return np.hstack([x, extra])
