"""Expectation–maximization for a mixture of linear regressions with normal errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.propensity.linear import weighted_least_squares
from titrant.propensity.normal import NormalMixture, log_sum_exp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from titrant._types import Array


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
        return NormalMixture(self.log_weights[None, :], Z @ self.coef.T, self.sds[None, :])

    def log_likelihood(self, Z: Array, r: Array) -> float:
        """Return Σ_i log Σ_k w_k φ((r_i − z_i·b_k)/s_k)/s_k."""
        return float(np.sum(self.law(Z).log_density(r)))


def memberships(model: Regressions, Z: Array, r: Array) -> tuple[Array, float]:
    """Return P(component k | row i), (n, K), and the mean log density (the E step)."""
    joint = model.law(Z).log_joint(r)
    total = log_sum_exp(joint)
    return np.exp(joint - total[:, None]), float(np.mean(total))


def regressions(Z: Array, r: Array, member: Array, floor: float) -> Regressions:
    """Return the weighted fits given memberships (n, K), no sd below `floor` (the M step)."""
    size = np.maximum(member.sum(axis=0), _TINY)
    coef = np.stack([weighted_least_squares(Z, r, column) for column in member.T])
    squares = np.sum(member * (r[:, None] - Z @ coef.T) ** 2, axis=0)
    sds = np.maximum(np.sqrt(squares / size), floor)
    return Regressions(np.log(size / size.sum()), coef, sds)


def step(model: Regressions, Z: Array, r: Array, floor: float) -> tuple[Regressions, float]:
    """Return `model` after one EM step, and the log likelihood *before* it."""
    member, level = memberships(model, Z, r)
    return regressions(Z, r, member, floor), len(r) * level


def climb(model: Regressions, Z: Array, r: Array, *, floor: float, strides: int) -> Regressions:
    """Return `model` after strides of EM, as long as they raise the log likelihood noticeably.

    A stride is two steps and a leap along them (SQUAREM, Varadhan & Roland 2008), a step back
    onto EM's path; where the leap lands lower than the first step, the two steps stand.
    """
    before = -np.inf
    for _ in range(strides):
        first, level = step(model, Z, r, floor)
        if level - before < _GAIN:
            break
        second, reached = step(first, Z, r, floor)
        leaped, landed = step(extrapolated(model, first, second, floor), Z, r, floor)
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


def starts(
    Z: Array, r: Array, components: int, *, number: int, floor: float, rng: np.random.Generator
) -> Iterator[Regressions]:
    """Yield `number` first guesses: split by residual, by its size, then random regressions."""
    for k in range(number):
        if k == 0:
            member = ranked(r, components)
        elif k == 1:
            member = ranked(np.abs(r), components)
        else:
            member = drawn_lines(Z, r, components, rng)
        yield regressions(Z, r, member, floor)


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
