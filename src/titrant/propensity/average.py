"""A weighted average of densities, weighted by what each says of rows it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import clone

from titrant._check import count, invalid
from titrant.errors import DataError
from titrant.propensity.base import (
    FittedPropensity,
    PreciseTails,
    Propensity,
    PropensityModel,
    doses,
)
from titrant.propensity.contexts_only import ContextsOnly
from titrant.propensity.gated import GatedMixture
from titrant.propensity.held_out import splits
from titrant.propensity.mixture import GaussianMixture
from titrant.propensity.normal import log_sum_exp
from titrant.propensity.smooth import SmoothLocation, SmoothLocationScale, few_rows
from titrant.propensity.truncate import log_density_of, log_interval_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array

FLOOR = 1e-4
"""No density counts as less than this, in units of 1/sd(T), when weights are found."""
LEAST = 0.01
"""Members with less weight are dropped."""
_ROWS = 20_000
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
        **{name: ContextsOnly(m, extra=extra) if extra else m for name, m in plain.items()},
        "location": SmoothLocation(extra=extra, seed=seed),
        "location-scale": SmoothLocationScale(extra=extra, seed=seed),
    }


@dataclass(frozen=True, slots=True)
class Average(PreciseTails):
    """f(t|x) = Σ_m w_m f_m(t|x) of fitted models; `weights` (M,) are > 0 and sum to 1.

    Contexts are (n, p), or (M, n, p) where each model has contexts of its own.
    """

    models: tuple[FittedPropensity, ...]
    weights: Array

    def density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return f(t|x), (n,)."""
        return np.exp(self.log_density(X, t))

    def log_density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return log f(t|x), (n,)."""
        X = np.asarray(X)
        return self._in_logs(X, log_density_of, treatments(t, X.shape[-2]))

    def log_probability(self, X: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Array:
        """Return log P(lower < T ≤ upper | x), (n,)."""
        X = np.asarray(X)
        n = X.shape[-2]
        return self._in_logs(X, log_interval_of, doses(lower, n), doses(upper, n))

    def cdf(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return F(t|x), (n,)."""
        X = np.asarray(X)
        t = doses(t, X.shape[-2])
        total = sum(w * m.cdf(x, t) for w, m, x in self._members(X))
        return np.minimum(total, 1.0)

    def sample(self, X: ArrayLike, seed: int | np.random.Generator) -> Array:
        """Return one treatment drawn from f(·|x) for each row, (n,)."""
        X, rng = np.asarray(X), np.random.default_rng(seed)
        n = X.shape[-2]
        pick = np.searchsorted(np.cumsum(self.weights)[:-1], rng.uniform(size=n), side="right")
        drawn = np.empty(n)
        for k, (_, model, x) in enumerate(self._members(X)):
            rows = np.flatnonzero(pick == k)
            if len(rows):
                drawn[rows] = model.sample(x[rows], rng)
        return drawn

    def _members(self, X: Array) -> list[tuple[float, FittedPropensity, Array]]:
        own = X if X.ndim == 3 else [X] * len(self.models)  # noqa: PLR2004
        return list(zip(self.weights.tolist(), self.models, own, strict=True))

    def _in_logs(self, X: Array, evaluate: Callable[..., Array], *columns: Array) -> Array:
        logs = [np.log(w) + evaluate(m, x, *columns) for w, m, x in self._members(X)]
        return log_sum_exp(np.column_stack(logs))


