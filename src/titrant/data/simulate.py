"""Simulated logs whose truth is known: for the demo, the paper's studies and the tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from titrant import _check
from titrant.data.columns import KnowsFeatures, select
from titrant.data.logged import LoggedData

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from titrant._types import Array

    Seed = int | np.random.Generator

# Laws by which doses were logged in a simulated design: draw, density and cdf around a center.


LEAST_UNIFORM = 2.0**-54  # Generator.random may return 0, whose normal quantile is −inf


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalDose:
    """T ~ N(center, sd²) given that it lies in [lower, upper]."""

    sd: float
    lower: float = -np.inf
    upper: float = np.inf

    def __post_init__(self) -> None:
        """Refuse a standard deviation that is not positive."""
        _check.positive(self.sd, "sd", "NormalDose")

    def sample(self, rng: np.random.Generator, center: Array) -> Array:
        """Return center + sd·Φ⁻¹(a + U(b − a)), a and b the normal cdf at the bounds."""
        a, b = self._edges(center)
        z = ndtri(a + (b - a) * uniforms(rng, center.shape))
        return np.clip(center + self.sd * z, self.lower, self.upper)

    def density(self, center: Array, t: Array) -> Array:
        """Return φ((t − center)/sd) / (sd·(b − a)) within the bounds, 0 outside."""
        a, b = self._edges(center)
        bell = np.exp(-0.5 * ((t - center) / self.sd) ** 2) / (self.sd * np.sqrt(2 * np.pi))
        inside = (t >= self.lower) & (t <= self.upper)
        return _joint(np.where(inside, bell / (b - a), 0.0))

    def cdf(self, center: Array, t: Array) -> Array:
        """Return (Φ((t − center)/sd) − a) / (b − a), at most 1 and at least 0."""
        a, b = self._edges(center)
        return _joint(np.clip((ndtr((t - center) / self.sd) - a) / (b - a), 0.0, 1.0))

    def _edges(self, center: Array) -> tuple[Array, Array]:
        a, b = (ndtr((edge - center) / self.sd) for edge in (self.lower, self.upper))
        return a, b


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformDose:
    """T ~ U[lower, upper], whatever the center."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        """Refuse an empty range."""
        _check.positive(self.upper - self.lower, "upper - lower", "UniformDose")

    def sample(self, rng: np.random.Generator, center: Array) -> Array:
        """Return doses in the shape of `center`."""
        return rng.uniform(self.lower, self.upper, center.shape)

    def density(self, center: Array, t: Array) -> Array:
        """Return 1/(upper − lower) within the bounds, 0 outside."""
        inside = (t >= self.lower) & (t <= self.upper)
        return _joint(np.where(inside, 1.0 / (self.upper - self.lower), 0.0) + 0.0 * center)

    def cdf(self, center: Array, t: Array) -> Array:
        """Return (t − lower)/(upper − lower), at most 1 and at least 0."""
        share = (t - self.lower) / (self.upper - self.lower)
        return _joint(np.clip(share, 0.0, 1.0) + 0.0 * center)


DoseLaw: TypeAlias = NormalDose | UniformDose
"""The law of a logged dose around a center (n,) or (n, d); coordinates are independent."""


def uniforms(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return numbers drawn from the open interval (0, 1)."""
    return np.maximum(rng.random(shape), LEAST_UNIFORM)


def _joint(each: Array) -> Array:
    """Return the product over independent coordinates, (n,) from (n,) or (n, d)."""
    return each if each.ndim == 1 else np.prod(each, axis=1)


# Simulated logs whose truth is known: for the demo, the paper's studies and the tests.
#
# A design says how contexts arise, how doses were logged and what a dose does on average. The value
# of any policy follows, V = E[m(τ(X), X)], without noise and without an estimator.

_POINTS = 65_536
_DRAWS = 500_000  # the mean of so many outcomes without noise is good to .0014 of their sd


# What a design is


