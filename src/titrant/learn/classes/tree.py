"""Trees of few leaves with one dose each, found on the doubly robust curves of the rows.

The cost of a leaf is min_g Σ D(g) over its rows. Every context is cut at up to 15 quantiles. The
first two levels are searched exactly: the sums of D over the cells of each pair of contexts give
all trees of depth two. Then leaves are split best first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.learn.classes.base import CurveClass, used_columns, varying
from titrant.policies import Constant, Tree
from titrant.policies.lookup import least_dose

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.classes.base import DoseCurves
    from titrant.policies import Policy

CUTS = 15
"""Cuts of a context."""
FEWEST, LEAST = 10, 0.04
"""Rows of a leaf: at least so many, and this share of all."""
SIZES = (2, 3, 4, 6, 8)
"""Leaves of the trees that compete."""
DEEPEST = 3
AROUND = 3
"""Points of a surface for each of its coefficients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeClass(CurveClass):
    """Trees of at most ``depth`` questions in a row and ``leaves`` leaves, one dose in each.

    ``features`` are the contexts of the log that the policy uses, in its order; all unless given.
    """

    depth: int = DEEPEST
    leaves: int = SIZES[-1]
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if _check.count(self.depth, "depth", "TreeClass") > DEEPEST:
            raise _check.invalid("depth", "TreeClass", f"at most {DEEPEST}", self.depth)
        _check.count(self.leaves, "leaves", "TreeClass", at_least=2)

    @property
    def candidates(self) -> dict[str, int | None]:
        """Trees by their leaves."""
        return {f"{size} leaves": size for size in self._sizes()}

    def found(self, log: LoggedData, curves: DoseCurves) -> tuple[Policy, ...]:
        """Return a tree of each size, or the largest there is; a constant if nothing can be cut."""
        used = varying(self.features, log, "A tree")
        problem = TreeProblem.of(used_columns(log.context, used), curves.robust)
        names = tuple(log.names[j] for j in used)
        growth = problem.grown(self.depth, self.leaves)
        trees = {2: problem.grown(1, 2)}
        return tuple(
            problem.tree(trees.get(size, growth)[: size - 1], curves.grid, names)
            for size in self._sizes()
        )

    def _sizes(self) -> list[int]:
        most = min(self.leaves, 2**self.depth)
        return [*(size for size in SIZES if size < most), most]


@dataclass(frozen=True, slots=True)
class TreeSplit:
    """A split: which rows it asks (n,), its context and cut, and what it saves."""

    rows: NDArray[np.bool_]
    column: int
    cut: int
    saved: float = field(default=0.0, compare=False)
    depth: int = 0


