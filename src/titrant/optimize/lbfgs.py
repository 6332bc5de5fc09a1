"""L-BFGS over many starts at once, inside a convex set.

All runs take their trial steps together, so each round is one call of the objective, and one
pass over the data, whatever the number of runs. A trial point is projected onto the set; it is
accepted when it lowers the objective enough (Armijo), otherwise its step is halved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.optimize.constraints import Constraint, Free
from titrant.optimize.solution import Solution, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.optimize.objective import Objective

    Index = NDArray[np.int64]

_DECREASE = 1e-4
"""Armijo: share of the predicted decrease that a step must reach."""
_SHORTEST = 1e-10
"""A step this short has found nothing lower."""
_CURVED = 1e-10
"""A step is remembered when the gradient turned along it by more than rounding."""
_ROUNDS = 10
"""Trial steps allowed for each accepted one, on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LBFGS:
    """Limited-memory BFGS with projection and backtracking, all starts together."""

    steps: int = 200
    """Accepted steps of a run."""
    memory: int = 10
    gradient_tolerance: float = 1e-6
    """A run has converged when no projected gradient entry is larger (objective in unit scale)."""
    value_tolerance: float = 1e-10
    """Or when a step lowers the objective by less than this share."""
    constraint: Constraint = field(default_factory=Free)
    progress: Callable[[int, float], None] | None = None
    """Called after each round with the round and the best value so far."""

    def __post_init__(self) -> None:
        _check.count(self.steps, "steps", "LBFGS")
        _check.count(self.memory, "memory", "LBFGS")

    def minimize(self, objective: Objective, starts: Array) -> Solution:
        """Return the best end over all starts (m, P)."""
        runs = Runs(objective, self.constraint, self.constraint.project(starts), self.memory)
        for step in range(_ROUNDS * self.steps):
            if not len(runs.running()):
                break
            runs.advance(self)
            if self.progress is not None:
                self.progress(step, float(np.nanmin(runs.f)))
        return runs.solution(starts)


class Runs:
    """The state of m runs: points x, values f, gradients g, and the memory of recent steps."""

    def __init__(self, objective: Objective, constraint: Constraint, x: Array, memory: int) -> None:
        m, p = x.shape
        self.objective, self.constraint, self.x = objective, constraint, x.copy()
        self.f, self.g = objective(self.x)
        self.s, self.y = np.zeros((m, memory, p)), np.zeros((m, memory, p))
        self.kept = np.zeros(m, dtype=np.int64)
        self.direction, self.step = np.zeros((m, p)), np.ones(m)
        self.ready = np.zeros(m, dtype=bool)
        self.accepted = np.zeros(m, dtype=np.int64)
        self.status = np.where(np.isfinite(self.f), None, Status.NOT_FINITE)
        self.evaluations = m

    def running(self) -> Index:
        """Return the runs that have not ended."""
        return np.flatnonzero(np.equal(self.status, None))

    def advance(self, settings: LBFGS) -> None:
        """Take one trial step of each running run, with one call of the objective."""
        a = self.running()
        self._aim(a[~self.ready[a]])
        trial = self.constraint.project(self.x[a] + self.step[a, None] * self.direction[a])
        f, g = self.objective(trial)
        self.evaluations += len(a)
        predicted = np.einsum("mp,mp->m", self.g[a], trial - self.x[a])
        good = np.isfinite(f) & (predicted < 0) & (f <= self.f[a] + _DECREASE * predicted)
        self._accept(a[good], trial[good], f[good], g[good], settings)
        self._shorten(a[~good])

    def _aim(self, a: Index) -> None:
        """Set the directions of runs a: quasi-Newton where it descends, else the gradient's."""
        if not len(a):
            return
        free = self.constraint.free(self.x[a], self.g[a])
        g = np.where(free, self.g[a], 0.0)
        d = -quasi_newton(g, self.s[a], self.y[a], self.kept[a])
        d = np.where(free, d, 0.0)
        uphill = np.einsum("mp,mp->m", d, g) >= 0
        self.kept[a[uphill]] = 0
        d[uphill] = -g[uphill]
        size = np.linalg.norm(g, axis=1)
        unscaled = self.kept[a] == 0
        self.step[a] = np.where(unscaled, 1.0 / np.maximum(size, 1.0), 1.0)
        self.direction[a] = d
        self.ready[a] = True

    def _accept(self, a: Index, x: Array, f: Array, g: Array, settings: LBFGS) -> None:
        """Move runs a to x, remember the step, and end those that have converged."""
        s, y = x - self.x[a], g - self.g[a]
        curved = np.einsum("mp,mp->m", s, y) > _CURVED * np.linalg.norm(s, axis=1) * (
            np.linalg.norm(y, axis=1)
        )
        self._remember(a[curved], s[curved], y[curved])
        small = np.abs(self.f[a] - f) <= settings.value_tolerance * np.maximum(1.0, np.abs(f))
        self.x[a], self.f[a], self.g[a] = x, f, g
        self.accepted[a] += 1
        self.ready[a] = False
        move = np.abs(self.constraint.project(x - g) - x).max(axis=1, initial=0.0)
        done = small | (move <= settings.gradient_tolerance)
        self.status[a[done]] = Status.CONVERGED
        over = self.accepted[a] >= settings.steps
        self.status[a[over & ~done]] = Status.OUT_OF_STEPS

    def _remember(self, a: Index, s: Array, y: Array) -> None:
        """Keep the newest steps, the oldest first."""
        full = a[self.kept[a] == self.s.shape[1]]
        self.s[full] = np.roll(self.s[full], -1, axis=1)
        self.y[full] = np.roll(self.y[full], -1, axis=1)
        self.kept[full] -= 1
        self.s[a, self.kept[a]], self.y[a, self.kept[a]] = s, y
        self.kept[a] += 1

    def _shorten(self, a: Index) -> None:
        """Halve the steps of runs a; without any hope forget the memory, then end the run."""
        self.step[a] *= 0.5
        lost = a[self.step[a] < _SHORTEST]
        self.status[lost[self.kept[lost] == 0]] = Status.STALLED
        self.kept[lost] = 0
        self.ready[lost] = False

    def solution(self, starts: Array) -> Solution:
        """Return the best of all runs."""
        best = int(np.nanargmin(np.where(np.isfinite(self.f), self.f, np.inf)))
        self.status[self.running()] = Status.OUT_OF_STEPS
        return Solution(
            params=self.x[best].copy(),
            value=float(self.f[best]),
            status=self.status[best],
            starts=starts,
            ends=self.x,
            values=self.f,
            evaluations=self.evaluations,
        )


def quasi_newton(g: Array, s: Array, y: Array, kept: Index) -> Array:
    """Return H·g (m, P), H the inverse Hessian that L-BFGS sees in each run's kept steps."""
    from titrant.optimize.compiled import two_loop  # noqa: PLC0415  (numba only when it is needed)

    product: Array = two_loop(np.ascontiguousarray(g), s, y, kept)
    return product
