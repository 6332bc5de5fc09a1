"""A mixture of regressions whose weights depend on the context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant._check import count
from titrant.outcome.base import some, worth
from titrant.propensity.base import NormalMixture, SearchedModel, log_sum_exp
from titrant.propensity.gaussian import Whitened, degrees_of_freedom
from titrant.propensity.mixture import (
    affordable,
    by_component,
    counted,
    drawn_lines,
    least,
    members_of,
    ranked,
    summed,
    weighted_sums,
)
from titrant.propensity.smooth import few_rows, units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from titrant._types import Array

_FLOOR = 0.05
"""The least sd of a component, in sds of the treatment."""
_RIDGE = 1e-3
_SHARE = 0.01
"""Of the weight is spread evenly over the components, whatever the context."""
MOST = 2_500
"""Rows it is fitted on, at most: it has few parameters, and its steps are small ones."""
_SHORT, _LONG = 6, 100
_GAIN = 0.05
"""A step that raises the log likelihood by less, over all rows, changes nothing to be noticed."""
_HALVINGS = 5
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class Experts:
    """K regressions and their gate: `gate` (K, k), `coef` (K, k), `sds` (K,)."""

    gate: Array
    coef: Array
    sds: Array

    def law(self, Z: Array) -> NormalMixture:
        """Return the law at each row of the design Z (n, k)."""
        return self.gated(Z, log_softmax(Z, self.gate))

    def gated(self, Z: Array, logs: Array) -> NormalMixture:
        """Return the law at each row of Z (n, k), where the gate says log weights (n, K)."""
        weights = (1.0 - _SHARE) * np.exp(logs) + _SHARE / len(self.sds)
        return NormalMixture(np.log(weights), by_component(Z, self.coef), self.sds[None, :])

    def log_likelihood(self, Z: Array, u: Array, weights: Array | None = None) -> float:
        """Return Σ_i ω_i log Σ_k w_k(z_i) φ((u_i − z_i·b_k)/s_k)/s_k."""
        return summed(self.law(Z).log_density(u), weights)


class GatedMixture(SearchedModel):
    """T | x ~ Σ_k w_k(x) N(a_k + b_k·x, s_k²), w(x) a softmax linear in x.

    It follows doses that come from another protocol for other contexts. It is fitted by EM from
    several seeded starts; beyond 2, components are added as long as the Bayesian information
    criterion falls. The gate's coefficients carry a small ridge, each
    weight is .99w + .01/K, and no s_k is below 5 % of sd(T). Beyond 2,500 rows it is fitted on
    so many.

    Parameters
    ----------
    components : the most components, at least 2.
    starts : first guesses for each number of components.
    seed : draws the random guesses and, beyond 2,500 rows, those used.

    Fitted: `components_`, `center_`, `sd_`, `design_`, `experts_`, `bic_`.
    """

    def __init__(self, components: int = 3, *, starts: int = 3, seed: int = 0) -> None:
        self.components = components
        self.starts = starts
        self.seed = seed

    def _fit(
        self, X: ArrayLike, y: ArrayLike, near: Self | None, sample_weight: ArrayLike | None
    ) -> Self:
        most = count(self.components, "components", "GatedMixture", at_least=2)
        starts = count(self.starts, "starts", "GatedMixture")
        count(self.seed, "seed", "GatedMixture", at_least=0)
        X, t = self._training_rows(X, y)
        self.center_, self.sd_ = units(X, t)
        rows = few_rows(len(t), self.seed, MOST)
        w = some(self._weights(sample_weight, len(t)), rows)
        u = (t[rows] - self.center_) / self.sd_
        self.design_ = Whitened.of(X[rows])
        Z = self.design_(X[rows])
        n = worth(w, len(u))
        degrees_of_freedom(n, 2 * self.design_.rank)
        most = affordable(Z, most, w)
        if near is None or near.components_ > most:
            fitted, self.bic_ = select(Z, u, most, starts=starts, seed=self.seed, weights=w)
        else:
            first = split(Z, u, members_of(near.law(X[rows]), t[rows]), w)
            fitted = climb(first, Z, u, _LONG, w)
            self.bic_ = np.array([criterion(fitted, Z, u, w)])
        self.components_ = len(fitted.sds)
        factor = np.sqrt(n / degrees_of_freedom(n, fitted.coef.size))
        self.experts_ = Experts(fitted.gate, fitted.coef, fitted.sds * factor)
        return self

    def _law(self, X: Array) -> NormalMixture:
        law = self.experts_.law(self.design_(X))
        return NormalMixture(
            law.log_weights, self.center_ + self.sd_ * law.means, self.sd_ * law.sds
        )


def select(
    Z: Array, u: Array, most: int, *, starts: int, seed: int, weights: Array | None = None
) -> tuple[Experts, Array]:
    """Return the experts of least BIC for Z (n, k) and u (n,), and the BIC of each number tried."""
    fits = (
        best_of_starts(Z, u, components, starts=starts, seed=seed, weights=weights)
        for components in range(2, max(most, 2) + 1)
    )
    return least(fits, lambda fit: criterion(fit, Z, u, weights))


def best_of_starts(
    Z: Array, u: Array, components: int, *, starts: int, seed: int, weights: Array | None = None
) -> Experts:
    """Return the fit of so many components that climbed highest from several first guesses."""
    # First guesses climb a few steps; only the best one climbs on.
    first = guesses(Z, u, components, number=starts, rng=np.random.default_rng([seed, components]))
    short = [climb(split(Z, u, member, weights), Z, u, _SHORT, weights) for member in first]
    best = max(short, key=lambda experts: experts.log_likelihood(Z, u, weights))
    return climb(best, Z, u, _LONG, weights)


def guesses(
    Z: Array, u: Array, components: int, *, number: int, rng: np.random.Generator
) -> Iterator[Array]:
    """Yield `number` memberships (n, K) to start from.

    Split along the line that predicts the treatment, as a threshold would; by its residual; then by
    random regressions.
    """
    line = Z @ (Z.T @ u) / len(u)  # least squares: the design is whitened, Z'Z = n·I
    for k in range(number):
        if k == 0:
            yield ranked(line, components)
        elif k == 1:
            yield ranked(u - line, components)
        else:
            yield drawn_lines(Z, u - line, components, rng)


def criterion(fit: Experts, Z: Array, u: Array, weights: Array | None = None) -> float:
    """Return BIC = −2ℓ + log(n)·(K(k + 1) + (K − 1)k): regressions, sds and the gate between."""
    components, coefficients = fit.coef.shape
    parameters = components * (coefficients + 1) + (components - 1) * coefficients
    likelihood = fit.log_likelihood(Z, u, weights)
    return float(-2.0 * likelihood + parameters * np.log(worth(weights, len(u))))


def climb(
    experts: Experts, Z: Array, u: Array, steps: int, weights: Array | None = None
) -> Experts:
    """Return `experts` after so many steps of EM, fewer where they no longer gain noticeably."""
    before, logs = -np.inf, log_softmax(Z, experts.gate)
    for _ in range(steps):
        joint = experts.gated(Z, logs).log_joint(u)
        total = log_sum_exp(joint)
        level = summed(total, weights)
        if level - before < _GAIN:
            break
        before = level
        member = np.exp(joint - total[:, None])
        gate, logs = newton_step(experts.gate, logs, Z, member, weights)
        experts = Experts(gate, *weighted_lines(Z, u, counted(member, weights)))
    return experts


def split(Z: Array, u: Array, member: Array, weights: Array | None = None) -> Experts:
    """Return experts for memberships (n, K) of rows Z (n, k), u (n,), by their weights (n,)."""
    even = np.zeros((member.shape[1], Z.shape[1]))
    gate, _ = newton_step(even, log_softmax(Z, even), Z, member, weights)
    return Experts(gate, *weighted_lines(Z, u, counted(member, weights)))


def weighted_lines(Z: Array, u: Array, member: Array) -> tuple[Array, Array]:
    """Return the regressions (K, k) and sds (K,), none too small, given memberships (n, K)."""
    n, size = len(Z), member.sum(axis=0)
    gram, moment = weighted_sums(Z, u, member)
    # Next to nothing for a component with rows; one without gets the zero line.
    gram += 1e-8 * n * np.eye(Z.shape[1])
    coef = np.asarray(np.linalg.solve(gram, moment[:, :, None])[:, :, 0], dtype=np.float64)
    squares = np.sum(member * (u[:, None] - by_component(Z, coef)) ** 2, axis=0)
    return coef, np.maximum(np.sqrt(squares / np.maximum(size, _TINY)), _FLOOR)


def log_softmax(Z: Array, gate: Array) -> Array:
    """Return the logarithms of the gate's weights, z·g_k − log Σ_j exp(z·g_j), (n, K)."""
    scores = by_component(Z, gate)
    return np.asarray(scores - log_sum_exp(scores)[:, None])


