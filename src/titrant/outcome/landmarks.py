"""Ridge regressions on smooth bumps around landmarks, where trees would cut boxes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from titrant import _check
from titrant.outcome.base import asked_about, blocks, learned_from, scaled_weights, some, worth
from titrant.outcome.crossfit import inner_folds
from titrant.scaling import Standard, grained

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.outcome.crossfit import Folds

BLOCK = 512
"""Rows asked about at a time: their likeness to all landmarks stays in the cache."""
WIDTHS = (0.5, 1.0)
"""Widths tried of bumps in all contexts at once, in units of √k for k contexts."""
PAIR_WIDTHS = (0.4, 0.8)
"""Widths tried of bumps in two contexts at a time, in sds of a context."""
PAIRS_UP_TO = 8
"""Contexts of which there are pairs: those that matter most."""
PENALTIES = np.geomspace(1e-3, 1e3, 13)
"""λ tried, for bumps of height 1; the last leaves next to nothing."""
CHOSEN_ON = 3_000
"""Rows on which widths and penalties are chosen, at most."""
SATURATED = 0.9
"""No fit counts as spending more than this share of the rows on parameters: GCV would be 0/0."""
JITTER = 1e-6
"""Added to the kernel at the landmarks, of which two may be the same row twice."""
_FOLDS = 5


class Likeness(ABC):
    """k(z, z*) with k(z, z) = 1: how alike two contexts are."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, a: Array, b: Array) -> Array:
        """Return k (n, m) between the rows of a (n, k) and b (m, k)."""


@dataclass(frozen=True, slots=True)
class Overall(Likeness):
    """k(z, z*) = exp(−Σⱼ vⱼ(zⱼ − z*ⱼ)²/(2·width²)), v ≥ 0 of mean 1: alike in all that matters."""

    importance: Array
    """v/k (k,), of sum 1."""
    width: float
    """In units of √k."""

    def __call__(self, a: Array, b: Array) -> Array:
        """Return k (n, m)."""
        scale = np.sqrt(self.importance) / self.width
        squares = np.asarray(cdist(a * scale, b * scale, "sqeuclidean"))
        squares *= -0.5
        return np.exp(squares, out=squares)


@dataclass(frozen=True, slots=True)
class Pairs(Likeness):
    """k ∝ Σⱼ vⱼkⱼ + k·Σ_{j<l} vⱼvₗkⱼkₗ: functions of one context and of two, added up.

    kⱼ = exp(−(zⱼ − z*ⱼ)²/(2·width²)); v of sum 1. A sum over pairs is Newton's (e₁² − p₂)/2.
    """

    importance: Array
    width: float

    def __call__(self, a: Array, b: Array) -> Array:
        """Return k (n, m)."""
        used = np.argsort(-self.importance, kind="stable")[:PAIRS_UP_TO]
        v, number = self.importance[used], len(self.importance)
        # In place: on arrays of this size memory takes longer than arithmetic.
        single, squares, own = np.zeros((3, len(a), len(b)))
        for j, share in zip(used, v, strict=True):
            np.subtract(a[:, j, None], b[:, j], out=own)
            own /= self.width
            own *= own
            own *= -0.5
            np.exp(own, out=own)
            own *= share
            single += own
            own *= own
            squares += own
        height = v.sum() + 0.5 * number * (v.sum() ** 2 - np.sum(v**2))
        np.multiply(single, single, out=own)
        own -= squares
        own *= 0.5 * number
        own += single
        own /= height
        return own


def kernels(importance: Array) -> list[Likeness]:
    """Return the kernels tried."""
    return [
        *(Overall(importance, width) for width in WIDTHS),
        *(Pairs(importance, width) for width in PAIR_WIDTHS),
    ]


