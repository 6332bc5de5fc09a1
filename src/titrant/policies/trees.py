"""Doses for a few groups, told apart by questions that people can ask."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.policies.base import ParametricPolicy
from titrant.policies.calling import contexts_for
from titrant.policies.formats.formulas import AtMost, Choice, Number, Within, linear
from titrant.policies.formats.saving import context, feature_names, matrix, parameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.policies.formats.formulas import Formula

    Turns = tuple[tuple[int, bool], ...]


class Questions(ParametricPolicy):
    """What a row is asked until it is in a leaf; what its dose is there, a class says.

    Split s asks whether x is at most ``cuts[s]`` in the context with place ``columns[s]``: if so,
    it goes to ``below[s]``, else to ``above[s]``. There, a number ≥ 0 is another split, −1 − l is
    leaf l. The first split is asked first.
    """

    __slots__ = ()
    columns: tuple[int, ...]
    cuts: Array
    below: tuple[int, ...]
    above: tuple[int, ...]
    doses: Array

    @abstractmethod
    def leaf_formulas(self, leaf: int, contexts: tuple[Formula, ...]) -> tuple[Formula, ...]:
        """Return the formula of each dose in a leaf."""

    def leaves(self, X: object) -> NDArray[np.intp]:
        """Return the number of the leaf that each row of X falls into (n,)."""
        return self._leaves(self._context(X))

    def formulas(self, contexts: tuple[Formula, ...]) -> tuple[Formula, ...]:
        """Return the questions and what follows from them for each dose."""
        ends = [self.leaf_formulas(leaf, contexts) for leaf in range(len(self.doses))]
        return tuple(self._formula(0, contexts, own) for own in zip(*ends, strict=True))

    def paths(self) -> Iterator[tuple[Turns, int]]:
        """Yield each leaf's answers (split, whether at most the cut) and its number, in order."""
        yield from self._paths(0, ())

    def _formula(self, at: int, contexts: tuple[Formula, ...], ends: Sequence[Formula]) -> Formula:
        if at < 0:
            return ends[-1 - at]
        sides = (self._formula(s[at], contexts, ends) for s in (self.below, self.above))
        return Choice(AtMost(contexts[self.columns[at]], float(self.cuts[at])), *sides)

    def _paths(self, at: int, answers: Turns) -> Iterator[tuple[Turns, int]]:
        if at < 0:
            yield answers, -1 - at
            return
        yield from self._paths(self.below[at], (*answers, (at, True)))
        yield from self._paths(self.above[at], (*answers, (at, False)))

    def _leaves(self, x: Array) -> NDArray[np.intp]:
        at = np.zeros(len(x), dtype=np.intp)
        low, high = np.array(self.below), np.array(self.above)
        for s, (j, cut) in enumerate(zip(self.columns, self.cuts, strict=True)):
            here = np.flatnonzero(at == s)
            at[here] = np.where(x[here, j] <= cut, low[s], high[s])
        return -1 - at

    def _context(self, X: object) -> Array:
        owner = type(self).__name__
        x = contexts_for(self.features, X, f"policy `{owner}`")
        needed = max(max(self.columns) + 1, x.shape[-1])
        return context(x, len(self.features or ()) or needed, owner, self.features)

    def _set_questions(
        self,
        columns: Sequence[int],
        cuts: ArrayLike,
        below: Sequence[int],
        above: Sequence[int],
        *,
        leaves: int,
        features: Sequence[str] | None,
    ) -> None:
        """Check the questions of a tree with so many leaves, and keep them."""
        owner = type(self).__name__
        values = matrix(cuts, "cuts", owner, ndim=1)
        splits = len(values)
        low, high = (_whole(v, splits, n, owner) for v, n in ((below, "below"), (above, "above")))
        named = feature_names(features, None, owner)
        places = _whole(columns, splits, "columns", owner)
        most = max(places) + 1 if named is None else len(named)
        if min(places) < 0 or max(places) >= most:
            rule = f"places of contexts, from 0 to {most - 1}"
            raise _check.invalid("columns", owner, rule, columns)
        # Each split but the first, and each leaf, is reached from one split, one before it.
        reached = sorted((*low, *high))
        later = all(c < 0 or c > s for side in (low, high) for s, c in enumerate(side))
        if not later or reached != [*range(-leaves, 0), *range(1, splits)]:
            rule = (
                f"one way to each of {splits - 1} later splits and {leaves} leaves, "
                f"beside `above` = {list(high)}"
            )
            raise _check.invalid("below", owner, rule, list(low))
        object.__setattr__(self, "columns", places)
        object.__setattr__(self, "cuts", values)
        object.__setattr__(self, "below", low)
        object.__setattr__(self, "above", high)
        object.__setattr__(self, "features", named)


