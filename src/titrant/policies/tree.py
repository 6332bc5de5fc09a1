"""A dose for each of a few kinds of contexts, told apart by questions that people can ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.policies.base import ParametricPolicy
from titrant.policies.calling import contexts_for
from titrant.policies.formulas import AtMost, Choice, Number
from titrant.policies.saving import context, feature_names, matrix, parameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.policies.formulas import Formula


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
