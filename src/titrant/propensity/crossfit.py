"""Cross-fitting: the density of each row by models that have not seen it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from titrant import _check
from titrant.errors import DataError
from titrant.outcome.base import scaled_weights, some, training
from titrant.outcome.crossfit import Folded, Folds, need_rows
from titrant.propensity.average import (
    Average,
    MemberFits,
    average_weights,
    fitted_members,
    usable,
)
from titrant.propensity.base import PreciseTails, as_doses, treatments
from titrant.propensity.laws import FoldLaws
from titrant.propensity.smooth import few_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.propensity.base import PropensityModel


class CrossPropensity(Folded, BaseEstimator):
    """f̂(t|x) = Σ_m w_m f_m(t|x), for each fold with members fitted on the rows of all others.

    The weights, one number a member, are found once, by EM on the out-of-fold densities of all
    rows; see `DensityAverage`.

    Parameters
    ----------
    members : name → propensity model, each cloned, never changed. A mapping of one model is that
        model, cross-fitted.
    folds, seed : as those of the `CrossFit` of the outcome, so that both have the same folds.
    rows : the most rows outside a fold that its members learn from; of more, so many are drawn.

    Fitted: `names_`, `weights_`, `averages_` (one a fold), `refused_`.
    """

    def __init__(
        self,
        members: Mapping[str, PropensityModel],
        *,
        folds: int = 5,
        seed: int = 0,
        rows: int = 5_000,
    ) -> None:
        self.members = members
        self.folds = folds
        self.seed = seed
        self.rows = rows

    def fit(
        self,
        X: ArrayLike,
        t: ArrayLike,
        *,
        first_row: int = 0,
        numbers: NDArray[np.int64] | None = None,
        extended: Sequence[Array] | None = None,
        held_out: Array | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit on contexts X (n, p) and doses t (n,) or (n, d).

        `first_row` and `numbers` say where the rows are in the whole log, as for `CrossFit`.
        `extended` are the contexts of the rows outside each fold that its members learn from
        instead of X (`FoldForests.fit_extend`); `held_out` (n, q) then are all rows as
        `FoldForests.extend` gives them. `sample_weight` (n,) goes to members whose `fit` takes it.
        """
        _check.count(self.folds, "folds", "CrossPropensity", at_least=2)
        _check.count(self.seed, "seed", "CrossPropensity", at_least=0)
        most = _check.count(self.rows, "rows", "CrossPropensity", at_least=2)
        x, doses_ = np.asarray(X, dtype=np.float64), np.asarray(t, dtype=np.float64)
        training(x, doses_, np.zeros(len(x)), "CrossPropensity")  # refuses what is no table of rows
        need_rows(len(x), self.folds, "CrossPropensity")
        w = scaled_weights(sample_weight, len(x), "CrossPropensity")
        fold = self.fold(first_row, len(x), numbers)
        members = dict(self.members)
        outside = [fold != k for k in range(self.folds)]
        learned = [x[rows] for rows in outside] if extended is None else extended
        fits: list[MemberFits] = []
        for own, rows in zip(learned, outside, strict=True):
            few = few_rows(len(own), self.seed, most)
            near = fits[0] if fits else None
            w_own = some(some(w, rows), few)
            fits.append(fitted_members(members, own[few], doses_[rows][few], near, w_own))
        self.refused_ = {name: why for fit in fits for name, why in fit.refused.items()}
        self.names_ = usable(members, fits)
        asked = x if held_out is None else held_out
        logs = np.empty((len(x), len(self.names_)))
        for fit, rows in zip(fits, outside, strict=True):
            logs[~rows] = fit.log_densities(self.names_, asked[~rows], doses_[~rows])
        self.weights_ = average_weights(logs, doses_, self.seed, w)
        self.averages_ = tuple(fit.average(self.names_, self.weights_) for fit in fits)
        return self

    def on(self, fold: Folds) -> ByFold:
        """Return the propensity of rows in these folds (n,), each by what did not see its fold."""
        check_is_fitted(self)
        if fold.min(initial=0) < 0 or fold.max(initial=0) >= self.folds:
            rule = f"between 0 and {self.folds - 1}"
            raise _check.invalid("fold", "CrossPropensity", rule, fold)
        return ByFold(self.averages_, fold)


@dataclass(frozen=True, slots=True)
class ByFold(PreciseTails):
    """The propensity of the rows that `fold` (n,) is of; contexts (n, p) are theirs."""

    averages: tuple[Average, ...]
    fold: Folds

    def density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return f̂(t|x), (n,)."""
        return np.exp(self.log_density(X, t))

    def log_density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return log f̂(t|x), (n,)."""
        return self.laws(X).log_density(treatments(t, len(self.fold)))

    def log_probability(self, X: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Array:
        """Return log P(lower < T ≤ upper | x), (n,)."""
        n = len(self.fold)
        return self.laws(X).log_probability(as_doses(lower, n), as_doses(upper, n))

    def cdf(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return F̂(t|x), (n,)."""
        return self.laws(X).cdf(as_doses(t, len(self.fold)))

    def laws(self, X: ArrayLike) -> FoldLaws:
        """Return the laws at contexts X (n, p), by which doses are asked."""
        X, n = np.asarray(X, dtype=np.float64), len(self.fold)
        if len(X) != n:
            raise DataError(
                f"The folds are those of {n:,} rows; got contexts of {len(X):,}. Pass the rows "
                "that the folds are of."
            )
        rows = [np.flatnonzero(self.fold == k) for k in range(len(self.averages))]
        each = zip(rows, self.averages, strict=True)
        return FoldLaws(n, tuple((own, average.laws(X[own])) for own, average in each if len(own)))
