"""Parts that a user might write, each beside a built-in one that must give the same answer.

A pair is an own part, its twin, and how the log has to change for the twin to say the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

import titrant as tt
from titrant.estimators import SmoothedEstimator
from titrant.kernels import Biweight, Boundary, Epanechnikov, Kernel
from titrant.kernels.base import CompactKernel
from titrant.optimize import Ball, Box, Constraint
from titrant.policies import ParametricPolicy

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Pair:
    """An own part that must do what its twin does on the changed log."""

    own: object
    twin: object
    change: Callable[[tt.LoggedData], tt.LoggedData] = lambda log: log


# ── estimators ───────────────────────────────────────────────────────────────────────────────────


def tilt(X):
    return np.exp(X[:, 0] / 2)


class Tilted(tt.SelfNormalized):
    """Rows count more where the first context is large."""

    def weight(self, rows, scale):
        return tt.SelfNormalized.weight(self, rows, scale) * tilt(rows.x)

    def weight_slope(self, rows, scale):
        return tt.SelfNormalized.weight_slope(self, rows, scale) * tilt(rows.x)[:, None]


def tilted(log):
    """The log by whose propensities a built-in estimator weights rows as `Tilted` does."""
    q = log.propensity / tilt(log.context)
    return tt.LoggedData(log.context, log.treatment, log.outcome, q, names=log.names)


class TiltedDoublyRobust(tt.DoublyRobust):
    """The same with an outcome model."""

    def weight(self, rows, scale):
        return tt.DoublyRobust.weight(self, rows, scale) * tilt(rows.x)

    def weight_slope(self, rows, scale):
        return tt.DoublyRobust.weight_slope(self, rows, scale) * tilt(rows.x)[:, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sloped(SmoothedEstimator):
    """v̂ = slope·mean τ + Σw(y − slope·t)/Σw: the example of the page on adding parts."""

    slope: float
    kernel: Kernel = field(default_factory=Epanechnikov)
    clip: float | None = None
    boundary: Boundary = Boundary.LINEAR

    @property
    def normalized(self):
        return True

    def references(self, rows):
        return self.slope * rows.tau[:, 0], self.slope * rows.t[:, 0]

    def baseline_slope(self, rows):
        return np.full_like(rows.tau, self.slope)


class Along(RegressorMixin, BaseEstimator):
    """The outcome model slope·t, which has nothing to learn."""

    def __init__(self, slope=2.0):
        self.slope = slope

    def fit(self, X, y):  # noqa: ARG002
        self.fitted_ = True
        return self

    def predict(self, X):
        return self.slope * X[:, -1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient(tt.SelfNormalized):
    """Σw·y/Σw by two terms of its own instead of three."""

    size = 2

    def terms(self, rows, scale):
        w = self.weight(rows, scale)
        return np.stack([w * rows.y, w], axis=1)

    def dterms(self, rows, scale):
        slope = self.weight_slope(rows, scale)
        return np.stack([slope * rows.y[:, None], slope], axis=1)

    def weights(self, terms):
        return terms[:, 1]

    def values(self, means):
        return means[..., 0] / means[..., 1]

    def gradient(self, mean):
        return np.stack([1 / mean[..., 1], -mean[..., 0] / mean[..., 1] ** 2], axis=-1)

    def hessian(self, mean):
        second = np.zeros((*mean.shape, 2))
        second[..., 0, 1] = second[..., 1, 0] = -1 / mean[..., 1] ** 2
        second[..., 1, 1] = 2 * mean[..., 0] / mean[..., 1] ** 3
        return second


class Negative(tt.SelfNormalized):
    """−v̂, by a value of its own."""

    def values(self, means):
        return -tt.SelfNormalized.values(self, means)

    def gradient(self, mean):
        return -tt.SelfNormalized.gradient(self, mean)

    def hessian(self, mean):
        return -tt.SelfNormalized.hessian(self, mean)


class OneNegative(Negative):
    """−v̂, by `value` for one estimate at a time."""

    def value(self, mean):
        return -float(self.values(mean))

    def values(self, means):
        return tt.SelfNormalized.values(self, means)


def negative(log):
    return log.with_outcome(-log.outcome)


# ── kernels ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Tricube(CompactKernel):
    """K(u) = 70/81·(1 − |u|³)³: ten coefficients, more than a compiled loop takes."""

    coefficients = tuple(70 / 81 * np.array([1, 0, 0, -3, 0, 0, 3, 0, 0, -1.0]))
    second_moment = 35 / 243
    roughness = 175 / 247
    bound = 70 / 81
    lipschitz = 1.5  # a bound; no estimate reads it


@dataclass(frozen=True, slots=True)
class SpelledTricube(Kernel):
    """The same, as a kernel that is no polynomial to anyone."""

    second_moment = 35 / 243
    roughness = 175 / 247
    bound = 70 / 81
    lipschitz = 1.5
    support = 1.0

    def __call__(self, u):
        return 70 / 81 * np.clip(1 - np.abs(u) ** 3, 0.0, None) ** 3

    def derivative(self, u):
        a = np.minimum(np.abs(u), 1.0)
        return -70 / 9 * np.sign(u) * a**2 * (1 - a**3) ** 2

    def antiderivative(self, j, u):
        a = np.minimum(np.abs(u), 1.0)
        powers = [(0, 1.0), (3, -3.0), (6, 3.0), (9, -1.0)]
        area = sum(c * a ** (j + k + 1) / (j + k + 1) for k, c in powers)
        return 70 / 81 * np.sign(u) ** (j + 1) * area


@dataclass(frozen=True, slots=True)
class Disguised(Epanechnikov):
    """The biweight kernel in a class that inherits the coefficients of another."""

    second_moment = Biweight.second_moment
    roughness = Biweight.roughness
    bound = Biweight.bound
    lipschitz = Biweight.lipschitz

    def __call__(self, u):
        return Biweight()(u)

    def derivative(self, u):
        return Biweight().derivative(u)

    def antiderivative(self, j, u):
        return Biweight().antiderivative(j, u)


FLAT = {"clip": 0.0}  # no floor: `Tilted` would apply it before, its twin after the tilt
ESTIMATORS = {
    "a weight": Pair(Tilted(**FLAT), tt.SelfNormalized(**FLAT), tilted),
    "a weight beside a model": Pair(
        TiltedDoublyRobust(outcome=Along(), **FLAT),
        tt.DoublyRobust(outcome=Along(), **FLAT),
        tilted,
    ),
    "a baseline": Pair(Sloped(slope=2.0), tt.DoublyRobust(outcome=Along(2.0))),
    "terms": Pair(Quotient(), tt.SelfNormalized()),
    "a value": Pair(Negative(), tt.SelfNormalized(), negative),
    "a value, one at a time": Pair(OneNegative(), tt.SelfNormalized(), negative),
    "a kernel of high degree": Pair(
        tt.SelfNormalized(kernel=Tricube()), tt.SelfNormalized(kernel=SpelledTricube())
    ),
    "a kernel's value": Pair(
        tt.SelfNormalized(kernel=Disguised()), tt.SelfNormalized(kernel=Biweight())
    ),
}
"""What is the user's own, and the built-in estimator that says the same."""


