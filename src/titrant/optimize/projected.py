"""Projected gradients over many starts: the search inside a set that is known by its projection.

The spectral projected gradient method (Birgin, Martínez & Raydan 2000). From x a run goes along
d = P(x − αg) − x, which stays in a convex set for steps up to 1, with Barzilai and Borwein's α;
a step must be lower than the highest of the last few values, so that α can be long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.optimize.constraints import Constraint

X, G, D, BEST = range(4)
F, SPECTRAL, STEP, F_BEST, FIRST = range(5)
"""Value at x, α, step along d, the least value so far, and the first one."""
STATUS, ACCEPTED, TRIALS, STARTED = range(4)
RUNNING, CONVERGED, STALLED, OUT_OF_STEPS, NOT_FINITE = range(5)
"""As in `compiled.steps`."""

_RECENT = 10
"""Values of which the highest must be undercut, and steps that must bring something together."""
_DECREASE = 1e-4
"""Armijo: share of the predicted decrease that a step must reach."""
_TRIALS = 30
"""Halvings of a step."""
_LONGEST = 1e10
"""Of α and 1/α."""
_SAME = 1e-8
"""Projecting a point of the set moves it by no more than this share of its size."""


@dataclass(frozen=True, slots=True)
class ProjectedRuns:
    """The state of m runs with P parameters inside a set, changed in place."""

    constraint: Constraint
    vectors: Array
    """x, gradient, direction and best point (m, 4, P)."""
    numbers: Array
    """F … FIRST (m, 5)."""
    recent: Array
    """The last values (m, 10), −∞ where there are none yet."""
    counts: NDArray[np.int64]
    """STATUS … STARTED (m, 4)."""

    @classmethod
    def at(cls, starts: Array, constraint: Constraint) -> ProjectedRuns:
        """Return runs that are about to begin at the points of the set next to starts (m, P)."""
        m, p = starts.shape
        vectors, numbers = np.zeros((m, 4, p)), np.zeros((m, 5))
        vectors[:, X] = vectors[:, BEST] = inside(constraint, starts)
        numbers[:, [F, F_BEST]] = np.inf
        recent, counts = np.full((m, _RECENT), -np.inf), np.zeros((m, 4), dtype=np.int64)
        check_members(constraint, vectors[:, X])
        return cls(constraint, vectors, numbers, recent, counts)

    @property
    def state(self) -> tuple[Array, Array, Array, NDArray[np.int64]]:
        """What a run goes on from."""
        return self.vectors, self.numbers, self.recent, self.counts

    @property
    def running(self) -> NDArray[np.intp]:
        """The runs that have not ended."""
        return np.flatnonzero(self.counts[:, STATUS] == RUNNING)

    def trials(self) -> Array:
        """Return the next point (a, P) of each running run."""
        run = self.running
        step = self.numbers[run, STEP, None]
        return np.asarray(self.vectors[run, X] + step * self.vectors[run, D])

    def receive(self, f: Array, g: Array, tolerances: tuple[float, float, int]) -> float:
        """Take in values (a,) and gradients (a, P) at the trials; return the best value so far."""
        trials = self.trials()
        for j, point, value, slope in zip(self.running, trials, f, g, strict=True):
            if self._accepts(j, point, value, slope):
                self._move(j, point, value, slope)
                self._end(j, tolerances)
        return float(self.numbers[:, F_BEST].min())

    def _accepts(self, j: int, point: Array, f: float, g: Array) -> bool:
        """Return whether run j goes to a point; if not, halve its step or end it."""
        finite = bool(np.isfinite(f) and np.isfinite(g).all())
        if not self.counts[j, STARTED]:
            self.counts[j, STATUS] = RUNNING if finite else NOT_FINITE
            return finite
        predicted = self.vectors[j, G] @ (point - self.vectors[j, X])
        if finite and f <= self.recent[j].max() + _DECREASE * predicted:
            return True
        self.numbers[j, STEP] /= 2.0
        self.counts[j, TRIALS] += 1
        if self.counts[j, TRIALS] >= _TRIALS:
            self.counts[j, STATUS] = STALLED
        return False

    def _move(self, j: int, point: Array, f: float, g: Array) -> None:
        """Make a point the x of run j and aim from there."""
        v, numbers, counts = self.vectors[j], self.numbers[j], self.counts[j]
        s, y = point - v[X], g - v[G]
        numbers[SPECTRAL] = _spectral(s, y) if counts[STARTED] else 1.0 / max(np.abs(g).max(), 1.0)
        if not counts[STARTED]:
            numbers[FIRST] = f
        v[X], v[G], numbers[F] = point, g, f
        if f < numbers[F_BEST]:
            v[BEST], numbers[F_BEST] = point, f
        self.recent[j] = np.append(self.recent[j, 1:], f)
        v[D] = inside(self.constraint, (v[X] - numbers[SPECTRAL] * g)[None])[0] - v[X]
        numbers[STEP] = 1.0
        counts[ACCEPTED] += counts[STARTED]
        counts[[TRIALS, STARTED]] = 0, 1

    def _end(self, j: int, tolerances: tuple[float, float, int]) -> None:
        """Set the status of a run that need not or cannot go on."""
        v, numbers, recent = self.vectors[j], self.numbers[j], self.recent[j]
        f, (flat, small, steps) = numbers[F], tolerances
        move = inside(self.constraint, (v[X] - v[G])[None])[0] - v[X]
        # Relative to the value, but to no more than it has changed: an outcome's zero says nothing.
        unit = max(min(abs(f), numbers[FIRST] - numbers[F_BEST]), 1.0)
        if np.abs(move).max() <= flat or recent.max() - recent.min() <= small * unit:
            self.counts[j, STATUS] = CONVERGED
        elif self.counts[j, ACCEPTED] >= steps:
            self.counts[j, STATUS] = OUT_OF_STEPS


def _spectral(s: Array, y: Array) -> float:
    """Return s's/s'y, the inverse curvature along the last step; the longest if it curves down."""
    curvature = float(s @ y)
    if curvature <= 0.0:
        return _LONGEST
    return float(np.clip(s @ s / curvature, 1.0 / _LONGEST, _LONGEST))


def inside(constraint: Constraint, points: Array) -> Array:
    """Return the points (m, P) of the set next to others (m, P)."""
    found = np.asarray(constraint.project(points), dtype=np.float64)
    if found.shape != points.shape or not np.isfinite(found).all():
        rule = f"with a `project` that returns finite points of shape {points.shape}"
        raise _check.invalid("constraint", "LBFGS", rule, f"shape {found.shape}")
    return found


def check_members(constraint: Constraint, points: Array) -> None:
    """Refuse a set whose projection moves points (m, P) that should be in it."""
    moved = np.abs(inside(constraint, points) - points).max()
    if moved > _SAME * max(1.0, np.abs(points).max()):
        rule = "a closed convex set whose `project` leaves its own points where they are"
        raise _check.invalid("constraint", "LBFGS", rule, f"{constraint!r}, moved by {moved:.3g}")
