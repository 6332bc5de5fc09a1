"""Logs of which the answers to three kinds of questions are known in closed form.

Contexts x₀, x₁ are standard normal, t = .6x₀ + .3x₁ + N(0, 1), so that Var t = 1.45, and
y = .5(t − 1 − u)² + .5x₀ + .4x₁ + noise. The policy gives everyone the dose .8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

import titrant as tt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Array = np.ndarray

POLICY = tt.Constant(0.8)
DOSE = np.array([0.6, 0.3])
"""How the usual dose depends on the contexts,"""
LOSS = np.array([0.5, 0.4])
"""and how the outcome does."""
BEST = 1.0
"""The best dose where u = 0."""


def drawn(
    n: int, rng: np.random.Generator, noise: float, u: Array | float = 0.0, **contexts: Array
) -> tt.LoggedData:
    """Return a log of n rows with known propensities and further contexts (n,)."""
    x = rng.normal(size=(n, 2))
    above = rng.normal(size=n)
    t = x @ DOSE + above
    y = 0.5 * (t - BEST - u) ** 2 + x @ LOSS + noise * rng.normal(size=n)
    columns = {"x0": x[:, 0], "x1": x[:, 1], **contexts}
    return tt.LoggedData(columns, t, y, norm.pdf(above))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A third context, uniform from 0 to 1, cuts the rows into parts of as many rows.

    The best dose is 1 + a(x₂ − ½), so that the policy changes −1.205 − .8a(m − ½) against the
    status quo in a part with the middle m: as much in all parts where a = 0.
    """

    about: str
    parts: int
    rows: int
    slope: float = 0.0

    @property
    def cuts(self) -> list[float]:
        """Between the parts."""
        return [k / self.parts for k in range(1, self.parts)]

    def draw(self, n: int, seed: Sequence[int]) -> tt.LoggedData:
        """Return a log of n rows."""
        rng = np.random.default_rng(seed)
        third = rng.random(n)
        return drawn(n, rng, 0.5, self.slope * (third - 0.5), x2=third)

    def truths(self) -> list[float]:
        """Return what the policy changes in each part."""
        middles = (np.arange(self.parts) + 0.5) / self.parts
        return [float(c) for c in -1.205 - 0.8 * self.slope * (middles - 0.5)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """Another population, a table of 1,000 rows whose contexts have the means .5 and .3."""

    about: str
    rows: int
    shift: tuple[float, float] = (0.5, 0.3)
    table: int = 1000

    def draw(self, n: int, seed: Sequence[int]) -> tuple[tt.LoggedData, dict[str, Array]]:
        """Return a log of n rows, and the table of the other population."""
        rng = np.random.default_rng(seed)
        log = drawn(n, rng, 0.5)
        there = rng.normal(size=(self.table, 2)) + self.shift
        return log, {"x0": there[:, 0], "x1": there[:, 1]}

    def truth(self, there: Mapping[str, Array]) -> float:
        """Return the value of the policy in a table."""
        x = np.column_stack([there["x0"], there["x1"]])
        return float(0.5 * (POLICY.dose - BEST) ** 2 + (x @ LOSS).mean())

    @property
    def beyond(self) -> float:
        """The value of the policy in the population that the table was drawn from."""
        return float(0.5 * (POLICY.dose - BEST) ** 2 + np.array(self.shift) @ LOSS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """The outcome under the policy is normal: mean .02, variance .25 + .16 + noise²."""

    about: str
    rows: int
    noise: float = 0.8

    def draw(self, n: int, seed: Sequence[int]) -> tt.LoggedData:
        """Return a log of n rows."""
        return drawn(n, np.random.default_rng(seed), self.noise)

    def truths(self) -> dict[str, float]:
        """Return what is asked for of the outcome under the policy."""
        law: Any = norm(0.5 * (POLICY.dose - BEST) ** 2, np.sqrt(LOSS @ LOSS + self.noise**2))
        tail = law.mean() + law.std() * norm.pdf(norm.ppf(0.9)) / 0.1
        return {
            "Exceeds(1)": float(law.sf(1.0)),
            "Quantile(.5)": float(law.ppf(0.5)),
            "Quantile(.9)": float(law.ppf(0.9)),
            "TailMean(.1)": float(tail),
        }


FUNCTIONALS = {
    "Exceeds(1)": tt.Exceeds(1.0),
    "Quantile(.5)": tt.Quantile(0.5),
    "Quantile(.9)": tt.Quantile(0.9),
    "TailMean(.1)": tt.TailMean(0.1),
}
DESIGNS: dict[str, Parts | Elsewhere | Risk] = {
    "alike, 3 parts": Parts(about="the policy changes as much in all parts", parts=3, rows=1000),
    "alike, 5 parts": Parts(about="the same in smaller parts", parts=5, rows=600),
    "unlike, 3 parts": Parts(
        about="it changes −0.94, −1.21 and −1.47 in the three parts", parts=3, rows=1000, slope=1.0
    ),
    "elsewhere": Elsewhere(about="contexts have other means in the other population", rows=1000),
    "risk": Risk(about="the outcome under the policy is normal", rows=1000),
}
