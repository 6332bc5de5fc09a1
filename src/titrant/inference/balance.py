"""Covariate balance: whether the weighted rows look like all rows.

As E[w | x] = 1 when the propensities are right, weighting must not move the mean of any context.
The weighted mean less the plain one is the mean of (w/w̄ − 1)(x − x̄), whose spread is its error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant.scaling import spread_of

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.scaling import Held


@dataclass(frozen=True, slots=True)
class Contexts:
    """The contexts of all n rows: their names, means (p,) and standard deviations (p,)."""

    n: int
    names: tuple[str, ...]
    center: Array
    spread: Array
    """0 for a constant one."""
    hold: Held
    """How far values are held, so that one cell cannot be all of a context's spread."""

    @classmethod
    def of(cls, x: Array, names: tuple[str, ...], hold: Held) -> Self:
        """Return the summary of contexts x (n, p)."""
        held = hold.columns(x)
        return cls(len(x), names, held.mean(axis=0), spread_of(held), hold)


@dataclass(frozen=True, slots=True)
class Imbalance:
    """How far weighting moves each context: in its own sd and in standard errors, each (p,)."""

    in_sd: Array
    in_se: Array


def balance_sums(w: Array, x: Array, mean_weight: float, contexts: Contexts) -> Array:
    """Return Σz and Σz² (2, p), z = (w/w̄ − 1)(x − x̄), of weights w (n,) and contexts x (n, p)."""
    z = (w / mean_weight - 1.0)[:, None] * (contexts.hold.columns(x) - contexts.center)
    return np.stack([z.sum(axis=0), (z * z).sum(axis=0)])


def imbalance(sums: Array, contexts: Contexts) -> Imbalance:
    """Return |Σz|/(n·sd(x)) and |Σz|/√Σz², 0 for a constant context."""
    total, squares = np.abs(sums[0]), sums[1]
    varies = (contexts.spread > 0.0) & (squares > 0.0)
    zero = np.zeros_like(total)
    return Imbalance(
        np.divide(total, contexts.n * contexts.spread, out=zero.copy(), where=varies),
        np.divide(total, np.sqrt(squares), out=zero.copy(), where=varies),
    )
