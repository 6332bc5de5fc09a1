"""The well: a loss that rises on both sides of each context's best dose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.optimize import Bounds, minimize

from titrant import _check
from titrant.errors import DataError
from titrant.outcome.base import OutcomeModel, inputs, scaled_weights, training, worth
from titrant.scaling import Standard, grained

if TYPE_CHECKING:
    from titrant._types import Array

# Least squares for the well: the loss with its gradient, and a search from several starts.


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
class WellFit:
    """Least squares for the parameters θ = (a, c, g, ½log e) of a well."""

    z: Array
    """Contexts with a leading 1 (n, p + 1)."""
    s: Array
    """Doses (n,)."""
    y: Array
    """Outcomes (n,)."""
    ridge: float
    omega: Array | None = None
    """Row weights (n,), as `scaled_weights` has them."""

    @property
    def n(self) -> float:
        """How many equal rows these are worth."""
        return worth(self.omega, len(self.y))

    def by(self, values: Array) -> Array:
        """Return values (n,) or (n, k) times the weights of the rows, if they have any."""
        return values if self.omega is None else np.asarray((values.T * self.omega).T)

    @property
    def penalty(self) -> Array:
        """The ridge on each slope; none on the constants (p + 1,)."""
        return np.append(0.0, np.full(self.z.shape[1] - 1, self.ridge))

    def loss(self, theta: Array) -> tuple[float, Array]:
        """Return L = ½ mean(f − y)² + ½ Σ ridge·(a² + g²) and ∂L/∂θ.

        With u = s − g'z, w = √(u² + e), r = f − y: ∂f/∂a = z, ∂f/∂c = w, ∂f/∂g = −c(u/w)z,
        ∂f/∂(½log e) = c·e/w.
        """
        shape, n, penalty = Shape.of(theta), self.n, self.penalty
        u = self.s - self.z @ shape.g
        w = np.sqrt(u**2 + shape.e)
        plain = (self.z @ shape.a + shape.c * w - self.y) / n
        r = self.by(plain)
        pull = shape.c * r / w
        da, dg = self.z.T @ r + penalty * shape.a, penalty * shape.g - self.z.T @ (pull * u)
        value = 0.5 * n * (plain @ r) + 0.5 * (penalty @ (shape.a**2 + shape.g**2))
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

    def adapted(self, theta: Array) -> WellFit:
        """Return the problem with the ridge σ²p/n, σ² the residual variance at θ."""
        n, parameters = self.n, len(theta)
        spent = min(parameters, n // 2)
        noise = np.sum(self.by((Shape.of(theta)(self.z, self.s) - self.y) ** 2)) / (n - spent)
        return replace(self, ridge=float(noise) * (self.z.shape[1] - 1) / n)

    def _fit(self, columns: Array) -> Array:
        """Return the least-squares fit of the outcomes, steadied by a small ridge."""
        n, own = self.n, self.by(columns)
        normal = own.T @ columns / n + PILOT * np.eye(columns.shape[1])
        return np.asarray(np.linalg.solve(normal, own.T @ self.y / n), dtype=np.float64)


def search(problem: WellFit, lines: list[Array], *, adapt: bool) -> Shape:
    """Return the best well: every line gets a few iterations, the best of them goes on."""
    screened = [descend(problem, problem.around(line), SCREENING) for line in lines]
    best = min(screened, key=lambda theta: problem.loss(theta)[0])
    final = problem.adapted(best) if adapt else problem
    return Shape.of(descend(final, best, POLISHING))


def descend(problem: WellFit, start: Array, iterations: int) -> Array:
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


# A smooth well: the outcome grows with the distance of the dose from a line in the context.

NEGLIGIBLE = 1e-3
"""Doses are measured from their mean if the context leaves less than this share of their sd."""


class Well(OutcomeModel):
    """r̂(t, x) = a'z + c·√((t − g'z)² + e), z = (1, x): a valley along the doses g'z, or a ridge.

    Fitted by least squares in standard units, with a ridge that draws a to 0 and g to the line of
    the logged doses: a well's bottom far from all doses cannot be seen. The sum of squares has
    several valleys: the search starts along the logged doses, at the vertex of a parabola, at the
    mean dose, and along lines drawn at random; the best is kept.

    Parameters
    ----------
    ridge : the penalty; None is σ²p/n, that of slopes as large together as one sd of the outcome,
        with σ² the share of its variance that a first fit leaves.
    starts : of the search; those beyond three are random.
    seed : draws the random starts.
    """

    def __init__(self, *, ridge: float | None = None, starts: int = 4, seed: int = 0) -> None:
        self.ridge = ridge
        self.starts = starts
        self.seed = seed

    def fit(self, X: Array, t: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Learn from contexts X (n, p), doses t (n,) and outcomes y (n,)."""
        x, doses, outcome = training(X, t, y, "Well")
        if self.ridge is not None:
            _check.positive(self.ridge, "ridge", "Well")
        starts = _check.count(self.starts, "starts", "Well")
        seed = _check.count(self.seed, "seed", "Well", at_least=0)
        self.context_, self.outcome_ = Standard.of_contexts(x), Standard.of(outcome[:, None])
        z = _design(self.context_.grained(x))
        self.dose_ = DoseUnits.of(z, _only_dose(doses))
        target = self.outcome_.grained(outcome[:, None])[:, 0]
        omega = scaled_weights(sample_weight, len(x), "Well")
        s = grained(self.dose_(z, doses[:, 0]))
        problem = WellFit(z, s, target, self.ridge or PILOT, omega)
        random = np.random.default_rng(seed).normal(0.0, 0.5, (starts, z.shape[1]))
        lines = [self.dose_.logged, problem.vertex(), self.dose_.mean, *random][:starts]
        self.shape_ = search(problem, lines, adapt=self.ridge is None)
        return self

    def curve(self, X: Array, doses: Array) -> Array:
        """Return r̂(doses[j], xᵢ) (n, G) for a grid of scalar doses (G,)."""
        z = _design(self.context_(X))
        value = self.shape_(z, self.dose_(z, doses[:, None])).T
        return self.outcome_.back(value.reshape(-1, 1)).reshape(value.shape)

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        x, doses = inputs(X, t, "Well")
        z = _design(self.context_(x))
        value = self.shape_(z, self.dose_(z, _only_dose(doses)))
        return self.outcome_.back(value[:, None])[:, 0]