def newton_step(
    gate: Array, logs: Array, Z: Array, member: Array, weights: Array | None = None
) -> tuple[Array, Array]:
    """Return the gate (K, k) after a Newton step toward memberships (n, K), short enough to climb.

    It climbs on (1/n) Σ ω·member·log softmax − ½·ridge·|gate|², which is concave; the ridge makes
    the Hessian definite although weights that sum to 1 leave one direction open. Beside the gate
    come its log weights (n, K), as they came with the gate before: ``logs``.
    """

    def height(gate: Array, logs: Array) -> float:
        return float(np.vdot(aims.T, logs.T) / n - 0.5 * _RIDGE * np.vdot(gate, gate))

    n, (size, k) = worth(weights, len(Z)), gate.shape
    w, aims = np.exp(logs), counted(member, weights)
    slope = counted(member - w, weights).T @ Z / n - _RIDGE * gate
    v = w if weights is None else w * np.sqrt(weights)[:, None]
    hessian = _RIDGE * np.eye(size * k).reshape(size, k, size, k)
    for a in range(size):
        for b in range(a):
            block = Z.T @ (Z * (v[:, a] * v[:, b] / n)[:, None])
            # Weights sum to 1, so w_a(1 − w_a) is the sum of the w_a·w_b of all others.
            hessian[a, :, b, :] = hessian[b, :, a, :] = -block
            hessian[a, :, a, :] += block
            hessian[b, :, b, :] += block
    newton = np.linalg.solve(hessian.reshape(size * k, size * k), slope.ravel())
    step = np.asarray(newton, dtype=np.float64).reshape(size, k)
    before = height(gate, logs)
    for _ in range(_HALVINGS):
        moved = log_softmax(Z, gate + step)
        if height(gate + step, moved) >= before:
            return gate + step, moved
        step = step / 4.0
    return gate, logs
