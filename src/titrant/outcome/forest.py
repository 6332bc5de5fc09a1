"""A forest that predicts outcome and dose from the context, for other models to build on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.tree import DecisionTreeRegressor

from titrant import _check
from titrant.outcome.base import training
from titrant.outcome.folds import Folds, fold_at, fold_of, need_rows
from titrant.outcome.standard import Standard, grained

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

FEW = 6
"""Contexts up to which a split may use any; beyond, a third of them, drawn anew."""


class Forest(BaseEstimator):
    """Random forest on x for several targets at once: m̂(x) = E[Y | x], ê(x) = E[T | x].

    Predictions are in sds of each target from its mean. No tree sees the dose beside the context:
    the forest supplies features, against the confounding that a penalty would leave in.

    Parameters
    ----------
    trees : their number.
    leaf : the fewest rows in a leaf.
    rows : the most rows drawn for a tree (with replacement).
    seed : draws the rows of each tree and, with many contexts, the columns of each split.
    """

    def __init__(
        self, *, trees: int = 100, leaf: int = 15, rows: int = 2_500, seed: int = 0
    ) -> None:
        self.trees = trees
        self.leaf = leaf
        self.rows = rows
        self.seed = seed

    def fit(self, X: Array, targets: Array) -> Self:
        """Learn targets (n, m) from contexts X (n, p)."""
        self.fit_out_of_bag(X, targets)
        return self

    def fit_out_of_bag(self, X: Array, targets: Array) -> Array:
        """Learn as `fit` does; return for each row what the trees grown without it say (n, m)."""
        self._check()
        self.context_ = Standard.of_contexts(X)
        x, u = self._columns(X), grained(Standard.of(targets)(targets))
        rng = np.random.default_rng(self.seed)
        total, voters = np.zeros_like(u), np.zeros(len(u))
        self.trees_ = []
        size = min(len(u), self.rows)
        # Of few rows a tree leaves out 37 %; of many nearly all, and a part of them is enough.
        stride = 1 if len(u) < 4 * size else 2
        for k in range(self.trees):
            drawn = np.bincount(rng.integers(len(u), size=size), minlength=len(u))
            tree = self._grown(x, u, drawn, int(rng.integers(2**31)))
            out = np.flatnonzero(drawn == 0)[k % stride :: stride]
            total[out] += _values(tree, x[out])
            voters[out] += 1.0
            self.trees_.append(tree)
        # A row that every tree has seen (there are very few rows) gets the mean, which is 0.
        return np.asarray(total / np.maximum(voters, 1.0)[:, None])

    def predict(self, X: Array) -> Array:
        """Return the mean of all trees (n, m), in sds of the targets from their means."""
        x = self._columns(X)
        total = _values(self.trees_[0], x)
        for tree in self.trees_[1:]:
            total += _values(tree, x)
        return np.asarray(total / len(self.trees_))

    def _check(self) -> None:
        for name in ("trees", "leaf", "rows"):
            _check.count(getattr(self, name), name, "Forest")
        _check.count(self.seed, "seed", "Forest", at_least=0)

    def _columns(self, X: Array) -> NDArray[np.float32]:
        # Grained, so that the same contexts in other units meet the same splits.
        z = self.context_.grained(X) if X.shape[1] else np.zeros((len(X), 1))
        return np.ascontiguousarray(z, dtype=np.float32)

    def _grown(
        self, x: NDArray[np.float32], u: Array, drawn: NDArray[np.intp], seed: int
    ) -> DecisionTreeRegressor:
        p = x.shape[1]
        rows = np.flatnonzero(drawn)
        tree = DecisionTreeRegressor(
            min_samples_leaf=self.leaf,
            max_features=p if p <= FEW else max(2, p // 3),
            random_state=seed,
        )
        # What is checked here a hundred times over is known: a tenth of the time.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            return tree.fit(x[rows], u[rows], drawn[rows].astype(np.float64), check_input=False)


def _values(tree: DecisionTreeRegressor, x: NDArray[np.float32]) -> Array:
    """Return what a tree says of each row (n, m)."""
    return np.asarray(tree.tree_.value[tree.tree_.apply(x), :, 0])


class FoldForests(BaseEstimator):
    """A forest for each fold, and contexts extended by what it says of each row.

    The extended context is (x, m̂(x), ê(x)), the last with one column a dose. A model of a fold
    learns from the out-of-bag predictions of that fold's forest, and is asked with the predictions
    of the same forest, which has seen no row of the fold: one forest serves both nuisances.

    Parameters
    ----------
    forest : the forest to fit; it is cloned, never changed. None is `Forest(seed=seed)`.
    folds, seed : as those of the `CrossFit` it serves, so that both have the same folds.
    """

    def __init__(self, forest: Forest | None = None, *, folds: int = 5, seed: int = 0) -> None:
        self.forest = forest
        self.folds = folds
        self.seed = seed

    def fit_extend(
        self,
        X: Array,
        t: Array,
        y: Array,
        *,
        first_row: int = 0,
        numbers: NDArray[np.int64] | None = None,
    ) -> list[Array]:
        """Fit on X (n, p), doses t (n,) or (n, d), outcomes y (n,); extend the training contexts.

        Returns, for each fold, the extended contexts (n_k, p + 1 + d) of the rows outside it, in
        their order. `first_row` and `numbers` are those of `CrossFit.fit`.
        """
        _check.count(self.folds, "folds", "FoldForests", at_least=2)
        _check.count(self.seed, "seed", "FoldForests", at_least=0)
        x, doses, outcome = training(X, t, y, "FoldForests")
        need_rows(len(x), self.folds, "FoldForests")
        fold = self.fold(first_row, len(x)) if numbers is None else self.fold_at(numbers)
        targets = np.column_stack([outcome, doses])
        forest = Forest(seed=self.seed) if self.forest is None else self.forest
        self.forests_: tuple[Forest, ...] = tuple(clone(forest) for _ in range(self.folds))
        extended = []
        for k, own in enumerate(self.forests_):
            rows = fold != k
            extended.append(np.hstack([x[rows], own.fit_out_of_bag(x[rows], targets[rows])]))
        return extended

    def extend(self, fold: Folds, X: Array) -> Array:
        """Return the extended contexts (n, p + 1 + d), each row by the forest of its fold."""
        parts = [(k, np.flatnonzero(fold == k)) for k in range(self.folds)]
        if sum(len(rows) for _, rows in parts) < len(fold):
            raise _check.invalid("fold", "FoldForests", f"between 0 and {self.folds - 1}", fold)
        said = {k: self.forests_[k].predict(X[rows]) for k, rows in parts if len(rows)}
        extra = np.empty((len(X), *next((s.shape[1:] for s in said.values()), (0,))))
        for k, rows in parts:
            if len(rows):
                extra[rows] = said[k]
        return np.hstack([X, extra])

    def extend_new(self, X: Array) -> Array:
        """Return the contexts of new rows as each fold's forest extends them (folds, n, p + 1 + d).

        New rows are in no fold: a model's answer is the mean over all of them.
        """
        return np.stack([np.hstack([X, forest.predict(X)]) for forest in self.forests_])

    def fold(self, first_row: int, n: int) -> Folds:
        """Return the folds of rows first_row … first_row + n − 1 of the whole log (n,)."""
        return fold_of(first_row, n, self.folds, self.seed)

    def fold_at(self, numbers: NDArray[np.int64]) -> Folds:
        """Return the folds of rows with these numbers in the whole log (n,)."""
        return fold_at(numbers, self.folds, self.seed)
