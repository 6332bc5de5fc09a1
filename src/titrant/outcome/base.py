"""What an outcome model is: r̂(t, x), an estimate of E[Y | T = t, X = x]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier

from titrant import _check
from titrant._own import written_anew
from titrant.errors import DataError, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.outcome.crossfit import Folds

    Curves = Callable[[Array], Array]
    """Outcomes of n rows as a function of their doses: from (n,) or (n, d) to (n,)."""

    Selection = slice | NDArray[np.bool_] | NDArray[np.intp]
T = TypeVar("T")

BLOCK = 65_536
"""Predictions that are computed at a time, so that memory stays flat."""


# Rows that do not count alike.


def scaled_weights(sample_weight: ArrayLike | None, n: int, owner: str) -> Array | None:
    """Return the weights ω (n,) of rows to learn from, None if all count alike.

    They are scaled to Σω = (Σω)²/Σω², the number of equal rows that are worth as much, so that a
    formula for n rows holds with Σω in the place of n: generalized cross-validation, the Bayesian
    information criterion, degrees of freedom.
    """
    if sample_weight is None:
        return None
    w = np.asarray(sample_weight, dtype=np.float64)
    if w.ndim == 0:  # scikit-learn's manners: one number is that of every row
        w = np.full(n, float(w))
    if w.shape != (n,):
        raise DataError(
            f"`{owner}` needs one weight per row, shape ({n},); got shape {w.shape}. Sample "
            "weights must be 1D and as long as the rows."
        )
    bad = int(np.count_nonzero(~(np.isfinite(w) & (w >= 0.0))))
    if bad:
        raise DataError(
            f"`{owner}` needs weights that are finite and ≥ 0; {bad:,} of {n:,} are not."
        )
    if not w.any():
        raise DataError(
            f"`{owner}` has nothing to learn from: the weight of all {n:,} rows is zero."
        )
    if w.min() == w.max():
        return None
    # To 40 bits: the same weights in other units are the same numbers, so trees take equal turns.
    mantissa, exponent = np.frexp(w / w.max())
    w = np.ldexp(np.round(mantissa * 2.0**40) / 2.0**40, exponent)
    return np.asarray(w * (w.sum() / (w @ w)))


def worth(weights: Array | None, n: int) -> float:
    """Return how many equal rows n rows with these weights are worth: Σω, or n."""
    return n if weights is None else float(weights.sum())


def mean_of(values: Array, weights: Array | None) -> Array:
    """Return the mean of values (n,) or (n, k), weighted if rows have weights (n,)."""
    if weights is None:
        return np.asarray(values.mean(axis=0))
    return np.asarray(weights @ values / weights.sum())


def some(weights: Array | None, rows: Selection) -> Array | None:
    """Return the weights of some of the rows, if they have any."""
    return None if weights is None else weights[rows]


def takes_weights(method: Callable[..., object]) -> bool:
    """Return whether a method of a model, which may be a user's own, takes `sample_weight`."""
    return "sample_weight" in signature(method).parameters


def weighed(method: Callable[..., T], *rows: object, weights: Array | None) -> T:
    """Return what a method makes of rows, told their weights (n,) if it takes any."""
    if weights is None or not takes_weights(method):
        return method(*rows)
    return method(*rows, sample_weight=weights)


def _predicted(model: OutcomeModel, X: Array, t: Array) -> Array:
    """Return the predictions (n,); a model may write into what it is given."""
    return model.predict(X.copy(), t)


def given_of(model: OutcomeModel, X: Array) -> Curves:
    """Return what `given` does, by `predict` where that was written anew."""
    anew = written_anew(model, ("predict",), since="given")
    return OutcomeModel.given(model, X) if anew else model.given(X)


def curve_of(model: OutcomeModel, X: Array, doses: Array) -> Array:
    """Return what `curve` does, by `predict` where that was written anew."""
    anew = written_anew(model, ("predict",), since="curve")
    return OutcomeModel.curve(model, X, doses) if anew else model.curve(X, doses)


