"""Projected quasi-Newton steps over many starts: inside a set that is known by its projection.

From x a run goes along d = z − x, where z minimizes the model g'd + d'Bd/2 over the set and B is
BFGS's approximation of the Hessian (Schmidt, van den Berg, Friedlander & Murphy 2009). The model is
minimized by spectral projected gradients, which need projections and no value of the objective;
a convex set holds all of x + step·d for steps up to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.optimize.constraints import Constraint

X, G, D = range(3)
F, STEP, FIRST = range(3)
"""Value at x, step along d, and the first value."""
STATUS, ACCEPTED, TRIALS, STARTED, CURVED = range(5)
"""How it ended; steps; trials of this one; whether x was evaluated; whether B knows a curvature."""
RUNNING, CONVERGED, STALLED, OUT_OF_STEPS, NOT_FINITE = range(5)
"""As in `compiled.steps`."""

_DECREASE = 1e-4
"""Armijo: share of the predicted decrease that a step must reach."""
_CURVATURE = 1e-10
"""A step is remembered when s'y is more than this share of |s||y|."""
_TRIALS = 25
"""Of one line search."""
_SHORTER = (0.1, 0.5)
"""Least and most of a step that is kept when it is shortened."""
_INNER, _SETTLED = 200, 1e-10
"""Steps on the model, and the share of the first one at which they end."""
_ROUNDING = 1e-15
"""Share of a value under which a decrease is rounding."""
_SAME = 1e-8
"""Projecting a point of the set moves it by no more than this share of its size."""


