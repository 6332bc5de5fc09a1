"""Least squares for the well: the loss with its gradient, and a search from several starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import Bounds, minimize

if TYPE_CHECKING:
    from titrant._types import Array

PILOT = 1e-3
"""The ridge of the first fit."""
ROUNDNESS = (0.02, 5.0)
"""Limits of √e in units of the dose: from a corner to next to a parabola."""
SCREENING, POLISHING = 40, 500
"""Iterations given to every start, and to the best of them."""
STRAIGHT = 1e-3
"""A parabola that bends less than this, in standard units, has no vertex to speak of."""


@dataclass(frozen=True, slots=True)
class Shape:
    """f(z, s) = a'z + c·√((s − g'z)² + e) in standard units."""

    a: Array
    """(p + 1,)"""
    c: float
    g: Array
    """(p + 1,)"""
    e: float

    def __call__(self, z: Array, s: Array) -> Array:
        """Return f (n,) for contexts z (n, p + 1), whose first column is 1, and doses s (n,)."""
        value: Array = z @ self.a + self.c * np.sqrt((s - z @ self.g) ** 2 + self.e)
        return value

    @classmethod
    def of(cls, theta: Array) -> Shape:
        """Return the shape with parameters θ = (a, c, g, ½log e)."""
        k = len(theta) // 2 - 1
        return cls(theta[:k], float(theta[k]), theta[k + 1 : -1], float(np.exp(2.0 * theta[-1])))


@dataclass(frozen=True, slots=True)
class Problem:
    """Least squares for the parameters θ = (a, c, g, ½log e) of a well."""

    z: Array
    """Contexts with a leading 1 (n, p + 1)."""
    s: Array
    """Doses (n,)."""
    y: Array
    """Outcomes (n,)."""
    ridge: float

    @property
    def penalty(self) -> Array:
        """The ridge on each slope; none on the constants (p + 1,)."""
        return np.append(0.0, np.full(self.z.shape[1] - 1, self.ridge))

    def loss(self, theta: Array) -> tuple[float, Array]:
        """Return L = ½ mean(f − y)² + ½ Σ ridge·(a² + g²) and ∂L/∂θ.

        With u = s − g'z, w = √(u² + e), r = f − y: ∂f/∂a = z, ∂f/∂c = w, ∂f/∂g = −c(u/w)z,
        ∂f/∂(½log e) = c·e/w.
        """
        shape, n, penalty = Shape.of(theta), len(self.y), self.penalty
        u = self.s - self.z @ shape.g
        w = np.sqrt(u**2 + shape.e)
        r = (self.z @ shape.a + shape.c * w - self.y) / n
        pull = shape.c * r / w
        da, dg = self.z.T @ r + penalty * shape.a, penalty * shape.g - self.z.T @ (pull * u)
        value = 0.5 * n * (r @ r) + 0.5 * (penalty @ (shape.a**2 + shape.g**2))
        return float(value), np.concatenate([da, [r @ w], dg, [shape.e * pull.sum()]])

    def vertex(self) -> Array:
        """Return the line −b/(2q) where the fit a'z + (b'z)s + q·s² turns; 0 if it hardly bends."""
        k = self.z.shape[1]
        fit = self._fit(np.column_stack([self.z, self.z * self.s[:, None], self.s**2]))
        b, q = fit[k:-1], fit[-1]
        return -b / (2.0 * q) if abs(q) > STRAIGHT else np.zeros(k)

    def around(self, line: Array) -> Array:
        """Return θ with the well along a line g, half a unit round, and the best a and c for it."""
        w = np.sqrt((self.s - self.z @ line) ** 2 + 0.25)
        return np.concatenate([self._fit(np.column_stack([self.z, w])), line, [np.log(0.5)]])

    def adapted(self, theta: Array) -> Problem:
        """Return the problem with the ridge σ²p/n, σ² the residual variance at θ."""
        n, parameters = len(self.y), len(theta)
        spent = min(parameters, n // 2)
        noise = np.sum((Shape.of(theta)(self.z, self.s) - self.y) ** 2) / (n - spent)
        return replace(self, ridge=float(noise) * (self.z.shape[1] - 1) / n)

    def _fit(self, columns: Array) -> Array:
        """Return the least-squares fit of the outcomes, steadied by a small ridge."""
        n = len(self.y)
        normal = columns.T @ columns / n + PILOT * np.eye(columns.shape[1])
        return np.asarray(np.linalg.solve(normal, columns.T @ self.y / n), dtype=np.float64)


def search(problem: Problem, lines: list[Array], *, adapt: bool) -> Shape:
    """Return the best well: every line gets a few iterations, the best of them goes on."""
    screened = [descend(problem, problem.around(line), SCREENING) for line in lines]
    best = min(screened, key=lambda theta: problem.loss(theta)[0])
    final = problem.adapted(best) if adapt else problem
    return Shape.of(descend(final, best, POLISHING))


def descend(problem: Problem, start: Array, iterations: int) -> Array:
    """Return θ after at most so many iterations of L-BFGS."""
    free = np.full(len(start) - 1, np.inf)
    low, high = np.log(ROUNDNESS)
    found = minimize(
        problem.loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(np.append(-free, low), np.append(free, high)),
        options={"maxiter": iterations, "ftol": 1e-13, "gtol": 1e-8},
    )
    return np.asarray(found.x)
