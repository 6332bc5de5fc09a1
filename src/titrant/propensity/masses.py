"""Laws of doses with point masses: P(T = aₖ | x) at each, and a density elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from titrant import _check
from titrant.data.masses import reach_of
from titrant.outcome.base import scaled_weights, some
from titrant.outcome.context import ContextMap
from titrant.outcome.crossfit import Folded, Folds, need_rows
from titrant.propensity.average import FLOOR, likeliest
from titrant.propensity.base import as_doses
from titrant.scaling import Standard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.data.masses import PointMasses

    Index = NDArray[np.intp]

PENALTIES = (0.01, 0.1)
"""Inverse ridge penalties of the softmax regressions that are averaged."""
_STEPS = 100
_SETTLED = 1e-3


class ScalarLaws(Protocol):
    """The laws of one dose in n rows."""

    def density(self, t: ArrayLike) -> Array:
        """Return f(t|x), (n,)."""

    def cdf(self, t: ArrayLike) -> Array:
        """Return F(t|x), (n,)."""

    def between(self, low: Array, high: Array) -> Array:
        """Return P(low < T ≤ high | x), (n,)."""


# The law itself.
#
# Its density is taken with respect to dt + s·Σδ_a: at a point mass it is P(T = a | x)/s, with s the
# sd of all doses. So it has the unit of a density everywhere, and floors, supports and ranks need
# no case of their own.


@dataclass(frozen=True, slots=True)
class MixedLaws:
    """The laws of a dose with point masses in n rows.

    `probabilities` (n, K) are those of the K point masses; `rest` is the law of the other doses, or
    None where doses are levels: between two of them the density is then interpolated. `rare` (n, 3)
    are the probabilities of a dose that is none of the levels: below, between and above them. On
    each side such doses are taken to be as likely as their rows are many, whatever the contexts.
    """

    masses: PointMasses
    probabilities: Array
    rest: ScalarLaws | None
    unit: float
    """s, the sd of all doses."""
    rare: Array | None = None

    def density(self, t: ArrayLike) -> Array:
        """Return the density with respect to dt + s·Σδ_a, (n,)."""
        t = as_doses(t, len(self.probabilities))
        k = self.masses.index(t)
        at = self.probabilities[np.arange(len(k)), k] / self.unit
        return np.asarray(np.where(k >= 0, at, self.beside(t)))

    def at_masses(self, n: int) -> Array:  # noqa: ARG002
        """Return P(T = aₖ | x) (n, K)."""
        return self.probabilities

    def at_rare(self, t: Array) -> Array:
        """Return P(T = t | x) (n,) of doses that rows without a level have, 0 elsewhere."""
        if self.rare is None:
            return np.zeros(len(t))
        return np.asarray(np.sum(self.rare * self.masses.rare_at(t), axis=1))

    def beside(self, t: Array) -> Array:
        """Return the density (n,) with respect to dt alone, at point masses too."""
        if self.rest is not None:
            return self._other * self.rest.density(t)
        levels = self.masses.values
        heights = self.probabilities / self.masses.spacing
        right = np.clip(np.searchsorted(levels, t), 1, max(len(levels) - 1, 1)) % len(levels)
        left, row = right - 1, np.arange(len(t))
        step = np.where(levels[right] > levels[left], levels[right] - levels[left], 1.0)
        share = np.clip((t - levels[left]) / step, 0.0, 1.0)
        return np.asarray((1.0 - share) * heights[row, left] + share * heights[row, right])

    def cdf(self, t: ArrayLike) -> Array:
        """Return F(t|x) = P(T ≤ t | x), (n,)."""
        t = as_doses(t, len(self.probabilities))
        reached = self.masses.values <= t[:, None]
        total = np.sum(self.probabilities * reached, axis=1)
        if self.rest is not None:
            total = total + self._other * self.rest.cdf(t)
        elif self.rare is not None:
            total = total + np.sum(self.rare * self.masses.rare_up_to(t), axis=1)
        return np.asarray(np.minimum(total, 1.0), dtype=np.float64)

    def between(self, low: Array, high: Array) -> Array:
        """Return P(low < T ≤ high | x) (n,) between edges (n,)."""
        return np.asarray(np.maximum(self.cdf(high) - self.cdf(low), 0.0))

    def ranks(self, t: Array) -> Array:
        """Return F(t|x), spread evenly over its step where t (n,) is a point mass, (n,)."""
        k = self.masses.index(t)
        step = np.where(k >= 0, self.probabilities[np.arange(len(k)), k], 0.0)
        # With rounding in the sums, a rank may leave 0 … 1 by as much.
        spread = self.cdf(t) - step * np.random.default_rng(0).random(len(t))
        return np.asarray(np.clip(spread, 0.0, 1.0))

    @property
    def _other(self) -> Array:
        """P(T is no point mass | x) (n,)."""
        return np.asarray(np.maximum(1.0 - self.probabilities.sum(axis=1), 0.0))


@dataclass(frozen=True, slots=True)
class KnownMixedLaws:
    """Laws that are known: at a point mass what they call a density is its probability."""

    masses: PointMasses
    known: ScalarLaws
    unit: float

    def density(self, t: ArrayLike) -> Array:
        """Return the density with respect to dt + s·Σδ_a, (n,)."""
        return read_at_masses(self.known.density(t), np.ravel(t), self.masses, self.unit)

    def at_masses(self, n: int) -> Array:
        """Return P(T = aₖ | x) (n, K)."""
        return np.stack([self.known.density(np.full(n, a)) for a in self.masses.values], axis=1)

    def at_rare(self, t: Array) -> Array:
        """Return P(T = t | x) (n,) of doses that rows without a level have, 0 elsewhere."""
        there = self.masses.rare_at(t).any(axis=1)
        return np.where(there, self.known.density(t), 0.0)

    def beside(self, t: Array) -> Array:
        """Return the density (n,) with respect to dt alone; at a point mass, that just beside."""
        values = self.masses.values
        k = self.masses.index(t)
        # Toward the other doses: beyond a point mass at the end of all there are none.
        side = np.where(values == self.masses.high, -1.0, 1.0)
        beside = values + 4.0 * side * reach_of(values)
        return self.known.density(np.where(k >= 0, beside[k], t))

    def cdf(self, t: ArrayLike) -> Array:
        """Return F(t|x), (n,)."""
        return self.known.cdf(t)

    def between(self, low: Array, high: Array) -> Array:
        """Return P(low < T ≤ high | x) (n,) between edges (n,)."""
        return self.known.between(low, high)


def read_at_masses(q: Array, t: Array, masses: PointMasses, unit: float) -> Array:
    """Return propensities (n,) of doses t (n,), probabilities at point masses divided by s."""
    return np.asarray(np.where(masses.index(t) >= 0, q / unit, q))


def interval_probabilities(laws: ScalarLaws, masses: PointMasses, n: int) -> Array:
    """Return the probability of each level as that of the doses nearer to it than to others.

    Behind them (n, K + 3) is that of a dose below, between and above the levels; below and above,
    of one that is nearer to such a dose of the log. Between them it is their share of the rows.
    """
    values, side = masses.values, masses.side(masses.rare)
    outer = masses.rare[side == 0][-1:], masses.rare[side == 2][:1]  # noqa: PLR2004  (above)
    known = np.concatenate([outer[0], values, outer[1]])
    edges = (known[1:] + known[:-1]) / 2.0
    ends = [np.zeros(n), *(laws.cdf(np.full(n, edge)) for edge in edges), np.ones(n)]
    p = np.maximum(np.diff(np.stack(ends, axis=1), axis=1), 0.0)
    first = len(outer[0])
    below, above = p[:, :first].sum(axis=1), p[:, first + len(values) :].sum(axis=1)
    between = float(masses.rare_shares[side == 1].sum())
    each = np.column_stack([p[:, first : first + len(values)], below, np.zeros(n), above])
    each *= 1.0 - between
    each[:, -2] = between
    return each


# The probabilities of point masses, cross-fitted.


class CrossMasses(Folded, BaseEstimator):
    """P(T = aₖ | x), for each fold by models fitted on the rows of all others.

    An average of softmax regressions on the features φ(x) that the other default models have, at
    several ridge penalties, of the shares of all rows, and of probabilities found otherwise
    (`latent`); weighted, as `CrossPropensity` is, by how well they predict the rows of other folds.

    Parameters
    ----------
    extra : columns at the end of the contexts that enter as they are.
    folds, seed : those of the other models.

    Fitted: `weights_`, `classes_` (point masses and, if there are any, other doses).
    """

    def __init__(self, *, extra: int = 0, folds: int = 5, seed: int = 0) -> None:
        self.extra = extra
        self.folds = folds
        self.seed = seed

    def fit(
        self,
        index: Index,
        *,
        size: int,
        extended: Sequence[Array],
        held_out: Array,
        fold: Folds,
        latent: Array | None = None,
        sample_weight: Array | None = None,
    ) -> Self:
        """Fit to which of `size` point masses each row has (n,), −1 for none.

        `extended` are the contexts of the rows outside each fold, `held_out` (n, q) those of all
        rows as the fold's models see them; `latent` (n, K) probabilities to be averaged in.
        """
        need_rows(len(index), self.folds, "CrossMasses")
        w = scaled_weights(sample_weight, len(index), "CrossMasses")
        self.size_ = size
        label = np.where(index < 0, size, index)
        total = len(label) if w is None else float(w.sum())
        self.shares_ = np.bincount(label, weights=w, minlength=size + 1) / total
        self.fits_ = tuple(
            softmax_path(own, label[fold != k], self.extra, size + 1, some(w, fold != k))
            for k, own in enumerate(extended)
        )
        each = self._members(fold, held_out, latent)
        self.weights_ = likeliest(np.maximum(each[np.arange(len(label)), :, label], FLOOR), w)
        return self

    def probabilities(self, fold: Folds, X: Array, latent: Array | None = None) -> Array:
        """Return P(T = aₖ | x) (n, K) of rows in these folds (n,), contexts X (n, q) extended."""
        check_is_fitted(self)
        if fold.min(initial=0) < 0 or fold.max(initial=0) >= self.folds:
            rule = f"between 0 and {self.folds - 1}"
            raise _check.invalid("fold", "CrossMasses", rule, fold)
        average = np.einsum("nmk,m->nk", self._members(fold, X, latent), self.weights_)
        return np.asarray(average[:, : self.size_])

    def _members(self, fold: Folds, X: Array, latent: Array | None) -> Array:
        """Return the probabilities of each member (n, M, K + 1)."""
        n, size = len(fold), self.size_
        known = [np.broadcast_to(self.shares_, (n, 1, size + 1))]
        if latent is not None:
            scaled = latent * (1.0 - self.shares_[-1])
            known.append(np.column_stack([scaled, np.full(n, self.shares_[-1])])[:, None])
        learned = np.empty((n, len(PENALTIES), size + 1))
        for k, fit in enumerate(self.fits_):
            rows = np.flatnonzero(fold == k)
            if len(rows):
                learned[rows] = fit(X[rows])
        return np.concatenate([*known, learned], axis=1)


@dataclass(frozen=True, slots=True)
class SoftmaxPath:
    """Softmax regressions on the same features, at several penalties."""

    context: ContextMap
    units: Standard
    coef: Array
    """(penalties, F + 1, classes); the last feature is the constant."""

    def __call__(self, x: Array) -> Array:
        """Return the probabilities (n, penalties, classes) at contexts x (n, q)."""
        z = np.column_stack([self.units(self.context(x)), np.ones(len(x))])
        scores = np.einsum("nf,pfk->npk", z, self.coef)
        top = np.exp(scores - scores.max(axis=2, keepdims=True))
        return np.asarray(top / top.sum(axis=2, keepdims=True))


def softmax_path(
    x: Array, label: Index, extra: int, size: int, weights: Array | None = None
) -> SoftmaxPath:
    """Return the regressions of labels 0 … size − 1 (n,) on contexts x (n, q)."""
    context = ContextMap.of(x, extra)
    phi = context(x)
    units = Standard.of(phi)
    z, seen = units(phi), np.unique(label)
    # A class without rows has no score: next to no probability.
    coef = np.zeros((len(PENALTIES), z.shape[1] + 1, size))
    coef[:, -1, :] = -50.0
    if len(seen) == 1:
        coef[:, -1, seen[0]] = 0.0
        return SoftmaxPath(context, units, coef)
    model = LogisticRegression(max_iter=_STEPS, tol=_SETTLED, warm_start=True)
    for p, c in enumerate(PENALTIES):
        model.set_params(C=c).fit(z, label, sample_weight=weights)
        slopes, level = model.coef_, model.intercept_
        if len(seen) == 2:  # noqa: PLR2004  (scikit-learn keeps the score of the second alone)
            slopes, level = np.vstack([0.0 * slopes, slopes]), np.append(0.0, level)
        coef[p][:, seen] = np.vstack([slopes.T, level])
    return SoftmaxPath(context, units, coef)
