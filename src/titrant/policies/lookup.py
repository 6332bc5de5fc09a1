"""Doses that are looked up: by a few questions, or by the people who are most alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.policies.base import ParametricPolicy, Policy
from titrant.policies.calling import contexts_for
from titrant.policies.formats.formulas import AtMost, Choice, Number
from titrant.policies.formats.saving import context, feature_names, matrix, parameters, read_only

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.policies.formats.formulas import Formula


BLOCK = 1024
"""Rows whose distances to all people of the table are held in memory at a time."""


# A dose for each of a few groups, told apart by questions that people can ask.


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Tree(ParametricPolicy):
    """τ(x) = the dose of the leaf that x falls into; ``doses`` (L,), or (L, d) for d doses.

    Split s asks whether x is at most ``cuts[s]`` in the context with place ``columns[s]``: if so,
    it goes to ``below[s]``, else to ``above[s]``. There, a number ≥ 0 is another split, −1 − l is
    leaf l. The first split is asked first. The parameters are the doses.

    >>> rule = Tree([0], [50.0], [-1], [-2], [3.0, 5.0], features=["age"])
    >>> rule({"age": [40, 60]})
    array([3., 5.])
    """

    columns: tuple[int, ...]
    cuts: Array
    below: tuple[int, ...]
    above: tuple[int, ...]
    doses: Array
    features: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __init__(
        self,
        columns: Sequence[int],
        cuts: ArrayLike,
        below: Sequence[int],
        above: Sequence[int],
        doses: ArrayLike,
        *,
        features: Sequence[str] | None = None,
    ) -> None:
        values = matrix(cuts, "cuts", "Tree", ndim=1)
        leaves = matrix(doses, "doses", "Tree", ndim=(1, 2))
        splits = len(values)
        low, high = (_whole(v, splits, n) for v, n in ((below, "below"), (above, "above")))
        named = feature_names(features, None, "Tree")
        places = _whole(columns, splits, "columns")
        most = max(places) + 1 if named is None else len(named)
        if min(places) < 0 or max(places) >= most:
            rule = f"places of contexts, from 0 to {most - 1}"
            raise _check.invalid("columns", "Tree", rule, columns)
        # Each split but the first, and each leaf, is reached from one split, one before it.
        reached = sorted((*low, *high))
        later = all(c < 0 or c > s for side in (low, high) for s, c in enumerate(side))
        if not later or reached != [*range(-len(leaves), 0), *range(1, splits)]:
            rule = (
                f"one way to each of {splits - 1} later splits and {len(leaves)} leaves, "
                f"beside `above` = {list(high)}"
            )
            raise _check.invalid("below", "Tree", rule, list(low))
        object.__setattr__(self, "columns", places)
        object.__setattr__(self, "cuts", values)
        object.__setattr__(self, "below", low)
        object.__setattr__(self, "above", high)
        object.__setattr__(self, "doses", leaves)
        object.__setattr__(self, "features", named)

    def __call__(self, X: object) -> Array:
        """Return the doses for contexts X, an array (n, p) or a table: (n,) or (n, d)."""
        return np.asarray(self.doses[self.leaves(X)])

    def leaves(self, X: object) -> NDArray[np.intp]:
        """Return the number of the leaf that each row of X falls into (n,)."""
        x = self._context(X)
        at = np.zeros(len(x), dtype=np.intp)
        low, high = np.array(self.below), np.array(self.above)
        for s, (j, cut) in enumerate(zip(self.columns, self.cuts, strict=True)):
            here = np.flatnonzero(at == s)
            at[here] = np.where(x[here, j] <= cut, low[s], high[s])
        return -1 - at

    @property
    def params(self) -> Array:
        """The parameters β = doses (L,) or (L·d,)."""
        return self.doses.ravel()

    def with_params(self, params: Array) -> Tree:
        """Return the tree with other doses."""
        new = parameters(params, self.doses.size, "Tree").reshape(self.doses.shape)
        return Tree(self.columns, self.cuts, self.below, self.above, new, features=self.features)

    def formulas(self, contexts: tuple[Formula, ...]) -> tuple[Formula, ...]:
        """Return the questions and doses of the tree for each dose."""
        doses = self.doses.reshape(len(self.doses), -1).T
        return tuple(self._formula(0, contexts, own) for own in doses)

    def _formula(self, at: int, contexts: tuple[Formula, ...], doses: Array) -> Formula:
        if at < 0:
            return Number(float(doses[-1 - at]))
        sides = (self._formula(s[at], contexts, doses) for s in (self.below, self.above))
        return Choice(AtMost(contexts[self.columns[at]], float(self.cuts[at])), *sides)

    def vjp(self, X: Array, g: Array) -> Array:
        """Return Σᵢ gᵢ over the rows of each leaf (P,)."""
        total = np.zeros_like(self.doses)
        np.add.at(total, self.leaves(X), g)
        return total.ravel()

    def paths(self) -> Iterator[tuple[tuple[tuple[int, bool], ...], int]]:
        """Yield each leaf's answers (split, whether at most the cut) and its number, in order."""
        yield from self._paths(0, ())

    def _paths(
        self, at: int, answers: tuple[tuple[int, bool], ...]
    ) -> Iterator[tuple[tuple[tuple[int, bool], ...], int]]:
        if at < 0:
            yield answers, -1 - at
            return
        yield from self._paths(self.below[at], (*answers, (at, True)))
        yield from self._paths(self.above[at], (*answers, (at, False)))

    def _context(self, X: object) -> Array:
        x = contexts_for(self.features, X, "policy `Tree`")
        needed = max(max(self.columns) + 1, x.shape[-1])
        return context(x, len(self.features or ()) or needed, "Tree", self.features)


def _whole(value: Sequence[int], size: int, name: str) -> tuple[int, ...]:
    rule = f"{size} whole numbers, one for each cut"
    if not isinstance(value, (list, tuple)) or len(value) != size:
        raise _check.invalid(name, "Tree", rule, value)
    if any(isinstance(v, bool) or not isinstance(v, (int, np.integer)) for v in value):
        raise _check.invalid(name, "Tree", rule, value)
    return tuple(map(int, value))


# A dose for each person: the least of an outcome curve, by the curves of like people.


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
