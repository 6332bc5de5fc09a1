"""The designs of the calibration benchmark: a log with a known truth, and the policy asked about.

Smooth designs have a dose response without a kink at the policy's dose and the right propensity;
the bands of the benchmark hold for those. The others are reported beside them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

import titrant as tt
from titrant.data.simulate import TenContexts

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant._types import Array
    from titrant.data import LoggedData

_GRID = (np.arange(200_000) + 0.5) / 200_000
"""Midpoints of [0, 1]: contexts are quantiles of these, so a truth has no Monte-Carlo error."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One context, a law of doses given it, a mean outcome, and the policy to evaluate."""

    name: str
    quantile: Callable[[Array], Array]
    """The context at a level u of [0, 1]."""
    dose: Callable[[np.random.Generator, Array], Array]
    density: Callable[[Array, Array], Array]
    """f(t | x) as a function of x and t."""
    outcome: Callable[[Array, Array], Array]
    """m(x, t)."""
    policy: Callable[[Array], Array]
    noise: Callable[[np.random.Generator, int], Array]
    smooth: bool = True
    sound: bool = True
    """False where the log cannot answer: the trust rules should say so."""
    bounds: tuple[float, float] | None = None
    propensity: None = None
    """The log's own column is used."""

    def draw(self, n: int, seed: list[int]) -> LoggedData:
        """Return a log of n rows with its true propensities."""
        rng = np.random.default_rng(seed)
        x = self.quantile(rng.uniform(size=n))
        t = self.dose(rng, x)
        y = self.outcome(x, t) + self.noise(rng, n)
        return tt.LoggedData(x, t, y, self.density(x, t), bounds=self.bounds)

    def truth(self) -> float:
        """Return V = E[m(X, τ(X))]."""
        x = self.quantile(_GRID)
        return float(np.mean(self.outcome(x, self.policy(x))))

    def rule(self) -> Callable[[Array], Array]:
        """Return the policy as a function of the context array."""
        return lambda X: self.policy(X[:, 0])


@dataclass(frozen=True, kw_only=True)
class TenContextCase:
    """Ten contexts, a quadratic outcome, and a propensity that has to be estimated."""

    name: str = "ten contexts, estimated propensity"
    smooth: bool = True
    sound: bool = True

    @property
    def design(self) -> TenContexts:
        """The paper's second design where every dose was tried."""
        return TenContexts.sample(7, overlap=True)

    def draw(self, n: int, seed: list[int]) -> LoggedData:
        """Return a log of n rows without propensities."""
        return self.design.draw(n, np.random.default_rng(seed), propensity=False)

    def truth(self) -> float:
        """Return V of half the logging rule plus one, in closed form."""
        return self.design.value_of_affine(0.5 * self.design.logging, 1.0)

    def rule(self) -> tt.Linear:
        """Return the policy."""
        return tt.Linear(0.5 * self.design.logging, 1.0)

    @property
    def propensity(self) -> tt.LinearGaussian:
        """The model that is fitted to each log."""
        return tt.LinearGaussian()


def _normal_noise(sd: float) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, n: sd * rng.standard_normal(n)


def _paper(name: str, beta: float, *, uniform: bool) -> Case:
    """Return the paper's synthetic example at the policy βx."""
    return Case(
        name=name,
        quantile=lambda u: u,
        dose=(lambda rng, x: rng.uniform(-0.5, 1.3, len(x)))
        if uniform
        else (lambda rng, x: x + 0.1 + 0.5 * rng.standard_normal(len(x))),
        density=(lambda x, t: np.full_like(t, 1 / 1.8))
        if uniform
        else (lambda x, t: stats.norm.pdf(t, x + 0.1, 0.5)),
        outcome=lambda x, t: 2 * np.abs(x - t) ** 1.5,
        policy=lambda x: beta * x,
        noise=_normal_noise(0.2),
        smooth=False,
        bounds=(-0.5, 1.3) if uniform else None,
    )


def _gaussian(
    name: str,
    outcome: Callable[[Array, Array], Array],
    *,
    offset: float = 0.0,
    noise: Callable[[np.random.Generator, int], Array] | None = None,
    smooth: bool = True,
    policy: Callable[[Array], Array] | None = None,
) -> Case:
    """Return x ~ N(0, 1), T ~ N(x/2, 1), τ = x/2 + .2·tanh(x) + offset unless given."""
    return Case(
        name=name,
        quantile=stats.norm.ppf,
        dose=lambda rng, x: 0.5 * x + rng.standard_normal(len(x)),
        density=lambda x, t: stats.norm.pdf(t, 0.5 * x),
        outcome=outcome,
        policy=policy or (lambda x: 0.5 * x + 0.2 * np.tanh(x) + offset),
        noise=noise or _normal_noise(0.5),
        smooth=smooth,
    )