@dataclass(frozen=True, slots=True)
class Bumps:
    """Features f with f(z)'f(z*) ≈ k(z, z*), exact where z or z* is a landmark (Nyström)."""

    kernel: Likeness
    landmarks: Array
    """(m, k)"""
    root: Array
    """The Cholesky root of k at the landmarks (m, m)."""

    @classmethod
    def around(cls, landmarks: Array, kernel: Likeness) -> Self:
        """Lay the features out around landmarks (m, k)."""
        alike = kernel(landmarks, landmarks) + JITTER * np.eye(len(landmarks))
        return cls(kernel, landmarks, np.asarray(np.linalg.cholesky(alike), dtype=np.float64))

    def __call__(self, z: Array) -> Array:
        """Return f (n, m) at z (n, k)."""
        # The transpose is in the order that LAPACK wants: nothing is copied.
        alike = self.kernel(z, self.landmarks).T
        f = solve_triangular(self.root, alike, lower=True, overwrite_b=True, check_finite=False)
        return np.asarray(f.T)

    def in_likeness(self, c: Array) -> Array:
        """Return a (m,) with f(z)'c = Σₘ aₘk(z, zₘ): predictions need the kernel alone."""
        a = solve_triangular(self.root, c, lower=True, trans="T", check_finite=False)
        return np.asarray(a)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Bumps and penalty of least generalized cross-validation for a target."""

    score: float
    bumps: Bumps
    penalty: float

    @classmethod
    def of(
        cls, choices: Sequence[Bumps], z: Array, targets: Array, weights: Array | None = None
    ) -> list[Self]:
        """Return the choice for each of the targets (n, m) at z (n, k), rows by weights (n,)."""
        best: list[Self | None] = [None] * targets.shape[1]
        for bumps in choices:
            f = bumps(z)
            g = f if weights is None else f * weights[:, None]
            d, v = np.linalg.eigh(g.T @ f)
            scores = _gcv(np.maximum(d, 0.0), v.T @ (g.T @ targets), targets, weights)
            for j, score in enumerate(scores.T):
                known, i = best[j], int(np.argmin(score))
                if known is None or score[i] < known.score:
                    best[j] = cls(float(score[i]), bumps, float(PENALTIES[i]))
        return [choice for choice in best if choice is not None]


def _gcv(d: Array, a: Array, targets: Array, weights: Array | None = None) -> Array:
    """Return RSS/(1 − df/n)² for each penalty and target (L, m); see `ridge.ridge_gcv`."""
    n, shifted = worth(weights, len(targets)), d[:, None] + PENALTIES
    df = np.sum(d[:, None] / shifted, axis=0)
    explained = ((shifted + PENALTIES) / shifted**2).T @ a**2
    squares = np.sum(targets**2, axis=0) if weights is None else weights @ targets**2
    rss = np.maximum(squares - explained, 0.0)
    return np.asarray(rss / (1.0 - np.minimum(df / n, SATURATED))[:, None] ** 2)


class Landmarks(BaseEstimator):
    """û(x) = f(x)'c for several targets at once, f smooth bumps around some of the rows.

    Waves and rings over several contexts, and products of two that bend, are what trees of a
    thousand rows cut too coarsely. Bumps are of all contexts together, each in its sds times the
    root of its importance, or of two at a time. Which, how wide, and the penalty on c are chosen
    for each target by generalized cross-validation. Predictions are in sds of each target.

    Parameters
    ----------
    landmarks : their number, at most half of the rows.
    seed : draws them, and folds.
    """

    def __init__(self, *, landmarks: int = 200, seed: int = 0) -> None:
        self.landmarks = landmarks
        self.seed = seed

    def fit(
        self,
        X: ArrayLike,
        targets: ArrayLike,
        importance: Array | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn targets (n,) or (n, m) from contexts X (n, p); importance as in the next."""
        self.fit_out_of_fold(X, targets, importance, sample_weight=sample_weight)
        return self

    def fit_out_of_fold(
        self,
        X: ArrayLike,
        targets: ArrayLike,
        importance: Array | None = None,
        *,
        units: NDArray[np.int64] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Array:
        """Learn as `fit` does; return predictions (n, m) by coefficients without the row's fold.

        ``importance`` (k,) of the contexts in their units (`Standard.of_contexts`), of sum 1, such
        as `Forest.importance_`; None, or 0 everywhere, if all matter alike. Rows with equal
        ``units`` (n,) are in one fold.
        """
        _check.count(self.landmarks, "landmarks", "Landmarks")
        _check.count(self.seed, "seed", "Landmarks", at_least=0)
        x, aims = learned_from(X, targets, "Landmarks")
        w = scaled_weights(sample_weight, len(x), "Landmarks")
        self.n_features_in_, self.n_targets_ = x.shape[1], aims.shape[1]
        self.context_ = Standard.of_contexts(x)
        z, u = self._columns(x), grained(Standard.of(aims)(aims))
        n, k = z.shape
        matters = importance is not None and importance.sum() > 0.0
        v = np.asarray(importance) if matters else np.full(k, 1.0 / k)
        drawn = np.random.default_rng(self.seed).permutation(n)
        landmarks = z[drawn[: min(self.landmarks, max(n // 2, 1))]]
        choices = [Bumps.around(landmarks, kernel) for kernel in kernels(v)]
        few = drawn[:CHOSEN_ON]
        self.chosen_ = Chosen.of(choices, z[few], u[few], some(w, few))
        # Penalties were found on fewer rows, where sums of squares are as much smaller.
        sizes = worth(w, n), worth(some(w, few), len(few))
        fold = inner_folds(n, min(_FOLDS, n), self.seed, units)
        out = np.empty_like(u)
        self.coef_ = np.empty((len(landmarks), u.shape[1]))
        features = {id(bumps): bumps(z) for bumps in self._bumps()}
        for j, chosen in enumerate(self.chosen_):
            f = features[id(chosen.bumps)]
            penalty = chosen.penalty * sizes[0] / sizes[1]
            c, out[:, j] = _ridge(f, u[:, j], penalty, fold, w)
            self.coef_[:, j] = chosen.bumps.in_likeness(c)
        return out

    def predict(self, X: ArrayLike) -> Array:
        """Return the predictions (n, m), in sds of the targets from their means."""
        check_is_fitted(self)
        x = asked_about(X, self.n_features_in_, "Landmarks")
        z, out = self._columns(x), np.empty((len(x), self.n_targets_))
        for bumps in self._bumps():
            targets = [j for j, chosen in enumerate(self.chosen_) if chosen.bumps is bumps]
            coef = self.coef_[:, targets]
            for rows in blocks(len(x), BLOCK):
                out[rows, targets] = bumps.kernel(z[rows], bumps.landmarks) @ coef
        return out

    def _bumps(self) -> list[Bumps]:
        """Return the bumps that were chosen, each once."""
        return list({id(chosen.bumps): chosen.bumps for chosen in self.chosen_}.values())

    def _columns(self, x: Array) -> Array:
        # Grained, so that the same contexts in other units are the same numbers.
        return self.context_.grained(x) if x.shape[1] else np.zeros((len(x), 1))


def _ridge(
    f: Array, u: Array, penalty: float, fold: Folds, weights: Array | None
) -> tuple[Array, Array]:
    """Return coefficients (m,) by rows f (n, m), and predictions (n,) without the row's fold."""
    n = len(f)
    own = [(rows, f[rows]) for rows in (fold == k for k in np.unique(fold))]
    each = [(g if weights is None else g * weights[rows, None], rows, g) for rows, g in own]
    parts = [(weighted.T @ g, weighted.T @ u[rows]) for weighted, rows, g in each]
    gram, moment = (np.sum(each, axis=0) for each in zip(*parts, strict=True))
    out = np.empty(n)
    for (rows, g), (square, product) in zip(own, parts, strict=True):
        out[rows] = g @ _solved(gram - square, moment - product, penalty)
    return _solved(gram, moment, penalty), out


def _solved(gram: Array, moment: Array, penalty: float) -> Array:
    shrunk = gram.copy()
    shrunk[np.diag_indices_from(shrunk)] += penalty
    return np.asarray(np.linalg.solve(shrunk, moment), dtype=np.float64)
