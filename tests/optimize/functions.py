"""Textbook functions to minimize."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize, rosen, rosen_der

from titrant.optimize import Objective

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Quadratic(Objective):
    """½x'Ax − b'x."""

    a: np.ndarray
    b: np.ndarray

    @classmethod
    def random(cls, size: int, seed: int) -> Quadratic:
        rng = np.random.default_rng(seed)
        root = rng.normal(size=(size, size))
        return cls(root @ root.T / size + 0.05 * np.eye(size), 2 * rng.normal(size=size))

    def __call__(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ax = params @ self.a
        return 0.5 * (ax * params).sum(axis=1) - params @ self.b, ax - self.b

    @property
    def solution(self) -> np.ndarray:
        return np.linalg.solve(self.a, self.b)


@dataclass(frozen=True)
class Rosenbrock(Objective):
    def __call__(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.array([rosen(p) for p in params]), np.stack([rosen_der(p) for p in params])


@dataclass(frozen=True)
class Absolute(Objective):
    """Σ|x − c|: a kink at the minimum."""

    c: float = 0.3

    def __call__(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.abs(params - self.c).sum(axis=1), np.sign(params - self.c)


@dataclass(frozen=True)
class Nowhere(Objective):
    """|x|², finite only where the first parameter is positive."""

    def __call__(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        good = params[:, 0] > 0
        return np.where(good, (params**2).sum(axis=1), np.nan), 2 * params


@dataclass(frozen=True)
class Numerical(Objective):
    """Any function of the parameters, with central differences for its gradient."""

    function: Callable[[np.ndarray], float]
    step: float = 1e-5
    """Step relative to max(1, |β|)."""

    def __call__(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = np.array([self.function(p) for p in params])
        return values, np.stack([self._gradient(p) for p in params])

    def _gradient(self, params: np.ndarray) -> np.ndarray:
        moves = np.diag(self.step * np.maximum(1.0, np.abs(params)))
        return np.array(
            [(self.function(params + m) - self.function(params - m)) / (2 * m.max()) for m in moves]
        )


def by_scipy(objective: Objective, start: np.ndarray, method: str = "L-BFGS-B", **settings: object):
    """Minimize by scipy."""

    def value(x: np.ndarray) -> float:
        return float(objective(x[None])[0][0])

    def slope(x: np.ndarray) -> np.ndarray:
        return objective(x[None])[1][0]

    return minimize(value, start, jac=slope, method=method, **settings)
