"""Doses that are looked up: by the people who are most alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.policies.base import Policy
from titrant.policies.formats.saving import context, feature_names, matrix, read_only

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array


BLOCK = 1024
"""Rows whose distances to all people of the table are held in memory at a time."""


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Personal(Policy):
    """τ(x) = the dose with the least mean outcome among the ``nearest`` people of a table.

    ``contexts`` (m, p) are the people, ``curves`` (m, G) their estimated losses at ``grid`` (G,).
    Near is by distance in units of ``scale`` (p,). Between doses of the grid, the vertex of the
    parabola through the least loss and its neighbors.

    >>> curves = [[4, 1, 0, 1, 4], [0, 1, 4, 9, 16]]
    >>> rule = Personal([[0.0], [9.0]], curves, grid=[0, 1, 2, 3, 4], scale=[1.0], nearest=1)
    >>> rule(np.array([[1.0], [8.0]]))
    array([2., 0.])
    """

    contexts: Array
    curves: Array
    grid: Array = field(kw_only=True)
    scale: Array = field(kw_only=True)
    nearest: int = field(kw_only=True)
    features: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __init__(
        self,
        contexts: ArrayLike,
        curves: ArrayLike,
        *,
        grid: ArrayLike,
        scale: ArrayLike,
        nearest: int,
        features: Sequence[str] | None = None,
    ) -> None:
        people = matrix(contexts, "contexts", "Personal", ndim=2)
        losses = matrix(curves, "curves", "Personal", ndim=2)
        doses = matrix(grid, "grid", "Personal", ndim=1)
        unit = matrix(scale, "scale", "Personal", ndim=1)
        if losses.shape != (len(people), len(doses)):
            rule = f"{len(people)} rows, one for each person, of {len(doses)} doses"
            raise _check.invalid("curves", "Personal", rule, losses.shape)
        step = np.diff(doses)
        if len(step) <= 1 or step[0] <= 0.0 or not np.allclose(step, step.mean()):
            raise _check.invalid("grid", "Personal", "three evenly spaced doses or more", grid)
        if len(unit) != people.shape[1] or np.any(unit <= 0.0):
            raise _check.invalid("scale", "Personal", "a number > 0 for each context", scale)
        if _check.count(nearest, "nearest", "Personal") > len(people):
            rule = f"at most {len(people)}, the people there are"
            raise _check.invalid("nearest", "Personal", rule, nearest)
        object.__setattr__(self, "contexts", people)
        object.__setattr__(self, "curves", losses)
        object.__setattr__(self, "grid", read_only(doses))
        object.__setattr__(self, "scale", unit)
        object.__setattr__(self, "nearest", int(nearest))
        object.__setattr__(self, "features", feature_names(features, people.shape[1], "Personal"))

    def __call__(self, X: object) -> Array:
        """Return the doses for contexts X, an array (n, p) or a table: (n,)."""
        x = context(X, self.contexts.shape[1], "Personal", self.features)
        parts = [self._doses(x[i : i + BLOCK]) for i in range(0, len(x), BLOCK)]
        return np.concatenate([np.empty(0), *parts])

    def _doses(self, x: Array) -> Array:
        far = np.zeros((len(x), len(self.contexts)))
        for j, unit in enumerate(self.scale):
            far += ((x[:, j, None] - self.contexts[:, j]) / unit) ** 2
        near = np.argsort(far, axis=1, kind="stable")[:, : self.nearest]
        return least_dose(self.grid, self.curves[near].mean(axis=1))


def least_dose(grid: Array, curves: Array) -> Array:
    """Return the dose (n,) at which curves (n, G) on an even grid are least, by a parabola."""
    rows = np.arange(len(curves))
    at = np.argmin(curves, axis=1)
    inner = np.clip(at, 1, len(grid) - 2)
    left, middle, right = (curves[rows, inner + step] for step in (-1, 0, 1))
    bend = left - 2.0 * middle + right
    moved = np.where(bend > 0.0, 0.5 * (left - right) / np.where(bend > 0.0, bend, 1.0), 0.0)
    # At an end of the grid the least dose is the end.
    step = (grid[-1] - grid[0]) / (len(grid) - 1)
    return np.asarray(grid[at] + np.where(at == inner, moved, 0.0) * step)