class OutcomeModel(BaseEstimator, ABC):
    """An estimator with `fit(X, t, y)` and `predict(X, t)`; t is (n,), or (n, d) for d doses.

    A `fit(X, t, y, sample_weight=None)` is told the weights of rows that have any.
    """

    @abstractmethod
    def fit(self, X: Array, t: Array, y: Array) -> Self:
        """Learn from contexts X (n, p), doses t (n,) or (n, d) and outcomes y (n,)."""

    @abstractmethod
    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""

    def given(self, X: Array) -> Curves:
        """Return t ↦ r̂(tᵢ, xᵢ) (n,), what depends on contexts X (n, p) alone computed once."""
        return partial(_predicted, self, X)

    def fit_units(
        self,
        X: Array,
        t: Array,
        y: Array,
        units: NDArray[np.int64] | None,
        *,
        sample_weight: Array | None = None,
    ) -> Self:
        """Learn as `fit` does from rows of which some belong together: those of equal units (n,).

        A model that has folds of its own keeps them in one.
        """
        del units
        return weighed(self.fit, X, t, y, weights=sample_weight)

    def out_of_fold(
        self, X: Array, t: Array, y: Array, fold: Folds, *, sample_weight: Array | None = None
    ) -> Array:
        """Return the prediction of each row by a model that saw no outcome of the row's fold (n,).

        A model for which linear algebra gives these without refitting does better than this loop.
        """
        prediction = np.empty(len(y))
        for k in np.unique(fold):
            held = fold == k
            fit, own = clone(self).fit, some(sample_weight, ~held)
            model = weighed(fit, X[~held], t[~held], y[~held], weights=own)
            prediction[held] = model.predict(X[held], t[held])
        return prediction

    def fit_out_of_fold(
        self, X: Array, t: Array, y: Array, fold: Folds, *, sample_weight: Array | None = None
    ) -> Array:
        """Fit, and return what `out_of_fold` does; a model may compute once what both need."""
        weighed(self.fit, X, t, y, weights=sample_weight)
        return weighed(self.out_of_fold, X, t, y, fold, weights=sample_weight)

    def curve(self, X: Array, doses: Array) -> Array:
        """Return r̂(doses[j], xᵢ) (n, G) for a grid of scalar doses (G,)."""
        curves = np.empty((len(X), len(doses)))
        for rows in blocks(len(X), max(1, BLOCK // len(doses))):
            x = X[rows]
            flat = self.predict(np.repeat(x, len(doses), axis=0), np.tile(doses, len(x)))
            curves[rows] = flat.reshape(len(x), len(doses))
        return curves


def blocks(n: int, size: int) -> Iterator[slice]:
    """Return consecutive slices of at most `size` rows that cover n rows."""
    return (slice(start, start + size) for start in range(0, n, size))


def inputs(X: ArrayLike, t: ArrayLike, owner: str) -> tuple[Array, Array]:
    """Return contexts as floats (n, p) and doses as (n, d), of equal length."""
    x, doses = np.asarray(X, dtype=np.float64), np.asarray(t, dtype=np.float64)
    if x.ndim != 2 or doses.ndim not in {1, 2} or len(x) != len(doses):  # noqa: PLR2004
        raise DataError(
            f"`{owner}` needs contexts (n, p) and doses (n,) or (n, d); got arrays of shapes "
            f"{x.shape} and {doses.shape}."
        )
    return x, doses.reshape(len(doses), -1)


def training(X: ArrayLike, t: ArrayLike, y: ArrayLike, owner: str) -> tuple[Array, Array, Array]:
    """Return contexts (n, p), doses (n, d) and outcomes (n,), finite and of equal length."""
    x, doses = inputs(X, t, owner)
    outcome = np.asarray(y, dtype=np.float64)
    if len(x) < 2:  # noqa: PLR2004
        raise DataError(f"`{owner}` needs at least 2 rows to learn from; got {len(x)}.")
    if outcome.shape != (len(x),):
        raise DataError(
            f"`{owner}` needs one outcome per row, shape ({len(x)},); got shape {outcome.shape}."
        )
    finite = np.isfinite(x).all(axis=1) & np.isfinite(doses).all(axis=1) & np.isfinite(outcome)
    if not finite.all():
        raise DataError(
            f"`{owner}` cannot learn from {np.sum(~finite):,} of {len(x):,} rows that hold NaN or "
            "infinity. Drop or impute them."
        )
    return x, doses, outcome


# Any scikit-learn regressor of the columns [x, t] as an outcome model.


@runtime_checkable
class Regressor(Protocol):
    """What scikit-learn calls a regressor."""

    def fit(self, X: Array, y: Array) -> object:
        """Learn."""

    def predict(self, X: Array) -> Array:
        """Predict."""

    def get_params(self, *, deep: bool = True) -> dict[str, object]:
        """Return the parameters, so that `clone` can copy it unfitted."""


class OfRegressor(OutcomeModel):
    """r̂(t, x) = regressor.predict([x, t]): the doses are the last columns.

    Parameters
    ----------
    regressor : a scikit-learn regressor or pipeline; it is cloned, never changed.
    """

    def __init__(self, regressor: Regressor) -> None:
        self.regressor = regressor

    def fit(self, X: Array, t: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Fit a clone of the regressor on the columns [x, t], told of weights if it takes any."""
        x, doses, outcome = training(X, t, y, "OfRegressor")
        weights = scaled_weights(sample_weight, len(x), "OfRegressor")
        self.regressor_ = clone(self.regressor)
        weighed(self.regressor_.fit, np.hstack([x, doses]), outcome, weights=weights)
        return self

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        columns = np.hstack(inputs(X, t, "OfRegressor"))
        prediction = np.asarray(self.regressor_.predict(columns), dtype=np.float64)
        bad = len(columns) - np.isfinite(prediction).sum()
        if prediction.size != len(columns) or bad:
            raise DataError(
                f"`{type(self.regressor).__name__}` must predict one finite number per row; got "
                f"shape {prediction.shape} for {len(columns)} rows, {bad} of them not finite."
            )
        return prediction.reshape(len(columns))


def as_outcome_model(model: OutcomeModel | Regressor) -> OutcomeModel:
    """Return an outcome model as it is, and a scikit-learn regressor wrapped as one."""
    if isinstance(model, OutcomeModel):
        return model
    if isinstance(model, type) or not isinstance(model, Regressor) or is_classifier(model):
        raise InvalidArgument(
            "An outcome model must be an `OutcomeModel` or a scikit-learn regressor (an instance, "
            f"not a class; no classifier); got {model!r}. For a yes/no outcome use a regressor: it "
            "predicts the probability."
        )
    return OfRegressor(model)


def learned_from(X: ArrayLike, targets: ArrayLike, owner: str) -> tuple[Array, Array]:
    """Return contexts (n, p) and targets (n, m), finite and of equal length."""
    x, u = np.asarray(X, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    if x.ndim != 2 or u.ndim not in {1, 2} or len(x) != len(u) or not len(x):  # noqa: PLR2004
        raise DataError(
            f"`{owner}` needs contexts (n, p) and targets (n,) or (n, m) of at least one row; got "
            f"arrays of shapes {x.shape} and {u.shape}."
        )
    u = u.reshape(len(u), -1)
    finite = np.isfinite(x).all(axis=1) & np.isfinite(u).all(axis=1)
    if not finite.all():
        raise DataError(
            f"`{owner}` cannot learn from {np.sum(~finite):,} of {len(x):,} rows that hold NaN or "
            "infinity. Drop or impute them."
        )
    return x, u


def asked_about(X: ArrayLike, p: int, owner: str) -> Array:
    """Return contexts (n, p), finite, of as many columns as were learned from."""
    x = np.asarray(X, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != p:  # noqa: PLR2004
        raise DataError(
            f"`{owner}` learned from contexts of {p} columns; got an array of shape {x.shape}. "
            "Give the same columns."
        )
    bad = int(np.count_nonzero(~np.isfinite(x).all(axis=1)))
    if bad:
        raise DataError(
            f"`{owner}` cannot be asked about {bad:,} of {len(x):,} rows that hold NaN or "
            "infinity. Drop or impute them."
        )
    return x


# ── An outcome model that never predicts beyond the outcomes it has seen ──────────────────────────


class Bounded(OutcomeModel):
    """r̂ held between the quantiles `share` and 1 − `share` of the outcomes it was trained on.

    Far from the logged doses a polynomial says anything; one such prediction can decide a policy.

    Parameters
    ----------
    model : the outcome model; it is cloned, never changed.
    share : of the outcomes cut off at each end.
    margin : how far beyond them predictions may go, as a multiple of the distance between them.
    """

    def __init__(self, model: OutcomeModel, *, share: float = 0.01, margin: float = 0.0) -> None:
        self.model = model
        self.share = share
        self.margin = margin

    def fit(self, X: Array, t: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Learn from contexts X (n, p), doses t (n,) or (n, d) and outcomes y (n,)."""
        self.model_ = weighed(clone(self.model).fit, X, t, y, weights=sample_weight)
        self.limits_ = self._limits(y)
        return self

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        return self.given(X)(t)

    def given(self, X: Array) -> Curves:
        """Return t ↦ r̂(tᵢ, xᵢ) (n,) for contexts X (n, p)."""
        free = given_of(self.model_, X)

        def held(t: Array) -> Array:
            return np.asarray(np.clip(free(t), *self.limits_))

        return held

    def out_of_fold(
        self, X: Array, t: Array, y: Array, fold: Folds, *, sample_weight: Array | None = None
    ) -> Array:
        """Return predictions (n,) that saw no outcome of the row's fold, also in their limits."""
        free = weighed(self.model.out_of_fold, X, t, y, fold, weights=sample_weight)
        return self._cut(free, y, fold)

    def fit_out_of_fold(
        self, X: Array, t: Array, y: Array, fold: Folds, *, sample_weight: Array | None = None
    ) -> Array:
        """Fit, and return what `out_of_fold` does."""
        self.model_, self.limits_ = clone(self.model), self._limits(y)
        free = weighed(self.model_.fit_out_of_fold, X, t, y, fold, weights=sample_weight)
        return self._cut(free, y, fold)

    def _cut(self, prediction: Array, y: Array, fold: Folds) -> Array:
        for k in np.unique(fold):
            held = fold == k
            prediction[held] = np.clip(prediction[held], *self._limits(y[~held]))
        return prediction

    def curve(self, X: Array, doses: Array) -> Array:
        """Return r̂(doses[j], xᵢ) (n, G) for a grid of scalar doses (G,)."""
        curves: Array = np.clip(curve_of(self.model_, X, doses), *self.limits_)
        return curves

    def _limits(self, y: Array) -> tuple[float, float]:
        share = _check.probability(self.share, "share", "Bounded")
        low, high = np.quantile(y, [share, 1.0 - share])
        beyond = _check.nonnegative(self.margin, "margin", "Bounded") * (high - low)
        return float(low - beyond), float(high + beyond)