@dataclass(frozen=True, slots=True)
class TreeProblem:
    """Rows cut into cells, and what they cost at each dose."""

    code: NDArray[np.intp]
    """In which cell of each context a row lies (n, p): at most cut c if its cell is at most c."""
    cuts: tuple[Array, ...]
    """The cuts of each context, on the user's scale."""
    cost: Array
    """D and a column of ones (n, G + 1): sums of it are costs and rows."""
    least: int
    """Rows of a leaf."""

    @classmethod
    def of(cls, x: Array, robust: Array) -> TreeProblem:
        """Return the problem for contexts x (n, p) and curves D (n, G)."""
        cuts = tuple(cuts_of(column) for column in x.T)
        code = [np.searchsorted(c, v, side="left") for c, v in zip(cuts, x.T, strict=True)]
        # Costs are counted from the mean of all doses: sums of a few rows keep their digits.
        cost = np.column_stack([robust - robust.mean(), np.ones(len(x))])
        return cls(np.stack(code, axis=1), cuts, cost, max(FEWEST, int(np.ceil(LEAST * len(x)))))

    def grown(self, depth: int, leaves: int) -> list[TreeSplit]:
        """Return the splits in the order in which a tree grows, each after the one it refines."""
        every = np.ones(len(self.code), dtype=np.bool_)
        if depth == 1:
            best = self.best_cut(every, 0)
            return [] if best is None else [best]
        splits = self.best_pair()
        if not splits:
            return []
        open_ = self._open(splits, depth)
        while open_ and len(splits) < leaves - 1:
            best = max(open_, key=lambda cut: cut.saved)
            if best.saved <= 0.0:
                break
            splits.append(best)
            open_ = self._open(splits, depth)
        return splits

    def _open(self, splits: list[TreeSplit], depth: int) -> list[TreeSplit]:
        """Return the best cut of each leaf that may still be split."""
        ends = [(rows, level) for rows, level in self.leaves(splits) if level < depth]
        found = (self.best_cut(rows, level) for rows, level in ends)
        return [cut for cut in found if cut is not None]

    def leaves(self, splits: list[TreeSplit]) -> list[tuple[NDArray[np.bool_], int]]:
        """Return the rows (n,) of each leaf and how deep it lies."""
        ends = [(np.ones(len(self.code), dtype=np.bool_), 0)]
        for cut in splits:
            at = next(i for i, (rows, _) in enumerate(ends) if np.array_equal(rows, cut.rows))
            rows, level = ends[at]
            low = self.code[:, cut.column] <= cut.cut
            ends[at : at + 1] = [(rows & low, level + 1), (rows & ~low, level + 1)]
        return ends

    def best_cut(self, rows: NDArray[np.bool_], depth: int) -> TreeSplit | None:
        """Return the cut of these rows that saves most; None if none leaves enough on each side."""
        part = replace(self, code=self.code[rows], cost=self.cost[rows])
        whole = float(part.cost[:, :-1].sum(axis=0).min())
        best: TreeSplit | None = None
        for j in range(len(self.cuts)):
            sums = part.sums(j)
            if len(sums) < 2:  # noqa: PLR2004
                continue
            total = self.least_cost(sums[:-1]) + self.least_cost(sums[-1] - sums[:-1])
            c = int(np.argmin(total))
            if np.isfinite(total[c]) and (best is None or whole - total[c] > best.saved):
                best = TreeSplit(rows, j, c, whole - float(total[c]), depth)
        return best

    def best_pair(self) -> list[TreeSplit]:
        """Return the splits of the best tree of depth two: the first, then those of its sides."""
        low, high = self._sides()
        best, place = np.inf, (-1, -1)
        for j, (a, b) in enumerate(zip(low, high, strict=True)):
            total = a + b
            if len(total) and total.min() < best:
                best, place = float(total.min()), (j, int(np.argmin(total)))
        if not np.isfinite(best):
            return []
        j, c = place
        every = np.ones(len(self.code), dtype=np.bool_)
        below = self.code[:, j] <= c
        sides = (self.best_cut(rows, 1) for rows in (below, ~below))
        return [
            TreeSplit(every, j, c),
            *sorted((cut for cut in sides if cut is not None), key=lambda cut: -cut.saved),
        ]

    def _sides(self) -> tuple[list[Array], list[Array]]:
        """Return the least cost of each side of each cut, split once more wherever that is best."""
        low: list[Array] = []
        high: list[Array] = []
        for j in range(len(self.cuts)):
            sums = self.sums(j)
            below, above = self._same_context(sums)
            low.append(below)
            high.append(above)
        for j, k in combinations(range(len(self.cuts)), 2):
            if not (len(self.cuts[j]) and len(self.cuts[k])):
                continue
            sums = self.pair_sums(j, k)
            inner, right, top = sums[:-1, :-1], sums[:-1, -1:], sums[-1:, :-1]
            a, b = self.least_cost(inner), self.least_cost(right - inner)
            c = self.least_cost(top - inner)
            d = self.least_cost(sums[-1, -1] - right - top + inner)
            low[j], high[j] = (
                np.minimum(low[j], (a + b).min(1)),
                np.minimum(high[j], (c + d).min(1)),
            )
            low[k], high[k] = (
                np.minimum(low[k], (a + c).min(0)),
                np.minimum(high[k], (b + d).min(0)),
            )
        return low, high

    def _same_context(self, sums: Array) -> tuple[Array, Array]:
        """Return the least cost of each side of a context's cuts, split in it at most once."""
        inner, whole = sums[:-1], sums[-1]
        below, above = self.least_cost(inner), self.least_cost(whole - inner)
        if not len(inner):
            return below, above
        between = self.least_cost(inner - inner[:, None])  # [b, a]: above cut b, at most cut a
        later = np.tri(len(inner), dtype=np.bool_).T & ~np.eye(len(inner), dtype=np.bool_)
        between = np.where(later, between, np.inf)
        return (
            np.minimum(below, (below[:, None] + between).min(axis=0)),
            np.minimum(above, (between + above).min(axis=1)),
        )

    def sums(self, j: int) -> Array:
        """Return Σ(D, 1) over rows at most each cut of a context, and over all (C + 1, G + 1)."""
        return np.asarray(np.cumsum(self._cells(self.code[:, j], len(self.cuts[j]) + 1), axis=0))

    def pair_sums(self, j: int, k: int) -> Array:
        """Return the same over rows at most each cut of two contexts (C + 1, C' + 1, G + 1)."""
        shape = len(self.cuts[j]) + 1, len(self.cuts[k]) + 1
        cells = self._cells(self.code[:, j] * shape[1] + self.code[:, k], shape[0] * shape[1])
        return np.asarray(np.cumsum(np.cumsum(cells.reshape(*shape, -1), axis=0), axis=1))

    def _cells(self, cell: NDArray[np.intp], count: int) -> Array:
        """Return Σ(D, 1) over the rows of each cell (count, G + 1)."""
        from scipy.sparse import csr_matrix  # noqa: PLC0415

        n = len(cell)
        rows = csr_matrix((np.ones(n), cell, np.arange(n + 1)), shape=(n, count))
        return np.asarray(rows.T @ self.cost)

    def least_cost(self, sums: Array) -> Array:
        """Return min_g of sums (…, G + 1); infinite where there are too few rows."""
        enough = sums[..., -1] > self.least - 0.5
        return np.where(enough, sums[..., :-1].min(axis=-1), np.inf)

    def tree(self, splits: list[TreeSplit], grid: Array, names: tuple[str, ...]) -> Policy:
        """Return the policy of these splits, its doses the vertices of parabolas at the minima."""
        ends = self.leaves(splits)
        curves = np.stack([self.cost[rows, :-1].mean(axis=0) for rows, _ in ends])
        doses = least_dose(grid, curves) if grid.ndim == 1 else least_point(grid, curves)
        if not splits:
            return Constant(doses[0])
        return Tree(*self.questions(splits), doses, features=names)

    def questions(
        self, splits: list[TreeSplit]
    ) -> tuple[list[int], list[float], list[int], list[int]]:
        """Return the columns, cuts and ways on of splits, as a `Tree` has them."""
        where = {rows.tobytes(): s for s, rows in enumerate(cut.rows for cut in splits)}
        where |= {rows.tobytes(): -1 - leaf for leaf, (rows, _) in enumerate(self.leaves(splits))}
        low = [self.code[:, cut.column] <= cut.cut for cut in splits]
        return (
            [cut.column for cut in splits],
            [float(self.cuts[cut.column][cut.cut]) for cut in splits],
            [where[(cut.rows & b).tobytes()] for cut, b in zip(splits, low, strict=True)],
            [where[(cut.rows & ~b).tobytes()] for cut, b in zip(splits, low, strict=True)],
        )