class Design(ABC):
    """A way in which logs arise; m is the mean outcome, T the logged dose, X the context.

    A design states its law of doses and the sd of its noise, how a context is made from `uniforms`
    numbers of [0, 1], the center of the logged dose, the mean outcome and the best dose.
    """

    __slots__ = ()

    law: DoseLaw
    noise: float

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of the p context columns."""

    @property
    def uniforms(self) -> int:
        """How many uniform numbers make one context."""
        return len(self.names)

    @abstractmethod
    def context_at(self, u: Array) -> Array:
        """Return the contexts (n, p) at the uniform numbers u (n, uniforms) in (0, 1)."""

    @abstractmethod
    def center(self, X: Array) -> Array:
        """Return the center of the logged dose, (n,) or (n, d)."""

    @abstractmethod
    def mean_outcome(self, X: Array, t: Array) -> Array:
        """Return m(t, x) = E[Y | T = t, X = x], (n,), for t (n,) or (n, d)."""

    @abstractmethod
    def best(self, X: Array) -> Array:
        """Return the dose with the smallest mean outcome, (n,) or (n, d)."""

    def context(self, rng: np.random.Generator, n: int) -> Array:
        """Return n contexts (n, p)."""
        return self.context_at(uniforms(rng, (n, self.uniforms)))

    def dose(self, rng: np.random.Generator, X: Array) -> Array:
        """Return one logged dose for each context, (n,) or (n, d)."""
        return self.law.sample(rng, self.center(X))

    def density(self, X: Array, t: Array) -> Array:
        """Return the propensity f(t | x), (n,)."""
        return self.law.density(self.center(X), t)

    def cdf(self, X: Array, t: Array) -> Array:
        """Return P(T ≤ t | x), (n,)."""
        return self.law.cdf(self.center(X), t)

    def draw(self, n: int, seed: Seed, *, propensity: bool = True) -> LoggedData:
        """Return a log of n rows; with `propensity=False` its propensity is left out."""
        n = _check.count(n, "n", "Design.draw", at_least=2)
        rng = np.random.default_rng(seed)
        x = self.context(rng, n)
        t = self.dose(rng, x)
        y = self.mean_outcome(x, t) + self.noise * rng.standard_normal(n)
        q = self.density(x, t) if propensity else None
        return LoggedData(x, t, y, q, bounds=(self.law.lower, self.law.upper), names=self.names)

    def value(self, policy: Callable[[Array], Array], n: int = _POINTS) -> float:
        """Return V = E[m(τ(X), X)] as the mean over n evenly spread contexts; no random numbers.

        A policy that knows its features finds them by the names of the design.
        """
        x = self.context_at(evenly_spread(n, self.uniforms))
        features = policy.features if isinstance(policy, KnowsFeatures) else None
        tau = policy(select(x, features, self.names, "policy"))
        return float(np.mean(self.mean_outcome(x, tau)))

    def logged_value(self, n: int = _DRAWS, seed: Seed = 0) -> float:
        """Return E[m(T, X)], what the logged doses are worth, as the mean over n drawn rows."""
        rng = np.random.default_rng(seed)
        x = self.context(rng, _check.count(n, "n", "Design.logged_value"))
        return float(np.mean(self.mean_outcome(x, self.dose(rng, x))))


# The designs


class OneContext(Design):
    """A design with one context, x ~ U[0, 1]."""

    __slots__ = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The one context."""
        return ("x",)

    def context_at(self, u: Array) -> Array:
        """Return x = u."""
        return u


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthetic(OneContext):
    """The paper's example: y = 2|x − t|^1.5 + 0.2ε, x ~ U[0, 1], T ~ N(x + 0.1, 0.5²).

    Its dose response has a kink of infinite curvature at the best dose t = x. The paper also logs
    uniformly on [−0.5, 1.3]: `Synthetic(law=UniformDose(lower=-0.5, upper=1.3))`.
    """

    law: DoseLaw = field(default_factory=lambda: NormalDose(sd=0.5))
    noise: float = 0.2

    def center(self, X: Array) -> Array:
        """Return x + 0.1."""
        return X[:, 0] + 0.1

    def mean_outcome(self, X: Array, t: Array) -> Array:
        """Return 2|x − t|^1.5."""
        return 2.0 * np.abs(X[:, 0] - t) ** 1.5

    def best(self, X: Array) -> Array:
        """Return x."""
        return X[:, 0]

    @staticmethod
    def value_of_slope(beta: float) -> float:
        """Return the value of τ(x) = βx: 2|1 − β|^1.5·E[X^1.5] = 0.8|1 − β|^1.5."""
        return float(0.8 * np.abs(1.0 - beta) ** 1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quadratic(Design):
    """Smooth: m = 1 + x0 + Σ_j (t_j − b_j(x))², b_j = x0 − x1/2 + j/2, in `dimension` doses.

    Two contexts, U[0, 1] each; T_j ~ N(b_j + 0.2, 0.6²). As ∂²m/∂t_j² = 2 everywhere, smoothing
    with bandwidth h adds exactly κ₂h² for each dose: the bias of IPW is known without expansion.
    """

    dimension: int = 1
    law: DoseLaw = field(default_factory=lambda: NormalDose(sd=0.6))
    noise: float = 0.5

    def __post_init__(self) -> None:
        """Refuse a dimension below 1."""
        _check.count(self.dimension, "dimension", "Quadratic")

    @property
    def names(self) -> tuple[str, ...]:
        """The two contexts."""
        return ("x0", "x1")

    def context_at(self, u: Array) -> Array:
        """Return x = u."""
        return u

    def center(self, X: Array) -> Array:
        """Return b(x) + 0.2."""
        return self.best(X) + 0.2

    def mean_outcome(self, X: Array, t: Array) -> Array:
        """Return 1 + x0 + Σ_j (t_j − b_j(x))²."""
        return 1.0 + X[:, 0] + _sum_of_squares(t - self.best(X))

    def best(self, X: Array) -> Array:
        """Return b(x), (n,) or (n, dimension)."""
        base = X[:, 0] - 0.5 * X[:, 1]
        return base if self.dimension == 1 else base[:, None] + 0.5 * np.arange(self.dimension)

    def value_of_offset(self, offset: float) -> float:
        """Return the value of τ(x) = b(x) + offset in every dose: 1.5 + dimension·offset²."""
        return 1.5 + self.dimension * offset**2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TenContexts(Design):
    """The paper's quadratic design: y = −5t + b_x'x + (b_xt'x)t + (t − b_q'x)² + ε, x ~ N(0, S).

    `variances` is the diagonal of S; T ~ N(logging'x, 4²); `effect` is −5. `TenContexts.sample`
    draws the coefficients. Outcome and doses are those of the authors' code, but b_x has three
    non-zero entries, as printed, where the code has six. With `printed=True` outcome and doses are
    as printed, too (see the page errata). With `overlap=True` the same draws keep the logging mean
    near zero (sd 0.7), so that every dose of interest was tried.
    """

    variances: Array
    b_x: Array
    b_xt: Array
    b_q: Array
    logging: Array
    effect: float = -5.0
    law: DoseLaw = field(default_factory=lambda: NormalDose(sd=4.0))
    noise: float = float(np.sqrt(5.0))

    @classmethod
    def sample(cls, seed: Seed, *, overlap: bool = False, printed: bool = False) -> TenContexts:
        """Return the design with coefficients drawn at random, three of ten non-zero in each b.

        The printed outcome has the product (−5t)(b_x'x): b_xt − 5b_x in place of b_xt, and no more.
        """
        rng = np.random.default_rng(seed)
        z = rng.standard_normal(10)
        variances = (z + abs(z.min()) + 0.5) / 2.0
        b_x, b_xt, b_q = (_three_of_ten(rng, sd) for sd in (1.0, 1.5, 1.0))
        logging = b_q + rng.normal(2.0, 1.0, 10)
        logging[[1, 2, 3]] += [2.0, 4.0, -3.0 if printed else -2.0]
        if overlap:
            logging *= 0.7 / np.sqrt(variances @ logging**2)
        drawn = cls(variances=variances, b_x=b_x, b_xt=b_xt, b_q=b_q, logging=logging)
        if not printed:
            return drawn
        product = drawn.b_xt + drawn.effect * drawn.b_x
        return replace(drawn, b_x=np.zeros(10), b_xt=product, effect=0.0)

    @property
    def names(self) -> tuple[str, ...]:
        """The ten contexts."""
        return tuple(f"x{j}" for j in range(10))

    def context_at(self, u: Array) -> Array:
        """Return S^½·Φ⁻¹(u)."""
        return np.sqrt(self.variances) * ndtri(u)

    def center(self, X: Array) -> Array:
        """Return logging'x."""
        return X @ self.logging

    def mean_outcome(self, X: Array, t: Array) -> Array:
        """Return effect·t + b_x'x + (b_xt'x)t + (t − b_q'x)², the effect being −5 or 0."""
        return self.effect * t + X @ self.b_x + (X @ self.b_xt) * t + (t - X @ self.b_q) ** 2

    def best(self, X: Array) -> Array:
        """Return τ*(x) = b*'x + c*, b* = b_q − b_xt/2 and c* = −effect/2."""
        return X @ self.best_coef + self.best_intercept

    @property
    def best_coef(self) -> Array:
        """The coefficients b* of the best policy."""
        return self.b_q - 0.5 * self.b_xt

    @property
    def best_intercept(self) -> float:
        """The intercept c* of the best policy: 2.5, or 0 as printed."""
        return -0.5 * self.effect

    def value_of_affine(self, coef: Array, intercept: float = 0.0) -> float:
        """Return the value of τ(x) = b'x + c in closed form.

        As m = (t − τ*)² − τ*² + (b_q'x)² + b_x'x with E[x] = 0,
        V = (b − b*)'S(b − b*) + (c − c*)² − b*'S b* − c*² + b_q'S b_q.
        """
        s, best, at_zero = self.variances, self.best_coef, self.best_intercept
        excess = s @ (np.asarray(coef) - best) ** 2 + (intercept - at_zero) ** 2
        return float(excess - s @ best**2 - at_zero**2 + s @ self.b_q**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dosing(Design):
    """A weekly dose by weight, age and a gene variant; the loss is days outside the target range.

    The best dose is 19 + 0.35·weight − 0.2·age − 9·carrier mg. Physicians went half the way:
    they logged doses around 25.5 + 0.2·weight − 0.1·age − 3·carrier with sd 9, within 5 … 75 mg.
    The loss is 3 days at the best dose and grows like |t − best| far from it.
    """

    law: DoseLaw = field(default_factory=lambda: NormalDose(sd=9.0, lower=5.0, upper=75.0))
    noise: float = 2.0

    @property
    def names(self) -> tuple[str, ...]:
        """Weight in kg, age in years, carrier of the variant 0/1."""
        return ("weight", "age", "carrier")

    def context_at(self, u: Array) -> Array:
        """Return weights around 80 kg (41 … 119), ages 20 … 90 and 30 % carriers."""
        weight = 80.0 + 15.0 * ndtri(0.005 + 0.99 * u[:, 0])
        return np.column_stack([weight, 20.0 + 70.0 * u[:, 1], u[:, 2] < 0.3])  # noqa: PLR2004

    def center(self, X: Array) -> Array:
        """Return 25.5 + 0.2·weight − 0.1·age − 3·carrier."""
        return np.asarray(25.5 + X @ [0.2, -0.1, -3.0])

    def mean_outcome(self, X: Array, t: Array) -> Array:
        """Return 3 + 12(√(1 + ((t − best)/12)²) − 1)."""
        return 3.0 + 12.0 * (np.hypot(1.0, (t - self.best(X)) / 12.0) - 1.0)

    def best(self, X: Array) -> Array:
        """Return 19 + 0.35·weight − 0.2·age − 9·carrier."""
        return np.asarray(19.0 + X @ [0.35, -0.2, -9.0])


def evenly_spread(n: int, k: int) -> Array:
    """Return n points u (n, k) that fill the unit cube evenly, symmetric around its center.

    u_i = ((i + ½)/n, {½ + (i − (n−1)/2)·g^−1}, …, {½ + (i − (n−1)/2)·g^−(k−1)}), {·} the fractional
    part and g > 1 the root of g^k = g + 1: midpoints in one dimension, a Kronecker sequence in the
    others.
    """
    i = np.arange(_check.count(n, "n", "evenly_spread")) - (n - 1) / 2
    steps = _root(k) ** -np.arange(1.0, k)
    rest = np.mod(0.5 + i[:, None] * steps, 1.0)
    points: Array = np.clip(np.column_stack([0.5 + i / n, rest]), LEAST_UNIFORM, 1.0 - 2.0**-53)
    return points


def _root(k: int) -> float:
    """Return the root g > 1 of g^k = g + 1 by fixed-point iteration (it contracts for k ≥ 2)."""
    g = 2.0
    for _ in range(64):
        g = (1.0 + g) ** (1.0 / k)
    return g


def _three_of_ten(rng: np.random.Generator, sd: float) -> Array:
    out = np.zeros(10)
    out[rng.choice(10, 3, replace=False)] = rng.normal(0.0, sd, 3)
    return out


def _sum_of_squares(a: Array) -> Array:
    return a**2 if a.ndim == 1 else np.sum(a**2, axis=1)


DESIGNS: Mapping[str, Design] = {
    "dosing": Dosing(),
    "synthetic": Synthetic(),
    "synthetic-uniform": Synthetic(law=UniformDose(lower=-0.5, upper=1.3)),
    "quadratic": Quadratic(),
    "quadratic-2d": Quadratic(dimension=2),
    "ten-contexts": TenContexts.sample(0),
    "ten-contexts-overlap": TenContexts.sample(0, overlap=True),
}
"""Every built-in design by name; the law tests run over this list."""
