"""Logs whose doses are shifted and multiplied, with the true values.

Contexts are two standard normals; what dose and outcome share is more than a line in them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

import titrant as tt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from titrant.evaluation.evaluation import AnyPolicy

    Array = np.ndarray

TRUTH_ROWS = 2_000_000
"""Rows over which true values are averaged: good to .001 sd of the outcome."""


@dataclass(frozen=True, slots=True)
class Design:
    """One way in which logs come about."""

    about: str
    dose: Callable[[Array, np.random.Generator], Array]
    outcome: Callable[[Array, Array], Array]
    """E[Y | T = t, x] (n,)."""
    noise: float
    constant: float
    moves: Mapping[str, tt.Shift | tt.Multiply]
    bounds: tuple[float | None, float | None] | None = None
    policies: Mapping[str, AnyPolicy] = field(init=False)

    def __post_init__(self) -> None:
        rules = {"status quo": tt.StatusQuo(), "constant": tt.Constant(self.constant)}
        object.__setattr__(self, "policies", rules | dict(self.moves))

    def draw(self, n: int, seed: Sequence[int]) -> tt.LoggedData:
        """Return a log of n rows."""
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, 2))
        t = self.dose(x, rng)
        y = self.outcome(t, x) + self.noise * rng.normal(size=n)
        return tt.LoggedData(x, t, y, bounds=self.bounds)

    def truths(self) -> dict[str, float]:
        """Return the true value of each policy, all on the same draws of contexts and doses."""
        rng = np.random.default_rng(7)
        x = rng.normal(size=(TRUTH_ROWS // 2, 2))
        x = np.concatenate([x, -x])
        t = self.dose(x, rng)
        return {name: self._value(policy, x, t) for name, policy in self.policies.items()}

    def _value(self, policy: AnyPolicy, x: Array, t: Array) -> float:
        if isinstance(policy, tt.Shift | tt.Multiply):
            to = policy.moved(x, t)
            low, high = self.bounds or (None, None)
            stays = to < (-np.inf if low is None else low)
            stays |= to > (np.inf if high is None else high)
            t = np.where(stays, t, to)
        elif isinstance(policy, tt.Constant):
            t = policy(x)
        return float(self.outcome(t, x).mean())


def _common(x: Array) -> Array:
    return np.asarray(x[:, 0] + 0.4 * (x[:, 0] ** 2 - 1.0) + 0.5 * x[:, 1])


def _logistic(z: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-z)))


def _tablet(x: Array, rng: np.random.Generator) -> Array:
    return np.asarray(40.0 + 6.0 * _common(x) + 8.0 * rng.normal(size=len(x)))


def _tablet_outcome(t: Array, x: Array) -> Array:
    return np.asarray(((t - 36.0 - 4.0 * x[:, 1]) / 10.0) ** 2 + 0.7 * _common(x))


def _price(x: Array, rng: np.random.Generator) -> Array:
    return np.asarray(10.0 * np.exp(0.15 * _common(x) + 0.25 * rng.normal(size=len(x))))


def _price_outcome(t: Array, x: Array) -> Array:
    # What a visitor spends: the price, if he buys.
    return np.asarray(t * _logistic(0.35 * (11.0 - t) + 0.8 * _common(x)))


def _hours(x: Array, rng: np.random.Generator) -> Array:
    level, spread = _logistic(0.6 * _common(x)), 5.0 + 3.0 * _logistic(x[:, 1])
    return np.asarray(10.0 * rng.beta(spread * level, spread * (1.0 - level)))


def _hours_outcome(t: Array, x: Array) -> Array:
    return np.asarray(3.0 * _logistic(0.8 * (t - 5.0)) + 0.02 * t * x[:, 1] + 0.7 * _common(x))


DESIGNS: dict[str, Design] = {
    "tablets": Design(
        "doses are normal around what contexts call for, the outcome is a well",
        _tablet,
        _tablet_outcome,
        noise=0.7,
        constant=38.0,
        moves={
            "5 less": tt.Shift(-5.0),
            "5 more": tt.Shift(5.0),
            "10 % less": tt.Multiply(0.9),
            "10 % more": tt.Multiply(1.1),
        },
    ),
    "prices": Design(
        "prices are skewed, the outcome is what a visitor spends; bounds (0, ∞)",
        _price,
        _price_outcome,
        noise=2.0,
        constant=10.0,
        moves={
            "1 less": tt.Shift(-1.0),
            "1 more": tt.Shift(1.0),
            "10 % less": tt.Multiply(0.9),
            "10 % more": tt.Multiply(1.1),
        },
        bounds=(0.0, None),
    ),
    "hours": Design(
        "hours lie between 0 and 10 with unequal spread, the outcome is S-shaped; rows that would "
        "leave the bounds keep their hours",
        _hours,
        _hours_outcome,
        noise=0.7,
        constant=5.0,
        moves={
            "half an hour less": tt.Shift(-0.5),
            "half an hour more": tt.Shift(0.5),
            "10 % less": tt.Multiply(0.9),
            "10 % more": tt.Multiply(1.1),
        },
        bounds=(0.0, 10.0),
    ),
}
