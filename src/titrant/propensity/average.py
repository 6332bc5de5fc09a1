"""The default propensity: an average of densities, weighted by how well they predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from titrant._check import count, invalid
from titrant.errors import DataError
from titrant.outcome.base import some, weighed
from titrant.outcome.context import extra_columns
from titrant.outcome.crossfit import need_rows
from titrant.propensity.base import (
    PreciseTails,
    Propensity,
    PropensityModel,
    SearchedModel,
    as_doses,
    treatments,
)
from titrant.propensity.calibration import splits
from titrant.propensity.gated import GatedMixture
from titrant.propensity.laws import AveragedLaws, laws_of
from titrant.propensity.mixture import GaussianMixture
from titrant.propensity.smooth import SmoothLocation, SmoothLocationScale, few_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.propensity.base import NormalMixture

# A propensity that does not see the columns that a forest appended to the context.


class WithoutExtra(SearchedModel):
    """f(t|x) of the contexts without their last `extra` columns.

    Parameters
    ----------
    model : the propensity; it is cloned, never changed.
    extra : columns at the end of X that the model does not see.
    """

    def __init__(self, model: SearchedModel, *, extra: int) -> None:
        self.model = model
        self.extra = extra

    def _fit(
        self, X: ArrayLike, y: ArrayLike, near: Self | None, sample_weight: ArrayLike | None
    ) -> Self:
        X, t = self._training_rows(X, y)
        extra_columns(self.extra, X, "WithoutExtra")
        model, seen, w = clone(self.model), self._seen(X), sample_weight
        self.model_: SearchedModel = (
            model.fit(seen, t, w) if near is None else model.fit_near(near.model_, seen, t, w)
        )
        self.components_ = self.model_.components_
        return self

    def _law(self, X: Array) -> NormalMixture:
        law: NormalMixture = self.model_.law(self._seen(X))
        return law

    def _seen(self, X: Array) -> Array:
        return X[:, : X.shape[1] - self.extra]


# A weighted average of densities, weighted by what each says of rows it has not seen.

FLOOR = 1e-4
"""No density counts as less than this, in units of 1/sd(T), when weights are found."""
LEAST = 0.01
"""Members with less weight are dropped."""
_ROWS = 5_000
"""Rows that weights are found from, at most."""
_STEPS = 500
_SETTLED = 1e-5


def smooth_members(extra: int = 0, *, seed: int = 0) -> dict[str, Propensity]:
    """Return the four members of the default average, by name.

    The last `extra` columns of the contexts are predictions of a forest; only the smooth ones see
    them.
    """
    plain = {"mixture": GaussianMixture(seed=seed), "gated": GatedMixture(seed=seed)}
    return {
        **{name: WithoutExtra(m, extra=extra) if extra else m for name, m in plain.items()},
        "location": SmoothLocation(extra=extra, seed=seed),
        "location-scale": SmoothLocationScale(extra=extra, seed=seed),
    }


@dataclass(frozen=True, slots=True)
class Average(PreciseTails):
    """f(t|x) = Σ_m w_m f_m(t|x) of fitted models; `weights` (M,) are > 0 and sum to 1."""

    models: tuple[PropensityModel, ...]
    weights: Array

    def density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return f(t|x), (n,)."""
        return np.exp(self.log_density(X, t))

    def log_density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return log f(t|x), (n,)."""
        X = np.asarray(X)
        return self.laws(X).log_density(treatments(t, len(X)))

    def log_probability(self, X: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Array:
        """Return log P(lower < T ≤ upper | x), (n,)."""
        X = np.asarray(X)
        return self.laws(X).log_probability(as_doses(lower, len(X)), as_doses(upper, len(X)))

    def cdf(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return F(t|x), (n,)."""
        X = np.asarray(X)
        return self.laws(X).cdf(as_doses(t, len(X)))

    def laws(self, X: ArrayLike) -> AveragedLaws:
        """Return the laws at contexts X (n, p), by which doses are asked."""
        return AveragedLaws(tuple(laws_of(model, X) for model in self.models), self.weights)

    def sample(self, X: ArrayLike, seed: int | np.random.Generator) -> Array:
        """Return one treatment drawn from f(·|x) for each row, (n,)."""
        X, rng = np.asarray(X), np.random.default_rng(seed)
        n = len(X)
        pick = np.searchsorted(np.cumsum(self.weights)[:-1], rng.uniform(size=n), side="right")
        drawn = np.empty(n)
        for k, model in enumerate(self.models):
            rows = np.flatnonzero(pick == k)
            if len(rows):
                drawn[rows] = model.sample(X[rows], rng)
        return drawn


