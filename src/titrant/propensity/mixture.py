"""A small mixture of linear-Gaussian propensities, the default when the propensity is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from titrant._check import count
from titrant.propensity.base import NormalModel
from titrant.propensity.em import Regressions, climb
from titrant.propensity.em import starts as guesses
from titrant.propensity.linear import Affine, Design, degrees_of_freedom, residual_sd
from titrant.propensity.normal import NormalMixture

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant._types import Array

# No component is narrower than this share of the residual sd of one regression: a mixture that
# could sharpen freely would buy its likelihood with spikes on a few rows.
_FLOOR = 0.05
# First guesses climb a few strides on at most this many rows; only the best one climbs on.
_SUBSAMPLE = 4_000
_SHORT, _LONG = 7, 200


class GaussianMixture(NormalModel):
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

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to contexts X (n, p) and treatments y (n,)."""
        most = count(self.components, "components", "GaussianMixture")
        count(self.starts, "starts", "GaussianMixture")
        X, t = self._training_rows(X, y)
        ols = Affine.least_squares(X, t)
        residuals = t - ols.predict(X)
        sd = residual_sd(residuals, t, ols.design.rank)
        Z, r = ols.design(X), residuals / sd
        most = affordable(Z, most)
        best, self.bic_ = select(Z, r, most, starts=self.starts, seed=self.seed)
        self._keep(best, ols, sd, len(t))
        return self

    def _keep(self, fit: Regressions, ols: Affine, sd: float, n: int) -> None:
        order = np.argsort(-fit.log_weights, kind="stable")
        self.components_ = len(order)
        coefficients = self.components_ * ols.design.rank
        factor = np.sqrt(n / degrees_of_freedom(n, coefficients))
        self.weights_ = np.exp(fit.log_weights[order])
        self.sds_ = sd * factor * fit.sds[order]
        self.means_ = [Affine(ols.design, ols.coef + sd * fit.coef[k]) for k in order]

    def _law(self, X: Array) -> NormalMixture:
        design: Design = self.means_[0].design
        means = design(X) @ np.column_stack([mean.coef for mean in self.means_])
        return NormalMixture(np.log(self.weights_)[None, :], means, self.sds_[None, :])


def select(Z: Array, r: Array, most: int, *, starts: int, seed: int) -> tuple[Regressions, Array]:
    """Return the regressions of r (n,) on Z (n, k) of least BIC, and the BIC of each number tried.

    Components are added, up to `most`, as long as the criterion falls.
    """
    best = best_of_starts(Z, r, 1, starts=starts, seed=seed)
    path = [criterion(best, Z, r)]
    for components in range(2, most + 1):
        fit = best_of_starts(Z, r, components, starts=starts, seed=seed)
        path.append(criterion(fit, Z, r))
        if path[-1] >= path[-2]:
            break
        best = fit
    return best, np.array(path)


def best_of_starts(Z: Array, r: Array, components: int, *, starts: int, seed: int) -> Regressions:
    """Return the fit of so many components that climbed highest from several first guesses."""
    rng = np.random.default_rng([seed, components])
    number = starts if components > 1 else 1
    few = rng.permutation(len(r))[:_SUBSAMPLE]
    first = guesses(Z[few], r[few], components, number=number, floor=_FLOOR, rng=rng)
    short = [_climb(model, Z[few], r[few], _SHORT) for model in first]
    best = max(short, key=lambda model: model.log_likelihood(Z[few], r[few]))
    return _climb(_climb(best, Z[few], r[few], _LONG), Z, r, _LONG)


def criterion(fit: Regressions, Z: Array, r: Array) -> float:
    """Return BIC = −2ℓ + log(n)·(K(k + 1) + K − 1), K regressions of k coefficients and an sd."""
    components, coefficients = fit.coef.shape
    parameters = components * (coefficients + 2) - 1
    return float(-2.0 * fit.log_likelihood(Z, r) + parameters * np.log(len(r)))


def _climb(model: Regressions, Z: Array, r: Array, strides: int) -> Regressions:
    return climb(model, Z, r, floor=_FLOOR, strides=strides)


def affordable(Z: Array, most: int) -> int:
    """Return how many components, up to `most`, the rows of Z (n, k) can pay for.

    Each should have about twice as many rows as coefficients and an sd.
    """
    n, coefficients = Z.shape
    return int(max(1, min(most, n // (2 * (coefficients + 1)))))
