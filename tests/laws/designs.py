"""Rows to state laws on: small, random, with every field that an estimator may ask for."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.special import ndtr

from titrant.estimators import ESTIMATORS, Discretized, Estimator, Rows
from titrant.kernels import KERNELS, Boundary, Scale
from titrant.moments import Moments


@dataclass(frozen=True)
class NormalBins:
    """P(low < T ≤ high | x) of rows whose dose is normal around `mean` (n,)."""

    mean: np.ndarray
    sd: float = 1.0

    def __call__(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return ndtr((high - self.mean) / self.sd) - ndtr((low - self.mean) / self.sd)


@dataclass(frozen=True)
class Case:
    """A bandwidth, and whether doses have bounds: one kind of smoothing each."""

    name: str
    d: int
    h: object
    bounded: bool = False

    def rows(self, n: int = 40, seed: int = 0) -> Rows:
        return rows(n, self.d, bounded=self.bounded, seed=seed)

    @property
    def scale(self) -> Scale:
        return Scale.of(self.h, self.d)


CASES = (
    Case("a number", 1, 0.45),
    Case("a number, bounds", 1, 0.3, bounded=True),
    Case("a number a dose", 2, [0.7, 1.1]),
    Case("a number a dose, bounds", 2, [0.5, 0.8], bounded=True),
    Case("a matrix", 2, [[0.6, 0.25], [0.25, 0.9]]),
    Case("a number for three doses", 3, 1.3),
)


def rows(n: int, d: int, *, bounded: bool, seed: int) -> Rows:
    """Doses in the unit cube, policy doses nearby (some on a bound); bounds differ by row."""
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(size=n), rng.uniform(size=(n, d))
    tau = np.clip(t + rng.normal(scale=0.25, size=(n, d)), 0.0, 1.0)
    y = 2.0 + np.sin(3 * t).sum(axis=1) + x + rng.normal(size=n)
    lower, upper = -rng.uniform(0, 0.2, (n, d)), 1 + rng.uniform(0, 0.2, (n, d))
    lower[::4], upper[1::4] = 0.0, 1.0
    upper[2::4] = np.inf
    made = Rows(
        tau=tau,
        t=t,
        y=y,
        x=x[:, None],
        center=float(y.mean()),
        q=rng.uniform(0.3, 2.0, n),
        lower=lower if bounded else None,
        upper=upper if bounded else None,
        r_logged=model(t, x),
        probability=NormalBins(x) if d == 1 else None,
    )
    return at(made, tau)


def model(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """r̂(t, x) (n,), wrong on purpose."""
    return 1.5 + np.cos(2 * t).sum(axis=1) + x * t.sum(axis=1)


def at(given: Rows, tau: np.ndarray) -> Rows:
    """The same rows under other policy doses."""
    x = given.x[:, 0]
    slope = -2 * np.sin(2 * tau) + x[:, None]
    return replace(given, tau=tau, r_tau=model(tau, x), r_slope=slope)


def take(given: Rows, index: np.ndarray) -> Rows:
    """Some of the rows, in any order, any number of times."""
    chosen = {
        f.name: value[index]
        for f in fields(given)
        if isinstance(value := getattr(given, f.name), np.ndarray)
    }
    bins = given.probability
    return replace(given, **chosen, probability=bins and NormalBins(bins.mean[index], bins.sd))


def ready(estimator: Estimator, given: Rows) -> Estimator:
    """The estimator with its bins laid out, if it has bins."""
    return estimator.on(given.t[:, 0]) if isinstance(estimator, Discretized) else estimator


def variants(estimator: Estimator) -> list[Estimator]:
    """The estimator with every kernel, and with every boundary, if it has them.

    Each kernel with each boundary is the business of the oracle and of the gradients of weights.
    """
    if not {"kernel", "boundary"} <= {f.name for f in fields(estimator)}:
        return [estimator]
    kernels = [replace(estimator, kernel=k()) for k in KERNELS]
    boundaries = [replace(estimator, boundary=b) for b in Boundary if b != estimator.boundary]
    return kernels + boundaries


def estimate(estimator: Estimator, given: Rows, scale: Scale) -> np.ndarray:
    """The value and its standard error, as an array of two."""
    moments = Moments.of(ready(estimator, given).terms(given, scale))
    g = estimator.gradient(moments.mean)
    variance = g @ moments.covariance @ g / moments.n
    return np.array([estimator.value(moments.mean), np.sqrt(max(variance, 0.0))])


def name(estimator: Estimator) -> str:
    """The class and what is not its default."""
    default = type(estimator)()
    told = [
        f"{f.name}={getattr(estimator, f.name)}"
        for f in fields(estimator)
        if getattr(estimator, f.name) != getattr(default, f.name)
    ]
    return f"{type(estimator).__name__}({', '.join(told)})"


# One dose only: a bin in the plane is not what the baseline is about.
PAIRS = [
    (estimator, case)
    for estimator in ESTIMATORS
    for case in CASES
    if case.d == 1 or not isinstance(estimator, Discretized)
]
IDS = [f"{name(estimator)}-{case.name}" for estimator, case in PAIRS]
