"""Logs whose doses have a hidden cause: of known strength Γ, worst of all, or a context left out.

Doses are z = t − .6x₀ − .3x₁ above what is usual for a row, z ~ N(0, 1). The hidden cause u is 0 or
1, and more often 1 where the dose is high: f(t | x, u)/f(t | x) = P(u | t, x)/P(u | x).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

import titrant as tt

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray

USUAL = (0.6, 0.3)
"""How the usual dose depends on the two contexts."""
POLICY, OTHER = 1.2, 0.0
"""How far above the usual dose the two policies are."""


def policy(above: float) -> tt.Linear:
    """Return the policy of a dose so far above the usual one."""
    return tt.Linear(coef=list(USUAL), intercept=above, features=["x0", "x1"])


def effect(x: Array, z: Array) -> Array:
    """Return the mean outcome (n,) of doses z above the usual ones, without the hidden cause."""
    return 0.5 * (z - 1.0) ** 2 + 0.5 * x[:, 1] + 0.3 * x[:, 0] * z


def true_value(above: float) -> float:
    """Return the true value of `policy(above)`: contexts have mean 0, hidden causes no say."""
    return 0.5 * (above - 1.0) ** 2


@dataclass(frozen=True)
class Mild:
    """u = 1 in half of the rows, more often where the dose is high, up to the strength Γ.

    P(u = 1 | t, x) = 1/2 + (1/2 − 1/(2Γ))·tanh(2z): ratios from 1/Γ to 2 − 1/Γ. Outcomes have
    noise besides.
    """

    gamma: float

    def log(self, n: int, seed: Sequence[int]) -> tt.LoggedData:
        """Return a log without the hidden cause."""
        rng = np.random.default_rng(seed)
        x, z = rng.normal(size=(n, 2)), rng.normal(size=n)
        chance = 0.5 + (0.5 - 0.5 / self.gamma) * np.tanh(2.0 * z)
        u = np.where(rng.random(n) < chance, 1.0, -1.0)
        y = effect(x, z) + 0.5 * u + 0.5 * rng.normal(size=n)
        return tt.LoggedData(x, x @ np.array(USUAL) + z, y)


@dataclass(frozen=True)
class Worst:
    """Ratios are Γ and 1/Γ at the policy's doses, and u decides the residual: the bound is exact.

    P(u = 1 | x) = ρ = 1/(1 + Γ); P(u = 1 | t, x) climbs from ρ/Γ to ρΓ below the policy's doses.
    """

    gamma: float

    @property
    def rho(self) -> float:
        """P(u = 1 | x)."""
        return 1.0 / (1.0 + self.gamma)

    @cached_property
    def middle(self) -> float:
        """Where the chance of u climbs, such that its mean is ρ."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(200)
        weights = weights / weights.sum()
        aim = (1.0 - 1.0 / self.gamma) / (self.gamma - 1.0 / self.gamma)

        def off(middle: float) -> float:
            return float(weights @ expit((nodes - middle) / 0.1)) - aim

        return float(brentq(off, norm.ppf(1.0 - aim) - 1.0, norm.ppf(1.0 - aim) + 1.0))

    def chance(self, z: Array) -> Array:
        """Return P(u = 1 | t, x) (n,)."""
        low = 1.0 / self.gamma
        return self.rho * (low + (self.gamma - low) * expit((z - self.middle) / 0.1))

    def log(self, n: int, seed: Sequence[int]) -> tt.LoggedData:
        """Return a log without the hidden cause."""
        rng = np.random.default_rng(seed)
        x, z = rng.normal(size=(n, 2)), rng.normal(size=n)
        u = (rng.random(n) < self.chance(z)).astype(float)
        y = effect(x, z) + (u - self.rho) + 0.15 * rng.normal(size=n)
        return tt.LoggedData(x, x @ np.array(USUAL) + z, y)


@dataclass(frozen=True)
class LeftOut:
    """A third context moves dose and outcome; it is recorded, and then left out.

    Its ratio is not bounded: what strength it has is what its benchmark says.
    """

    strength: float = 0.3

    def log(self, n: int, seed: Sequence[int]) -> tt.LoggedData:
        """Return a log with the third context, which is to be left out."""
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, 3))
        rest = np.sqrt(1.0 - self.strength**2)
        z = self.strength * x[:, 2] + rest * rng.normal(size=n)
        y = effect(x, z) + 0.4 * x[:, 2] + 0.5 * rng.normal(size=n)
        return tt.LoggedData(x, x[:, :2] @ np.array(USUAL) + z, y)


DESIGNS: dict[str, Mild | Worst | LeftOut] = {
    "mild, Γ 1.5": Mild(1.5),
    "mild, Γ 2": Mild(2.0),
    "worst, Γ 1.5": Worst(1.5),
    "worst, Γ 2": Worst(2.0),
    "a context left out": LeftOut(),
}