def _whole(value: Sequence[int], size: int, name: str, owner: str) -> tuple[int, ...]:
    rule = f"{size} whole numbers, one for each cut"
    if not isinstance(value, (list, tuple)) or len(value) != size:
        raise _check.invalid(name, owner, rule, value)
    if any(isinstance(v, bool) or not isinstance(v, (int, np.integer)) for v in value):
        raise _check.invalid(name, owner, rule, value)
    return tuple(map(int, value))


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Tree(Questions):
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
        leaves = matrix(doses, "doses", "Tree", ndim=(1, 2))
        self._set_questions(columns, cuts, below, above, leaves=len(leaves), features=features)
        object.__setattr__(self, "doses", leaves)

    def __call__(self, X: object) -> Array:
        """Return the doses for contexts X, an array (n, p) or a table: (n,) or (n, d)."""
        return np.asarray(self.doses[self.leaves(X)])

    @property
    def params(self) -> Array:
        """The parameters β = doses (L,) or (L·d,)."""
        return self.doses.ravel()

    def with_params(self, params: Array) -> Tree:
        """Return the tree with other doses."""
        new = parameters(params, self.doses.size, "Tree").reshape(self.doses.shape)
        return replace(self, doses=new)

    def leaf_formulas(self, leaf: int, contexts: tuple[Formula, ...]) -> tuple[Formula, ...]:  # noqa: ARG002
        """Return the doses of a leaf."""
        return tuple(Number(float(dose)) for dose in np.ravel(self.doses[leaf]))

    def vjp(self, X: Array, g: Array) -> Array:
        """Return Σᵢ gᵢ over the rows of each leaf (P,)."""
        total = np.zeros_like(self.doses)
        np.add.at(total, self.leaves(X), g)
        return total.ravel()


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class LinearTree(Questions):
    """τ(x) = dosesₗ + slopesₗ'x, kept within lowerₗ … upperₗ, in the leaf l that x falls into.

    The questions are those of `Tree`. ``doses`` (L,) are the intercepts and ``slopes`` (L, p) the
    slopes of each leaf's line in all contexts, most of them 0. ``lower`` and ``upper`` (L,) hold
    its doses where the line leaves what was given to people of the leaf. The parameters are the
    doses and the slopes; where a limit binds, the gradient of a row is 0, as in `Clipped`.

    >>> rule = LinearTree(
    ...     [1], [0.5], [-1], [-2], [10.0, 12.0], slopes=[[0.0, 0.0], [0.5, 0.0]],
    ...     lower=[5.0, 5.0], upper=[20.0, 40.0], features=["age", "site=B"],
    ... )
    >>> rule({"age": [30, 30, 80], "site=B": [0, 1, 1]})
    array([10., 27., 40.])
    """

    columns: tuple[int, ...]
    cuts: Array
    below: tuple[int, ...]
    above: tuple[int, ...]
    doses: Array
    slopes: Array = field(kw_only=True)
    lower: Array = field(kw_only=True)
    upper: Array = field(kw_only=True)
    features: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __init__(
        self,
        columns: Sequence[int],
        cuts: ArrayLike,
        below: Sequence[int],
        above: Sequence[int],
        doses: ArrayLike,
        *,
        slopes: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        features: Sequence[str] | None = None,
    ) -> None:
        leaves = matrix(doses, "doses", "LinearTree", ndim=1)
        self._set_questions(columns, cuts, below, above, leaves=len(leaves), features=features)
        each = matrix(slopes, "slopes", "LinearTree", ndim=2)
        known = max(self.columns) + 1 if self.features is None else len(self.features)
        wrong = each.shape[1] < known if self.features is None else each.shape[1] != known
        if len(each) != len(leaves) or wrong:
            rule = f"{len(leaves)} rows, one for each leaf, of a number for each context"
            raise _check.invalid("slopes", "LinearTree", rule, each.shape)
        low = matrix(lower, "lower", "LinearTree", ndim=1)
        high = matrix(upper, "upper", "LinearTree", ndim=1)
        for name, end in (("lower", low), ("upper", high)):
            if len(end) != len(leaves):
                rule = f"{len(leaves)} numbers, one for each leaf"
                raise _check.invalid(name, "LinearTree", rule, end)
        if np.any(low > high):
            raise _check.invalid("upper", "LinearTree", f"at least `lower` = {low.tolist()}", upper)
        object.__setattr__(self, "doses", leaves)
        object.__setattr__(self, "slopes", each)
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)

    def __call__(self, X: object) -> Array:
        """Return the doses for contexts X, an array (n, p) or a table: (n,)."""
        x = self._context(X)
        leaf = self._leaves(x)
        return np.clip(self.lines(x, leaf), self.lower[leaf], self.upper[leaf])

    def lines(self, x: Array, leaf: NDArray[np.intp]) -> Array:
        """Return doses + slopes'x (n,) of contexts x (n, p) in these leaves, not yet limited."""
        return np.asarray(self.doses[leaf] + np.sum(self.slopes[leaf] * x, axis=1))

    @property
    def params(self) -> Array:
        """The parameters β = (doses, slopes) (L + L·p,)."""
        return np.append(self.doses, self.slopes)

    def with_params(self, params: Array) -> LinearTree:
        """Return the tree with other lines, within the same limits."""
        size = len(self.doses)
        new = parameters(params, size + self.slopes.size, "LinearTree")
        return replace(self, doses=new[:size], slopes=new[size:].reshape(self.slopes.shape))

    def moved(self, by: float) -> LinearTree:
        """Return the tree whose doses are all larger by a number, its limits too."""
        return replace(self, doses=self.doses + by, lower=self.lower + by, upper=self.upper + by)

    def leaf_formulas(self, leaf: int, contexts: tuple[Formula, ...]) -> tuple[Formula, ...]:
        """Return the line of a leaf, held within its limits."""
        line = linear(float(self.doses[leaf]), self.slopes[leaf], contexts)
        return (Within(line, float(self.lower[leaf]), float(self.upper[leaf])),)

    def vjp(self, X: Array, g: Array) -> Array:
        """Return Σᵢ gᵢ and Σᵢ gᵢxᵢ over the rows of each leaf strictly within its limits (P,)."""
        x = self._context(X)
        leaf = self._leaves(x)
        line = self.lines(x, leaf)
        free = np.where((line > self.lower[leaf]) & (line < self.upper[leaf]), g, 0.0)
        total = np.zeros((len(self.doses), 1 + x.shape[1]))
        np.add.at(total, leaf, free[:, None] * np.column_stack([np.ones(len(x)), x]))
        return np.append(total[:, 0], total[:, 1:])

    def _context(self, X: object) -> Array:
        return context(X, self.slopes.shape[1], "LinearTree", self.features)