@dataclass(frozen=True, slots=True)
class ProjectedRuns:
    """The state of m runs with P parameters inside a set, changed in place."""

    constraint: Constraint
    vectors: Array
    """x, gradient and direction (m, 3, P)."""
    hessians: Array
    """B (m, P, P)."""
    numbers: Array
    """F … FIRST (m, 3)."""
    counts: NDArray[np.int64]
    """STATUS … CURVED (m, 5)."""

    @classmethod
    def at(cls, starts: Array, constraint: Constraint) -> ProjectedRuns:
        """Return runs that are about to begin at the points of the set next to starts (m, P)."""
        m, p = starts.shape
        vectors, numbers = np.zeros((m, 3, p)), np.zeros((m, 3))
        vectors[:, X] = inside(constraint, starts)
        numbers[:, F] = np.inf
        check_members(constraint, vectors[:, X])
        counts = np.zeros((m, 5), dtype=np.int64)
        return cls(constraint, vectors, np.zeros((m, p, p)), numbers, counts)

    @property
    def state(self) -> tuple[Array, Array, Array, NDArray[np.int64]]:
        """What a run goes on from."""
        return self.vectors, self.hessians, self.numbers, self.counts

    @property
    def within(self) -> str:
        """The set, as it belongs to what a search is about."""
        return repr(self.constraint)

    def ends(self) -> tuple[Array, Array, NDArray[np.int64]]:
        """Return where the runs ended (m, P), the values there (m,) and how they ended (m,)."""
        check_members(self.constraint, self.vectors[:, X])
        return self.vectors[:, X].copy(), self.numbers[:, F].copy(), self.counts[:, STATUS]

    @property
    def running(self) -> NDArray[np.intp]:
        """The runs that have not ended."""
        return np.flatnonzero(self.counts[:, STATUS] == RUNNING)

    def propose(self) -> Array:
        """Return the next point (a, P) of each running run."""
        run = self.running
        step = self.numbers[run, STEP, None]
        return np.asarray(self.vectors[run, X] + step * self.vectors[run, D])

    def receive(self, f: Array, g: Array, tolerances: tuple[float, float, int]) -> float:
        """Take in values (a,) and gradients (a, P) at the trials; return the best value so far."""
        for j, point, value, slope in zip(self.running, self.propose(), f, g, strict=True):
            before = float(self.numbers[j, F])
            if self._accepts(j, point, value, slope):
                self._move(j, point, value, slope)
                self._end(j, before, tolerances)
        return float(self.numbers[:, F].min())

    def _accepts(self, j: int, point: Array, f: float, g: Array) -> bool:
        """Return whether run j goes to a point; if not, shorten its step, or begin anew, or end."""
        finite = bool(np.isfinite(f) and np.isfinite(g).all())
        numbers, counts = self.numbers[j], self.counts[j]
        if not counts[STARTED]:
            counts[STATUS] = RUNNING if finite else NOT_FINITE
            return finite
        predicted = float(self.vectors[j, G] @ (point - self.vectors[j, X]))
        if finite and f <= numbers[F] + _DECREASE * predicted and predicted < 0.0:
            return True
        numbers[STEP] *= _shorter(f - numbers[F] if finite else np.inf, predicted)
        counts[TRIALS] += 1
        if counts[TRIALS] >= _TRIALS and counts[CURVED]:
            self._forget(j)
            self._aim(j)
        elif counts[TRIALS] >= _TRIALS:
            counts[STATUS] = STALLED
        return False

    def _move(self, j: int, point: Array, f: float, g: Array) -> None:
        """Make a point the x of run j, remember the step, and aim from there."""
        v, numbers, counts = self.vectors[j], self.numbers[j], self.counts[j]
        s, y = point - v[X], g - v[G]
        started = bool(counts[STARTED])
        v[X], v[G], numbers[F] = point, g, f
        if not started:
            numbers[FIRST] = f
            counts[STARTED] = 1
            self._forget(j)
        else:
            counts[ACCEPTED] += 1
            self._learn(j, s, y)
        self._aim(j)

    def _forget(self, j: int) -> None:
        """Begin without curvature: a first step of one unit, or as long as x is."""
        x, g = self.vectors[j, X], self.vectors[j, G]
        length = max(1.0, float(np.linalg.norm(x)))
        self.hessians[j] = np.eye(len(x)) * max(float(np.linalg.norm(g)) / length, _ROUNDING)
        self.counts[j, CURVED] = 0

    def _learn(self, j: int, s: Array, y: Array) -> None:
        """Update B by BFGS with a step s that changed the gradient by y."""
        sy = float(s @ y)
        if sy <= _CURVATURE * float(np.linalg.norm(s) * np.linalg.norm(y)):
            return
        if not self.counts[j, CURVED]:
            self.hessians[j] = np.eye(len(s)) * float(y @ y) / sy
            self.counts[j, CURVED] = 1
        bs = self.hessians[j] @ s
        self.hessians[j] += np.outer(y, y) / sy - np.outer(bs, bs) / float(s @ bs)

    def _aim(self, j: int) -> None:
        """Set the direction of run j to where the model is least in the set."""
        v = self.vectors[j]
        v[D] = model_minimum(v[X], v[G], self.hessians[j], self._nearest) - v[X]
        self.numbers[j, STEP] = 1.0
        self.counts[j, TRIALS] = 0

    def _nearest(self, point: Array) -> Array:
        return np.asarray(inside(self.constraint, point[None])[0])

    def _end(self, j: int, before: float, tolerances: tuple[float, float, int]) -> None:
        """Set the status of a run that need not or cannot go on."""
        v, f = self.vectors[j], float(self.numbers[j, F])
        flat, small, steps = tolerances
        # Relative to the value, but to no more than it has changed: an outcome's zero says nothing.
        unit = max(min(abs(f), float(self.numbers[j, FIRST]) - f), 1.0)
        settled = np.isfinite(before) and before - f <= max(small * unit, _ROUNDING * abs(f))
        if settled or np.abs(self._nearest(v[X] - v[G]) - v[X]).max() <= flat:
            self.counts[j, STATUS] = CONVERGED
        elif self.counts[j, ACCEPTED] >= steps:
            self.counts[j, STATUS] = OUT_OF_STEPS


def model_minimum(x: Array, g: Array, b: Array, nearest: Callable[[Array], Array]) -> Array:
    """Return where g'(z − x) + (z − x)'B(z − x)/2 is least in a set, by projected gradients."""
    z, slope = x, g
    length = float(g @ g) / max(float(g @ b @ g), _ROUNDING)
    first = 0.0
    for _ in range(_INNER):
        d = nearest(z - length * slope) - z
        size = float(np.abs(d).max())
        first = max(first, size)
        if size <= _SETTLED * first:
            break
        bd = b @ d
        curvature = float(d @ bd)
        step = min(1.0, -float(slope @ d) / curvature) if curvature > 0.0 else 1.0
        if step <= 0.0:
            break
        z, slope = z + step * d, slope + step * bd
        length = float(d @ d) / curvature if curvature > 0.0 else length
    return z


def _shorter(rise: float, predicted: float) -> float:
    """Return by what to shorten a step: where a parabola through its ends is least, within reason.

    ``rise`` is how much the value rose, ``predicted`` < 0 how much its slope had promised.
    """
    least = -predicted / (2.0 * (rise - predicted)) if rise > predicted else _SHORTER[1]
    return float(np.clip(least, *_SHORTER))


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
