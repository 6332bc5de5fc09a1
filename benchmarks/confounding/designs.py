"""Logs in which a function of the context moves both dose and outcome.

    t = a·g(x) + sd·ε,   y = m(t) + c·g(x) + noise,

so that leaving g unadjusted is wrong, and adjusting for x linearly is not enough where g bends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray

MANY = 400_000
"""Contexts over which E g(x) is averaged: ±.002 of its sd."""


@dataclass(frozen=True)
class Design:
    """One kind of confounding."""

    kind: str
    """nonlinear, radial (no learner tried sees it), or sound (none, or linear)."""
    contexts: Callable[[np.random.Generator, int], Array]
    shared: Callable[[Array], Array]
    """g, of mean 0 or not, sd about 1."""
    on_dose: float = 0.8
    on_outcome: float = 1.2
    dose_sd: float = 1.0
    noise: float = 0.7
    response: Callable[[Array], Array] = lambda t: 0.5 * (t - 0.5) ** 2
    """m."""

    def draw(self, n: int, seed: list[int]) -> tuple[Array, Array, Array]:
        """Return contexts (n, p), doses (n,) and outcomes (n,)."""
        rng = np.random.default_rng(seed)
        x = self.contexts(rng, n)
        g = self.shared(x)
        t = self.on_dose * g + self.dose_sd * rng.normal(size=n)
        y = self.response(t) + self.on_outcome * g + self.noise * rng.normal(size=n)
        return x, t, y

    def value(self, dose: float) -> float:
        """Return the true value of one dose for all."""
        return float(self.response(np.array(dose))) + self.on_outcome * self._mean

    @cached_property
    def _mean(self) -> float:
        return float(self.shared(self.contexts(np.random.default_rng(1), MANY)).mean())


def normal(p: int) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, n: rng.normal(size=(n, p))


def beside_two(draw: Callable[[np.random.Generator, int], Array]) -> Callable[..., Array]:
    """Return contexts of which the first is drawn so, and two others are noise."""
    return lambda rng, n: np.column_stack([draw(rng, n), rng.normal(size=(n, 2))])


SITES = np.array([0.0, 1.5, -1.0, 0.5, 2.0, -1.5, 0.0, 1.0])
HOURS = np.where(np.isin(np.arange(24), [7, 8, 9, 16, 17, 18]), 1.4, -0.5)

TUNING: dict[str, Design] = {
    "threshold": Design("nonlinear", normal(3), lambda x: 1.6 * (x[:, 0] > 0.5)),
    "U shape": Design("nonlinear", normal(3), lambda x: (x[:, 0] ** 2 - 1) / 1.4),
    "product of two": Design("nonlinear", normal(3), lambda x: x[:, 0] * x[:, 1]),
    "exponential": Design("nonlinear", normal(3), lambda x: np.exp(0.8 * x[:, 0]) / 1.4 - 1),
    "periodic": Design(
        "nonlinear",
        beside_two(lambda rng, n: rng.uniform(-3, 3, n)),
        lambda x: 1.3 * np.sin(3 * x[:, 0]),
    ),
    "site number": Design(
        "nonlinear",
        beside_two(lambda rng, n: rng.integers(0, 8, n)),
        lambda x: SITES[x[:, 0].astype(int)],
    ),
    "logarithm of a skewed context": Design(
        "nonlinear", beside_two(lambda rng, n: rng.lognormal(0, 1, n)), lambda x: np.log(x[:, 0])
    ),
    "linear": Design("sound", normal(3), lambda x: x[:, 0]),
    "linear, ten contexts": Design(
        "sound", normal(10), lambda x: x @ np.r_[0.6, 0.6, -0.5, np.zeros(7)]
    ),
    "randomized": Design("sound", normal(3), lambda x: x[:, 0] + x[:, 1] ** 2, on_dose=0.0),
}
"""Looked at while the default was put together."""

HELD_OUT: dict[str, Design] = {
    "rush hours": Design(
        "nonlinear",
        beside_two(lambda rng, n: rng.integers(0, 24, n)),
        lambda x: HOURS[x[:, 0].astype(int)],
    ),
    "saturating": Design("nonlinear", normal(4), lambda x: 1.3 * np.tanh(2 * x[:, 1] + 0.5)),
    "hinge in age": Design(
        "nonlinear",
        beside_two(lambda rng, n: rng.uniform(20, 90, n)),
        lambda x: np.maximum(x[:, 0] - 65, 0) / 6,
    ),
    "threshold in two": Design(
        "nonlinear", normal(5), lambda x: 1.8 * ((x[:, 0] > 0) & (x[:, 1] > 0))
    ),
    "inverse": Design(
        "nonlinear",
        beside_two(lambda rng, n: rng.uniform(0.3, 3, n)),
        lambda x: 1.2 / x[:, 0] - 1,
    ),
    "switch by a yes/no": Design(
        "nonlinear",
        lambda rng, n: np.column_stack([rng.random(n) < 0.4, rng.normal(size=(n, 3))]) * 1.0,
        lambda x: np.where(x[:, 0] > 0, x[:, 1], -x[:, 1]),
    ),
    "radial bump in eight": Design(
        "radial", normal(8), lambda x: 3 * np.exp(-np.sum(x**2, axis=1) / 8)
    ),
    "linear, skewed contexts": Design(
        "sound", lambda rng, n: rng.exponential(size=(n, 3)), lambda x: x[:, 0] - 1
    ),
    "linear, six contexts": Design(
        "sound", normal(6), lambda x: x @ np.r_[0.5, -0.5, 0.4, 0.4, 0, 0]
    ),
    "no confounding, bent outcome": Design(
        "sound", normal(3), lambda x: np.cos(2 * x[:, 0]) + x[:, 1], on_dose=0.0
    ),
}
"""Written down when the default was frozen, before any of them was run."""
DESIGNS = TUNING | HELD_OUT
