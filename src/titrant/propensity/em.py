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
    size = np.maximum(member.sum(axis=0), np.finfo(np.float64).tiny)
    coef = np.stack([weighted_least_squares(Z, r, column) for column in member.T])
    squares = np.sum(member * (r[:, None] - Z @ coef.T) ** 2, axis=0)
    sds = np.maximum(np.sqrt(squares / size), floor)
    return Regressions(np.log(size / size.sum()), coef, sds)


def climb(
    model: Regressions, Z: Array, r: Array, *, floor: float, iterations: int, tolerance: float
) -> Regressions:
    """Return `model` after EM steps, until the mean log density gains less than `tolerance`."""
    before = -np.inf
    for _ in range(iterations):
        member, level = memberships(model, Z, r)
        if level - before < tolerance:
            break
        model, before = regressions(Z, r, member, floor), level
    return model


def starts(
    Z: Array, r: Array, components: int, *, number: int, floor: float, rng: np.random.Generator
) -> Iterator[Regressions]:
    """Yield `number` first guesses: split by residual, by its size, then random regressions."""
    for k in range(number):
        if k == 0:
            member = _ranked(r, components)
        elif k == 1:
            member = _ranked(np.abs(r), components)
        else:
            member = _random(Z, r, components, rng)
        yield regressions(Z, r, member, floor)


def _ranked(values: Array, components: int) -> Array:
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return np.asarray(np.eye(components)[rank * components // len(values)])


def _random(Z: Array, r: Array, components: int, rng: np.random.Generator) -> Array:
    # Few rows draw different lines; each row then joins the line nearest to it.
    few = min(len(r), 2 * Z.shape[1] + 1)
    rows = [rng.choice(len(r), few, replace=False) for _ in range(components)]
    lines = np.stack([weighted_least_squares(Z[i], r[i], np.ones(few)) for i in rows])
    return np.asarray(np.eye(components)[np.argmin(np.abs(r[:, None] - Z @ lines.T), axis=1)])