def treatments(t: ArrayLike, n: int) -> Array:
    """Return one treatment a row, of several doses as they are."""
    values = np.asarray(t, dtype=np.float64)
    several = values.ndim == 2 and values.shape[1] > 1  # noqa: PLR2004
    return values if several else doses(values, n)


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

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to contexts X (n, p) and treatments y (n,)."""
        folds = count(self.folds, "folds", "DensityAverage", at_least=2)
        count(self.seed, "seed", "DensityAverage", at_least=0)
        X, t = self._training_rows(X, y)
        members = named_members(self.members, "DensityAverage", seed=self.seed)
        # Few rows: as many folds as there are pairs of them.
        parts = list(splits(len(t), max(2, min(folds, len(t) // 2)), self.seed))
        whole = fitted_members(members, X, t)
        fits = [fitted_members(members, X[train], t[train]) for train, _ in parts]
        self.refused_ = {k: v for fit in [whole, *fits] for k, v in fit.refused.items()}
        self.names_ = usable(members, [whole, *fits])
        logs = np.empty((len(t), len(self.names_)))
        for fit, (_, test) in zip(fits, parts, strict=True):
            logs[test] = fit.log_densities(self.names_, X[test], t[test])
        self.weights_ = average_weights(logs, t, self.seed)
        self.average_ = whole.average(self.names_, self.weights_)
        return self

    def log_density(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return log f(t|x), (n,)."""
        return self.average_.log_density(self._context(X), t)

    def log_probability(self, X: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Array:
        """Return log P(lower < T ≤ upper | x), (n,)."""
        return self.average_.log_probability(self._context(X), lower, upper)

    def cdf(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return F(t|x) = P(T ≤ t | x), (n,); t is one treatment a row or one for all."""
        return self.average_.cdf(self._context(X), t)

    def sample(self, X: ArrayLike, seed: int | np.random.Generator) -> Array:
        """Return one treatment drawn from f(·|x) for each row, (n,)."""
        return self.average_.sample(self._context(X), seed)


def named_members(
    members: Mapping[str, PropensityModel] | None, owner: str, *, seed: int
) -> dict[str, PropensityModel]:
    """Return the members by name: those given, or the default ones."""
    if members is None:
        return dict(smooth_members(seed=seed))
    if not members:
        raise invalid("members", owner, "a mapping with at least one model", members)
    return dict(members)


@dataclass(frozen=True, slots=True)
class MemberFits:
    """The members that could be fitted to some rows, and why the others could not."""

    models: dict[str, PropensityModel]
    refused: dict[str, str]

    def log_densities(self, names: Sequence[str], X: Array, t: Array) -> Array:
        """Return log f_m(t|x) of the named members (n, M)."""
        return np.column_stack([log_density_of(self.models[name], X, t) for name in names])

    def average(self, names: Sequence[str], weights: Array) -> Average:
        """Return the average of the named members (M,) that have weight."""
        kept = weights > 0.0
        models = (self.models[name] for name, keep in zip(names, kept, strict=True) if keep)
        return Average(tuple(models), weights[kept])


def fitted_members(members: Mapping[str, PropensityModel], X: Array, t: Array) -> MemberFits:
    """Fit a clone of each member to contexts X (n, p) and treatments t; raise if none can be."""
    models: dict[str, PropensityModel] = {}
    refused: dict[str, DataError] = {}
    for name, member in members.items():
        try:
            models[name] = clone(member).fit(X, t)
        except DataError as error:
            refused[name] = error
    if not models:
        raise next(iter(refused.values()))
    return MemberFits(models, {name: str(error) for name, error in refused.items()})


def usable(members: Mapping[str, PropensityModel], fits: Sequence[MemberFits]) -> tuple[str, ...]:
    """Return the names of the members that every fit has."""
    names = tuple(name for name in members if all(name in fit.models for fit in fits))
    if not names:
        reason = next(reason for fit in fits for reason in fit.refused.values())
        raise DataError(f"No member can be fitted to the rows of every fold. {reason}")
    return names


def average_weights(log_densities: Array, t: Array, seed: int) -> Array:
    """Return the weights w (M,) that maximize Σᵢ log Σ_m w_m f_m(tᵢ|xᵢ) over the simplex, by EM.

    `log_densities` (n, M) are of rows held out; t is (n,) or (n, d). Weights below .01 become 0.
    """
    spread = np.prod(np.reshape(t, (len(t), -1)).std(axis=0))
    rows = few_rows(len(t), seed, _ROWS)
    f = np.maximum(np.exp(log_densities[rows] + np.log(spread)), FLOOR)
    w = np.full(f.shape[1], 1.0 / f.shape[1])
    for _ in range(_STEPS):
        before, w = w, w * np.mean(f / (f @ w)[:, None], axis=0)
        if np.abs(w - before).max() < _SETTLED:
            break
    kept = np.where(w >= LEAST, w, 0.0)
    return np.asarray(kept / kept.sum())