@dataclass(frozen=True, slots=True)
class DoseUnits:
    """s = (t − line'z)/sd: how far a dose is from what was usual for its context."""

    line: Array
    """Least squares of the logged doses on z (p + 1,)."""
    sd: float
    """What it leaves."""

    @classmethod
    def of(cls, z: Array, t: Array) -> DoseUnits:
        """Return the units of doses t (n,) logged in contexts z (n, p + 1)."""
        line = np.asarray(np.linalg.lstsq(z, t, rcond=None)[0], dtype=np.float64)
        left, plain = float((t - z @ line).std()), float(t.std())
        if left > NEGLIGIBLE * plain:
            return cls(line, left)
        return cls(np.append(t.mean(), np.zeros(z.shape[1] - 1)), plain or 1.0)

    def __call__(self, z: Array, t: Array) -> Array:
        """Return doses t (n,) in these units."""
        return (t - z @ self.line) / self.sd

    @property
    def logged(self) -> Array:
        """The line of the logged doses in these units (p + 1,)."""
        return np.zeros_like(self.line)

    @property
    def mean(self) -> Array:
        """The line of the mean dose in these units (p + 1,); the contexts z have mean 0."""
        return np.append(0.0, -self.line[1:] / self.sd)


def _design(z: Array) -> Array:
    return np.column_stack([np.ones(len(z)), z])


def _only_dose(doses: Array) -> Array:
    """Return the doses (n, 1) as (n,)."""
    if doses.shape[1] != 1:
        raise DataError(
            f"`Well` models one dose; this treatment has {doses.shape[1]}. Leave it out."
        )
    return doses[:, 0]