# ── constraints ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class HalfSpace(Constraint):
    """normal'β ≤ level."""

    normal: tuple[float, ...]
    level: float

    def project(self, params):
        a = np.asarray(self.normal)
        over = np.maximum(params @ a - self.level, 0.0)
        return params - over[:, None] * a / (a @ a)


@dataclass(frozen=True)
class OwnBall(Constraint):
    """‖β‖ ≤ radius."""

    radius: float

    def project(self, params):
        size = np.linalg.norm(params, axis=1, keepdims=True)
        return params * np.minimum(1.0, self.radius / np.maximum(size, 1e-300))


@dataclass(frozen=True)
class Narrower(Box):
    """A box whose projection goes to half its width."""

    def project(self, params):
        return np.clip(params, np.asarray(self.lower) / 2, np.asarray(self.upper) / 2)


OPEN = (-np.inf, -np.inf, -np.inf)
CONSTRAINTS = {
    "a half-space": Pair(HalfSpace((0.0, 1.0, 0.0), 0.2), Box(OPEN, (np.inf, 0.2, np.inf))),
    "a ball": Pair(OwnBall(0.6), Ball(0.6)),
    "a box that projects otherwise": Pair(
        Narrower((-0.8,) * 3, (0.8,) * 3), Box((-0.4,) * 3, (0.4,) * 3)
    ),
}


# ── policies ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stump(ParametricPolicy):
    """τ(x) = low + (high − low)/(1 + exp((threshold − x)/width)): a step with rounded edges."""

    column: int
    threshold: float
    low: float
    high: float
    width: float = 0.3

    def _share(self, X):
        return 1.0 / (1.0 + np.exp((self.threshold - X[:, self.column]) / self.width))

    def __call__(self, X):
        return self.low + (self.high - self.low) * self._share(X)

    @property
    def params(self):
        return np.array([self.threshold, self.low, self.high])

    def with_params(self, params):
        threshold, low, high = params.tolist()
        return replace(self, threshold=threshold, low=low, high=high)

    def vjp(self, X, g):
        share = self._share(X)
        steep = -(self.high - self.low) * share * (1.0 - share) / self.width
        return np.array([g @ steep, g @ (1.0 - share), g @ share])


class Bent(Stump):
    """A policy with parameters whose gradient is of another shape."""

    def vjp(self, X, g):
        return Stump.vjp(self, X, g)[:2]