def least_point(points: Array, curves: Array) -> Array:
    """Return the doses (n, d) at which curves (n, G) on points (G, d) are least.

    By a quadratic surface through the points around the least one, if it has a minimum among them.
    """
    d = points.shape[1]
    unit = np.ptp(points, axis=0)
    j, k = np.triu_indices(d)
    around = AROUND * (1 + d + len(j))
    found = points[np.argmin(curves, axis=1)]
    for row, curve in enumerate(curves):
        from_least = (points - found[row]) / unit
        nearest = np.argsort(np.sum(from_least**2, axis=1), kind="stable")[:around]
        u = from_least[nearest]
        columns = np.column_stack([np.ones(len(u)), u, u[:, j] * u[:, k]])
        fit = np.linalg.lstsq(columns, curve[nearest], rcond=None)[0]
        bend = np.zeros((d, d))
        bend[j, k] = fit[1 + d :]
        bend = bend + bend.T
        if np.linalg.eigvalsh(bend)[0] > 0.0:
            step = np.linalg.solve(bend, -fit[1 : 1 + d])
            found[row] += unit * np.clip(step, u.min(axis=0), u.max(axis=0))
    return np.asarray(found)


def cuts_of(column: Array) -> Array:
    """Return up to 15 cuts of a context (n,) at its quantiles, as short numbers between values."""
    values = np.unique(column)
    if len(values) > CUTS + 1:
        levels = np.arange(1, CUTS + 1) / (CUTS + 1)
        at = np.unique(np.searchsorted(values, np.quantile(column, levels, method="lower")))
    else:
        at = np.arange(len(values))
    at = at[at < len(values) - 1]
    return np.array([short_between(values[i], values[i + 1]) for i in at])


def short_between(low: float, high: float) -> float:
    """Return a number of few digits near the middle of two; the lower if there is none between."""
    middle = low + (high - low) / 2.0
    largest = int(np.ceil(np.log10(max(abs(low), abs(high)))))
    for power in range(largest, largest - 18, -1):
        short = float(f"{round(middle / 10.0**power)}e{power}")
        if low < short < high:
            return short
    return float(low)
