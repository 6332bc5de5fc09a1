"""Learning over bins of the dose: a multinomial-logistic policy by a self-normalized estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.estimators import Discretized
from titrant.evaluation.models.nuisance import Nuisances
from titrant.kernels import Scale
from titrant.learn.classes import LinearClass
from titrant.optimize import LBFGS, Objective

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.classes import FittedClass
    from titrant.propensity import PropensityModel


@dataclass(frozen=True, slots=True, repr=False)
class BinPolicy:
    """τ(x) = the dose of the likeliest bin, by scores φ(x)'W."""

    fitted: FittedClass
    weights: Array
    """W (P, bins)."""
    doses: Array
    """(bins,)"""

    def __call__(self, X: Array) -> Array:
        """Return the doses (n,) of contexts X (n, p)."""
        return np.asarray(self.doses[np.argmax(self.fitted.features(X) @ self.weights, axis=1)])

    def __repr__(self) -> str:
        return (
            f"BinPolicy({len(self.doses)} doses, {self.doses.min():.4g} … {self.doses.max():.4g})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BinObjective(Objective):
    """v̂(W) + λ·SE(W) + ridge·‖W‖² of π(b | x) = softmax(φ(x)'W), v̂ = Σa·y/Σa, a = π(bin)/P(bin)."""

    phi: Array
    """Features (n, P)."""
    chosen: NDArray[np.intp]
    """The bin of each logged dose (n,)."""
    inverse: Array
    """1/P(bin | x) of that bin, floored (n,)."""
    y: Array
    """Losses in units of their sd, counted from their mean (n,)."""
    bins: int
    ridge: Array
    """On each squared coefficient (P,)."""
    se_weight: float

    def __call__(self, params: Array) -> tuple[Array, Array]:
        """Return the values (m,) and gradients (m, P·bins) at points (m, P·bins)."""
        found = [self._at(p.reshape(-1, self.bins)) for p in params]
        return np.array([f for f, _ in found]), np.stack([g.ravel() for _, g in found])

    def _at(self, W: Array) -> tuple[float, Array]:
        pi = softmax(self.phi @ W)
        a = pi[np.arange(len(self.y)), self.chosen] * self.inverse
        value, slope = self._penalized(a)
        # ∂π(bin)/∂W = φ·π(bin)·(1{bin} − π)
        pull = -pi * (slope * a)[:, None]
        pull[np.arange(len(self.y)), self.chosen] += slope * a
        penalty = self.ridge[:, None] * W
        return value + float(np.sum(penalty * W)), self.phi.T @ pull + 2.0 * penalty

    def _penalized(self, a: Array) -> tuple[float, Array]:
        """Return v̂ + λ·SE and its slope in each weight a (n,).

        With r = y − v̂ and A = Σa: ∂v̂/∂a = r/A. SE = √S/A with S = Σa²r², and
        ∂S/∂a = 2ar² − 2(Σa²r)·r/A.
        """
        total = a.sum()
        v = float(a @ self.y) / total
        r = self.y - v
        slope = r / total
        if not self.se_weight:
            return v, slope
        s = float(np.sum((a * r) ** 2))
        se = s**0.5 / total
        ds = 2.0 * a * r**2 - 2.0 * float(np.sum(a**2 * r)) * slope
        dse = ds / (2.0 * s**0.5 * total) - se / total
        return v + self.se_weight * se, slope + self.se_weight * dse


def learn_bins(
    log: LoggedData,
    *,
    bins: int,
    quantiles: bool,
    propensity: PropensityModel | None,
    clip: float | None,
    penalties: tuple[float, float],
    restarts: int,
    seed: int,
) -> BinPolicy:
    """Return the policy over bins with the least penalized estimate; see `discretized_policy`."""
    layout = Discretized(bins=bins, quantiles=quantiles, clip=clip).on(log.treatment)
    inner = np.asarray(layout.edges)
    chosen = np.searchsorted(inner, log.treatment, side="left")
    fitted = LinearClass().on(log)
    objective = BinObjective(
        phi=fitted.features(log.context),
        chosen=chosen,
        inverse=_inverse_probability(log, layout, propensity),
        y=(log.outcome - log.outcome.mean()) / (log.outcome.std() or 1.0),
        bins=len(inner) + 1,
        ridge=penalties[0] * np.ones(len(fitted.penalized)),
        se_weight=penalties[1],
    )
    shape = (restarts, objective.phi.shape[1] * objective.bins)
    starts = 0.1 * np.random.default_rng(seed).standard_normal(shape)
    starts[0] = 0.0
    best = LBFGS().minimize(objective, starts).params.reshape(-1, objective.bins)
    return BinPolicy(fitted, best, bin_doses(log.treatment, inner, chosen, medians=quantiles))


def bin_doses(doses: Array, inner: Array, chosen: NDArray[np.intp], *, medians: bool) -> Array:
    """Return one dose for each bin: its center, or the median of the logged doses in it."""
    edges = np.concatenate([[doses.min()], inner, [doses.max()]])
    if not medians:
        return np.asarray((edges[:-1] + edges[1:]) / 2.0)
    return np.array([np.median(doses[chosen == b]) for b in range(len(inner) + 1)])


def softmax(scores: Array) -> Array:
    """Return exp(score)/Σexp(score) of each row (n, bins)."""
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def _inverse_probability(
    log: LoggedData, layout: Discretized, propensity: PropensityModel | None
) -> Array:
    """Return 1/P(bin | x) of the bins of the logged doses (n,): the weight of keeping the dose."""
    from titrant.policies import StatusQuo  # noqa: PLC0415
    from titrant.propensity import GaussianMixture  # noqa: PLC0415

    # The bins need a cdf, which a column of densities does not give.
    nuisances = Nuisances.of(log, layout, propensity or GaussianMixture())
    rows = nuisances.rows(nuisances.prepare(log), StatusQuo())
    return layout.weight(rows, Scale.of(1.0, 1))
