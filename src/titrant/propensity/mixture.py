"""A mixture of linear regressions with normal errors, fitted by expectation–maximization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np

from titrant._check import count
from titrant.outcome.base import some, worth
from titrant.propensity.base import NormalMixture, SearchedModel, log_sum_exp
from titrant.propensity.gaussian import (
    Affine,
    Whitened,
    degrees_of_freedom,
    residual_sd,
    weighted_least_squares,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from titrant._types import Array

Fit = TypeVar("Fit")

# Expectation–maximization for a mixture of linear regressions with normal errors.


# A stride that gains less log likelihood than this, over all rows, changes nothing that the data
# could tell: log likelihoods differ by about 1 within a confidence set.
_GAIN = 0.01
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class Regressions:
    """K weighted regressions: `log_weights` (K,), `coef` (K, k), `sds` (K,)."""

    log_weights: Array
    coef: Array
    sds: Array

    def law(self, Z: Array) -> NormalMixture:
        """Return the law of the treatment at each row of the design Z (n, k)."""
        return NormalMixture(self.log_weights[None, :], by_component(Z, self.coef), self.sds[None])

    def log_likelihood(self, Z: Array, r: Array, weights: Array | None = None) -> float:
        """Return Σ_i ω_i log Σ_k w_k φ((r_i − z_i·b_k)/s_k)/s_k."""
        return summed(self.law(Z).log_density(r), weights)


def summed(values: Array, weights: Array | None) -> float:
    """Return Σ_i ω_i·values_i of values (n,), ω = 1 without weights."""
    return float(np.sum(values) if weights is None else weights @ values)


def by_component(Z: Array, coef: Array) -> Array:
    """Return z_i·b_k (n, K) for Z (n, k) and coefficients b (K, k), the rows of a k side by side.

    What is done row by row then runs along memory, in a third of the time.
    """
    return np.asarray((coef @ Z.T).T)


def weighted_sums(Z: Array, r: Array, member: Array) -> tuple[Array, Array]:
    """Return Σ_i m_ik·z_i·z_iᵀ (K, k, k) and Σ_i m_ik·z_i·r_i (K, k) for memberships m (n, K)."""
    weighted = member.T[:, None, :] * Z.T
    return weighted @ Z, weighted @ r


def shortest(gram: Array, moment: Array) -> Array:
    """Return the shortest b (K, k) of those that solve gram_k·b_k = moment_k best.

    The matrices (K, k, k) are sums of squares: a component without rows gets the zero line.
    """
    d, v = np.linalg.eigh(gram)
    tiny = d <= np.finfo(np.float64).eps * d.shape[1] * d[:, -1:]
    along = (moment[:, None, :] @ v)[:, 0]
    lengths = np.divide(along, d, out=np.zeros_like(d), where=~tiny)
    return np.asarray((v @ lengths[:, :, None])[:, :, 0])


def memberships(
    model: Regressions, Z: Array, r: Array, weights: Array | None = None
) -> tuple[Array, float]:
    """Return ω_i·P(component k | row i), (n, K), and the mean log density (the E step)."""
    joint = model.law(Z).log_joint(r)
    total = log_sum_exp(joint)
    member = np.exp(joint - total[:, None])
    if weights is None:
        return member, float(np.mean(total))
    return member * weights[:, None], float(weights @ total / weights.sum())


def members_of(law: NormalMixture, t: Array, weights: Array | None = None) -> Array:
    """Return ωᵢ·P(component k | tᵢ) (n, K) of doses (n,), even where no component is near."""
    joint = law.log_joint(t)
    return counted(np.exp(joint - log_sum_exp(joint)[:, None]), weights)


def counted(member: Array, weights: Array | None) -> Array:
    """Return memberships (n, K) times the weights of the rows, if they have any."""
    return member if weights is None else member * weights[:, None]


def regressions(Z: Array, r: Array, member: Array, floor: float) -> Regressions:
    """Return the weighted fits given memberships (n, K), no sd below `floor` (the M step)."""
    size = np.maximum(member.sum(axis=0), _TINY)
    coef = shortest(*weighted_sums(Z, r, member))
    squares = np.sum(member * (r[:, None] - by_component(Z, coef)) ** 2, axis=0)
    sds = np.maximum(np.sqrt(squares / size), floor)
    return Regressions(np.log(size / size.sum()), coef, sds)


def step(
    model: Regressions, Z: Array, r: Array, floor: float, weights: Array | None = None
) -> tuple[Regressions, float]:
    """Return `model` after one EM step, and the log likelihood *before* it."""
    member, level = memberships(model, Z, r, weights)
    return regressions(Z, r, member, floor), worth(weights, len(r)) * level


def climb(
    model: Regressions,
    Z: Array,
    r: Array,
    *,
    floor: float,
    strides: int,
    weights: Array | None = None,
) -> Regressions:
    """Return `model` after strides of EM, as long as they raise the log likelihood noticeably.

    A stride is two steps and a leap along them (SQUAREM, Varadhan & Roland 2008), a step back
    onto EM's path; where the leap lands lower than the first step, the two steps stand.
    """
    before = -np.inf
    for _ in range(strides):
        first, level = step(model, Z, r, floor, weights)
        if level - before < _GAIN:
            break
        second, reached = step(first, Z, r, floor, weights)
        leap = extrapolated(model, first, second, floor)
        leaped, landed = step(leap, Z, r, floor, weights)
        model, before = (leaped if landed >= reached else second), level
    return model


def extrapolated(
    start: Regressions, first: Regressions, second: Regressions, floor: float
) -> Regressions:
    """Return θ₀ + 2s·d + s²·v with d = θ₁ − θ₀, v = (θ₂ − θ₁) − d, s = |d|/|v| within [1, 64]."""
    theta = [
        np.concatenate([m.log_weights, np.log(m.sds), m.coef.ravel()])
        for m in (start, first, second)
    ]
    d = theta[1] - theta[0]
    v = theta[2] - theta[1] - d
    s = np.clip(np.linalg.norm(d) / max(float(np.linalg.norm(v)), _TINY), 1.0, 64.0)
    log_weights, log_sds, coef = np.split(
        theta[0] + 2.0 * s * d + s * s * v, np.cumsum([len(start.sds)] * 2)
    )
    # The residual sd is 1: beyond e^±50 a leap has gone astray and will be taken back.
    log_weights = np.clip(log_weights, -50.0, 50.0)
    log_weights = log_weights - log_sum_exp(log_weights[None, :])
    sds = np.maximum(np.exp(np.clip(log_sds, -50.0, 50.0)), floor)
    return Regressions(log_weights, coef.reshape(start.coef.shape), sds)


def guesses(
    Z: Array,
    r: Array,
    components: int,
    *,
    number: int,
    floor: float,
    rng: np.random.Generator,
    weights: Array | None = None,
) -> Iterator[Regressions]:
    """Yield `number` first guesses: split by residual, by its size, then random regressions."""
    for k in range(number):
        if k == 0:
            member = ranked(r, components)
        elif k == 1:
            member = ranked(np.abs(r), components)
        else:
            member = drawn_lines(Z, r, components, rng)
        yield regressions(Z, r, counted(member, weights), floor)


def ranked(values: Array, components: int) -> Array:
    """Return memberships (n, K) by equal parts of the order of the values (n,)."""
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return np.asarray(np.eye(components)[rank * components // len(values)])


def drawn_lines(Z: Array, r: Array, components: int, rng: np.random.Generator) -> Array:
    """Return memberships (n, K) of the rows nearest to each of K random regressions."""
    # Few rows draw different lines; each row then joins the line nearest to it.
    few = min(len(r), 2 * Z.shape[1] + 1)
    rows = [rng.choice(len(r), few, replace=False) for _ in range(components)]
    lines = np.stack([weighted_least_squares(Z[i], r[i], np.ones(few)) for i in rows])
    return np.asarray(np.eye(components)[np.argmin(np.abs(r[:, None] - Z @ lines.T), axis=1)])


# A small mixture of linear-Gaussian propensities, the default when the propensity is unknown.

# No component is narrower than this share of the residual sd of one regression: a mixture that
# could sharpen freely would buy its likelihood with spikes on a few rows.
_FLOOR = 0.05
# First guesses climb a few strides on at most this many rows; only the best one climbs on.
_SUBSAMPLE = 4_000
_SHORT, _LONG = 7, 200


class GaussianMixture(SearchedModel):
    """T | x ~ Σ_k w_k N(a_k + b_k·x, s_k²), by EM from several seeded starts.

    Components are added, up to `components`, as long as the Bayesian information criterion
    falls; on linear-Gaussian logs one is enough and the fit is that of `LinearGaussian`. As
    there, each s_k carries the factor √(n/(n − K·rank)); no s_k is below 5 % of the residual sd
    of one regression.

    Parameters: `components`, the most components tried; `starts`, the first guesses for each
    number of components; `seed` of the random ones.

    Fitted: `components_`, `weights_` (K,), `sds_` (K,), `means_` (K affine functions, heaviest
    first), `bic_` (one value for each number of components tried).
    """

    def __init__(self, components: int = 3, *, starts: int = 6, seed: int = 0) -> None:
        self.components = components
        self.starts = starts
        self.seed = seed

    def _fit(
        self, X: ArrayLike, y: ArrayLike, near: Self | None, sample_weight: ArrayLike | None
    ) -> Self:
        most = count(self.components, "components", "GaussianMixture")
        count(self.starts, "starts", "GaussianMixture")
        X, t = self._training_rows(X, y)
        w = self._weights(sample_weight, len(t))
        ols = Affine.least_squares(X, t, w)
        residuals = t - ols.predict(X)
        sd = residual_sd(residuals, t, ols.design.rank, w)
        Z, r = ols.design(X), residuals / sd
        most = affordable(Z, most, w)
        if near is None or near.components_ > most:
            best, self.bic_ = select(Z, r, most, starts=self.starts, seed=self.seed, weights=w)
        else:
            member = members_of(near.law(X), t, w)
            best = _climb(regressions(Z, r, member, _FLOOR), Z, r, _LONG, w)
            self.bic_ = np.array([criterion(best, Z, r, w)])
        self._keep(best, ols, sd, worth(w, len(t)))
        return self

    def _keep(self, fit: Regressions, ols: Affine, sd: float, n: float) -> None:
        order = np.argsort(-fit.log_weights, kind="stable")
        self.components_ = len(order)
        coefficients = self.components_ * ols.design.rank
        factor = np.sqrt(n / degrees_of_freedom(n, coefficients))
        self.weights_ = np.exp(fit.log_weights[order])
        self.sds_ = sd * factor * fit.sds[order]
        self.means_ = [Affine(ols.design, ols.coef + sd * fit.coef[k]) for k in order]

    def _law(self, X: Array) -> NormalMixture:
        design: Whitened = self.means_[0].design
        means = design(X) @ np.column_stack([mean.coef for mean in self.means_])
        return NormalMixture(np.log(self.weights_)[None, :], means, self.sds_[None, :])


def select(
    Z: Array, r: Array, most: int, *, starts: int, seed: int, weights: Array | None = None
) -> tuple[Regressions, Array]:
    """Return the regressions of r (n,) on Z (n, k) of least BIC, and the BIC of each number tried.

    Components are added, up to `most`, as long as the criterion falls.
    """
    fits = (
        best_of_starts(Z, r, components, starts=starts, seed=seed, weights=weights)
        for components in range(1, most + 1)
    )
    return least(fits, lambda fit: criterion(fit, Z, r, weights))


def least(fits: Iterator[Fit], criterion: Callable[[Fit], float]) -> tuple[Fit, Array]:
    """Return the last fit before the criterion rises, and the criterion of all that were made."""
    best = next(fits)
    path = [criterion(best)]
    for fit in fits:
        path.append(criterion(fit))
        if path[-1] >= path[-2]:
            break
        best = fit
    return best, np.array(path)


def best_of_starts(
    Z: Array, r: Array, components: int, *, starts: int, seed: int, weights: Array | None = None
) -> Regressions:
    """Return the fit of so many components that climbed highest from several first guesses."""
    rng = np.random.default_rng([seed, components])
    number = starts if components > 1 else 1
    few = rng.permutation(len(r))[:_SUBSAMPLE]
    part, own = (Z[few], r[few]), some(weights, few)
    first = guesses(*part, components, number=number, floor=_FLOOR, rng=rng, weights=own)
    short = [_climb(model, *part, _SHORT, own) for model in first]
    best = max(short, key=lambda model: model.log_likelihood(*part, own))
    return _climb(_climb(best, *part, _LONG, own), Z, r, _LONG, weights)


def criterion(fit: Regressions, Z: Array, r: Array, weights: Array | None = None) -> float:
    """Return BIC = −2ℓ + log(n)·(K(k + 1) + K − 1), K regressions of k coefficients and an sd."""
    components, coefficients = fit.coef.shape
    parameters = components * (coefficients + 2) - 1
    likelihood = fit.log_likelihood(Z, r, weights)
    return float(-2.0 * likelihood + parameters * np.log(worth(weights, len(r))))


def _climb(
    model: Regressions, Z: Array, r: Array, strides: int, weights: Array | None = None
) -> Regressions:
    return climb(model, Z, r, floor=_FLOOR, strides=strides, weights=weights)


def affordable(Z: Array, most: int, weights: Array | None = None) -> int:
    """Return how many components, up to `most`, the rows of Z (n, k) can pay for.

    Each should have about twice as many rows as coefficients and an sd.
    """
    n, coefficients = worth(weights, len(Z)), Z.shape[1]
    return int(max(1, min(most, n // (2 * (coefficients + 1)))))