def _quadratic(x: Array, t: Array) -> Array:
    return (t - x) ** 2 + x


def _sinus(x: Array, t: Array) -> Array:
    return np.sin(2 * t) + x * t


def _bimodal_density(x: Array, t: Array) -> Array:
    return 0.5 * stats.norm.pdf(t, x - 1, 0.5) + 0.5 * stats.norm.pdf(t, x + 1, 0.5)


CASES: tuple[Case | TenContextCase, ...] = (
    _paper("paper, normal logging, β = 1", 1.0, uniform=False),
    _paper("paper, normal logging, β = .5", 0.5, uniform=False),
    _paper("paper, uniform logging, β = 1", 1.0, uniform=True),
    _paper("paper, uniform logging, β = .5", 0.5, uniform=True),
    _gaussian("smooth quadratic", _quadratic),
    _gaussian("smooth sinus", _sinus),
    _gaussian("1.3 sd off-center", _quadratic, offset=1.3),
    _gaussian("heavy-tailed noise", _quadratic, noise=lambda rng, n: 0.5 * rng.standard_t(3, n)),
    _gaussian(
        "V shape at the dose",
        lambda x, t: np.abs(t - 0.5 * x),
        policy=lambda x: 0.5 * x,
        smooth=False,
    ),
    Case(
        name="bounded, near an edge",
        quantile=lambda u: u,
        dose=lambda rng, x: rng.beta(1.3, 1.3, len(x)),
        density=lambda x, t: stats.beta.pdf(t, 1.3, 1.3),
        outcome=lambda x, t: np.exp(t) * (1 + x),
        policy=lambda x: 0.12 + 0.1 * x,
        noise=_normal_noise(0.3),
        bounds=(0.0, 1.0),
    ),
    Case(
        name="skewed doses",
        quantile=lambda u: u,
        dose=lambda rng, x: rng.gamma(3.0, 1.0 + x),
        density=lambda x, t: stats.gamma.pdf(t, 3.0, scale=1.0 + x),
        outcome=lambda x, t: 2 * np.log1p(t) - 0.5 * x * t + 0.1 * t**2,
        policy=lambda x: 2.5 + 1.5 * x,
        noise=_normal_noise(0.5),
        bounds=(0.0, np.inf),
    ),
    Case(
        name="bimodal doses",
        quantile=stats.norm.ppf,
        dose=lambda rng, x: (
            x
            + np.where(rng.uniform(size=len(x)) < 0.5, -1.0, 1.0)
            + 0.5 * rng.standard_normal(len(x))
        ),
        density=_bimodal_density,
        outcome=lambda x, t: np.cos(t) + 0.5 * (t - x) ** 2,
        policy=lambda x: x + 0.6,
        noise=_normal_noise(0.5),
    ),
    TenContextCase(),
    replace(_gaussian("3 sd off-center", _quadratic, offset=3.0), smooth=False, sound=False),
    replace(
        _gaussian("propensities far too narrow", _quadratic, offset=0.7),
        density=lambda x, t: stats.norm.pdf(t, 0.5 * x, 0.5),
        smooth=False,
        sound=False,
    ),
    replace(
        _gaussian("propensities with a wrong center", _quadratic, offset=0.7),
        density=lambda x, t: stats.norm.pdf(t, 0.5 * x - 0.7),
        smooth=False,
        sound=False,
    ),
    replace(
        _gaussian("3 sd off-center, steep outcome", lambda x, t: np.exp(0.8 * t), offset=3.0),
        smooth=False,
        sound=False,
    ),
    replace(
        _paper("paper, the constant dose 2.4", 1.0, uniform=False),
        policy=lambda x: np.full_like(x, 2.4),
        sound=False,
    ),
    replace(
        _gaussian("propensities that ignore the context", _quadratic, policy=lambda x: 0.8 + 0 * x),
        dose=lambda rng, x: x + rng.standard_normal(len(x)),
        density=lambda x, t: stats.norm.pdf(t, 0.0, np.sqrt(2)),
        smooth=False,
        sound=False,
    ),
)
"""Every design of the benchmark."""