class DensityAverage(Propensity, PreciseTails):
    """f(t|x) = Σ_m w_m f_m(t|x), w the weights of greatest likelihood on rows held out.

    Weights are found by EM on out-of-fold densities, each held above 1e-4/sd(T); members with less
    than .01 are dropped. A member that cannot be fitted to these rows is left out, and `refused_`
    says why; if none can, the first one's error is raised.

    Parameters
    ----------
    members : name → propensity model; None is a `GaussianMixture`, a `GatedMixture`, a
        `SmoothLocation` and a `SmoothLocationScale`.
    folds, seed : of the out-of-fold densities.

    Fitted: `names_`, `weights_` (both of all members that could be fitted), `average_` (of those
    that have weight), `refused_`.
    """

    def __init__(
        self,
        members: Mapping[str, PropensityModel] | None = None,
        *,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.members = members
        self.folds = folds
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to contexts X (n, p) and treatments y (n,)."""
        folds = count(self.folds, "folds", "DensityAverage", at_least=2)
        count(self.seed, "seed", "DensityAverage", at_least=0)
        X, t = self._training_rows(X, y)
        w = self._weights(sample_weight, len(t))
        need_rows(len(t), 2, "DensityAverage")
        members: Mapping[str, PropensityModel] = smooth_members(seed=self.seed)
        if self.members is not None:
            members = dict(self.members)
        if not members:
            rule = "a mapping with at least one model"
            raise invalid("members", "DensityAverage", rule, members)
        # Few rows: as many folds as there are pairs of them.
        parts = list(splits(len(t), max(2, min(folds, len(t) // 2)), self.seed))
        whole = fitted_members(members, X, t, weights=w)
        fits = [
            fitted_members(members, X[train], t[train], whole, some(w, train)) for train, _ in parts
        ]
        self.refused_ = {k: v for fit in [whole, *fits] for k, v in fit.refused.items()}
        self.names_ = usable(members, [whole, *fits])
        logs = np.empty((len(t), len(self.names_)))
        for fit, (_, test) in zip(fits, parts, strict=True):
            logs[test] = fit.log_densities(self.names_, X[test], t[test])
        self.weights_ = average_weights(logs, t, self.seed, w)
        self.average_ = whole.average(self.names_, self.weights_)
        return self

    def laws(self, X: ArrayLike) -> AveragedLaws:
        """Return the laws at contexts X (n, p), by which doses are asked."""
        return self._fitted.laws(self._context(X))

    def log_density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return log f(t|x), (n,)."""
        return self._fitted.log_density(self._context(X), t)

    def log_probability(self, X: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Array:
        """Return log P(lower < T ≤ upper | x), (n,)."""
        return self._fitted.log_probability(self._context(X), lower, upper)

    def cdf(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return F(t|x) = P(T ≤ t | x), (n,); t is one treatment a row or one for all."""
        return self._fitted.cdf(self._context(X), t)

    def sample(self, X: ArrayLike, seed: int | np.random.Generator) -> Array:
        """Return one treatment drawn from f(·|x) for each row, (n,)."""
        return self._fitted.sample(self._context(X), seed)

    @property
    def _fitted(self) -> Average:
        check_is_fitted(self)
        return self.average_


@dataclass(frozen=True, slots=True)
class MemberFits:
    """The members that could be fitted to some rows, and why the others could not."""

    models: dict[str, PropensityModel]
    refused: dict[str, str]

    def log_densities(self, names: Sequence[str], X: Array, t: Array) -> Array:
        """Return log f_m(t|x) of the named members (n, M)."""
        each = [laws_of(self.models[name], X).log_density(t) for name in names]
        return np.column_stack(each)

    def average(self, names: Sequence[str], weights: Array) -> Average:
        """Return the average of the named members (M,) that have weight."""
        kept = weights > 0.0
        models = (self.models[name] for name, keep in zip(names, kept, strict=True) if keep)
        return Average(tuple(models), weights[kept])


def fitted_members(
    members: Mapping[str, PropensityModel],
    X: Array,
    t: Array,
    near: MemberFits | None = None,
    weights: Array | None = None,
) -> MemberFits:
    """Fit a clone of each member to contexts X (n, p) and treatments t; raise if none can be.

    Searches begin where those of ``near`` ended, on rows most of which are the same. Members that
    take weights (n,) are told them.
    """
    models: dict[str, PropensityModel] = {}
    refused: dict[str, DataError] = {}
    before = {} if near is None else near.models
    for name, member in members.items():
        try:
            models[name] = fitted(clone(member), X, t, before.get(name), weights)
        except DataError as error:
            refused[name] = error
        except np.linalg.LinAlgError as error:  # contexts beyond what least squares can square
            refused[name] = DataError(
                f"The linear algebra of `{type(member).__name__}` found no solution in {len(t):,} "
                f"rows ({error}). Give contexts with very large values as their logarithms."
            )
    if not models:
        raise next(iter(refused.values()))
    return MemberFits(models, {name: str(error) for name, error in refused.items()})


def fitted(
    model: PropensityModel,
    X: Array,
    t: Array,
    near: PropensityModel | None,
    weights: Array | None = None,
) -> PropensityModel:
    """Return the model fitted, from where ``near`` ended if there is one of its kind."""
    if isinstance(model, SearchedModel) and isinstance(near, type(model)):
        return weighed(model.fit_near, near, X, t, weights=weights)
    return weighed(model.fit, X, t, weights=weights)


def usable(members: Mapping[str, PropensityModel], fits: Sequence[MemberFits]) -> tuple[str, ...]:
    """Return the names of the members that every fit has."""
    names = tuple(name for name in members if all(name in fit.models for fit in fits))
    if not names:
        reason = next(reason for fit in fits for reason in fit.refused.values())
        raise DataError(f"No member can be fitted to the rows of every fold. {reason}")
    return names


def average_weights(
    log_densities: Array, t: Array, seed: int, weights: Array | None = None
) -> Array:
    """Return the weights w (M,) that maximize Σᵢ ωᵢ log Σ_m w_m f_m(tᵢ|xᵢ) over the simplex, by EM.

    `log_densities` (n, M) are of rows held out; t is (n,) or (n, d); ω are the rows' `weights`, 1
    without. Averaging weights below .01 become 0.
    """
    spread = np.prod(np.reshape(t, (len(t), -1)).std(axis=0))
    rows = few_rows(len(t), seed, _ROWS)
    told = np.nan_to_num(log_densities[rows], nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return likeliest(np.maximum(np.exp(told + np.log(spread)), FLOOR), some(weights, rows))


def likeliest(f: Array, weights: Array | None = None) -> Array:
    """Return the weights w (M,) that maximize Σᵢ ωᵢ log Σ_m w_m f_im of f (n, M), by EM."""
    w, omega = np.full(f.shape[1], 1.0 / f.shape[1]), 1.0 if weights is None else weights
    total = len(f) if weights is None else float(weights.sum())
    for _ in range(_STEPS):
        before, w = w, w * ((omega / (f @ w)) @ f) / total
        if np.abs(w - before).max() < _SETTLED:
            break
    kept = np.where(w >= LEAST, w, 0.0)
    return np.asarray(kept / kept.sum())
