"""Trees with a line in each leaf, found on the doubly robust curves of the rows.

In a leaf the dose is a + b'z in at most three contexts, found by Newton steps on Σ D(a + b'z) from
the leaf's best constant. A split is looked for where the rows' pseudo-residuals −D'/D'' about the
line they have would be explained best by a line in one context on either side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.learn.classes.base import CurveClass, used_columns, varying
from titrant.learn.classes.tree import DEEPEST, SIZES, TreeProblem, TreeSplit
from titrant.policies import Constant, LinearTree
from titrant.policies.lookup import least_dose
from titrant.scaling import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.classes.base import DoseCurves
    from titrant.policies import Policy

SLOPES = 3
"""Contexts in the line of a leaf, at most."""
SEEN = 1.0
"""A context is taken into a line if it gains so many standard errors.

The gain is the square of the slope: one standard error of it is two of the slope.
"""
RIDGE = 0.05
"""On the slopes of standardized contexts, in units of the rows."""
STEPS = 8
"""Newton steps of a line."""
WIDE = 8.0
"""Slopes and bends of curves are differences over the doses' range by so much."""
HELD = 3.0
"""Lines are found with contexts within so many sizes of their centers."""
TRIED = 3
"""Contexts of a node whose best cuts are tried with lines on their sides."""
QUARTILES = 1.349
"""Between the quartiles of a normal distribution, in sds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearTreeClass(CurveClass):
    """Trees of at most ``depth`` questions in a row and ``leaves`` leaves, a line in each.

    A leaf's line has at most three contexts, each with a slope of two standard errors, and is
    kept within the doses that the leaf's rows were given. ``features`` are the contexts of the log
    that the policy uses, in its order; all unless given. For one dose.
    """

    depth: int = DEEPEST
    leaves: int = SIZES[-1]
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if _check.count(self.depth, "depth", "LinearTreeClass") > DEEPEST:
            raise _check.invalid("depth", "LinearTreeClass", f"at most {DEEPEST}", self.depth)
        _check.count(self.leaves, "leaves", "LinearTreeClass", at_least=2)

    @property
    def name(self) -> str:
        """What a table calls it."""
        return "linear tree"

    @property
    def candidates(self) -> dict[str, int | None]:
        """Trees by their leaves."""
        return {f"{size} leaves": size for size in self._sizes()}

    def found(self, log: LoggedData, curves: DoseCurves) -> tuple[Policy, ...]:
        """Return a tree of each size, or the largest there is; a constant if nothing can be cut."""
        if curves.grid.ndim > 1:
            raise InvalidArgument(
                "`LinearTreeClass` is learned for one dose; this log has "
                f"{curves.grid.shape[1]}. Learn a `TreeClass()` or a `LinearClass()`."
            )
        used = varying(self.features, log, "A tree")
        x = used_columns(log.context, used)
        problem = LineProblem.of(x, log.treatment, curves)
        names = tuple(log.names[j] for j in used)
        growth = problem.grown(self.depth, self.leaves)
        return tuple(problem.policy(growth[: size - 1], names) for size in self._sizes())

    def _sizes(self) -> list[int]:
        most = min(self.leaves, 2**self.depth)
        return [*(size for size in SIZES if size < most), most]


@dataclass(frozen=True, slots=True)
class LeafLine:
    """The line of a leaf."""

    intercept: float
    slopes: Array
    """In the contexts as they are (p,)."""
    lower: float
    upper: float
    doses: Array
    """Of the leaf's rows (m,)."""
    cost: float
    """Σ D over the rows at their doses."""


@dataclass(frozen=True, slots=True)
class LineProblem:
    """Rows, what they cost at each dose, and how they may be cut."""

    tree: TreeProblem
    x: Array
    t: Array
    grid: Array
    robust: Array
    """D, counted from its mean (n, G)."""

    @classmethod
    def of(cls, x: Array, t: Array, curves: DoseCurves) -> LineProblem:
        """Return the problem for contexts x (n, p), logged doses t (n,) and curves."""
        robust = curves.robust - curves.robust.mean()
        return cls(TreeProblem.of(x, curves.robust), x, t, curves.grid, robust)

    # The line of a leaf.

    def line(self, rows: NDArray[np.bool_]) -> LeafLine:
        """Return the line of some rows: contexts one by one, while each gains what can be seen."""
        x, D = self.x[rows], self.robust[rows]
        given = np.clip(self.t[rows], self.grid[0], self.grid[-1])
        ends = float(given.min()), float(given.max())
        center, size, z = standardized(x)
        free = size > 0.0
        beta = np.zeros(1 + x.shape[1])
        beta[0] = np.clip(least_dose(self.grid, D.mean(axis=0)[None])[0], *ends)
        chosen: list[int] = []
        dose = np.full(len(D), beta[0])
        cost = self.at(D, dose)
        while len(chosen) < min(SLOPES, int(free.sum())):
            r, _ = self.residuals(D, dose)
            explains = np.where(free, np.abs((r - r.mean()) @ (z - z.mean(axis=0))), -1.0)
            explains[chosen] = -1.0
            more = [*chosen, int(np.argmax(explains))]
            new = self.descended(D, z, beta, more, ends)
            doses = np.clip(new[0] + z @ new[1:], *ends)
            gained = cost - (costs := self.at(D, doses))
            if gained.mean() <= SEEN * gained.std() / np.sqrt(len(gained)):
                break
            chosen, beta, dose, cost = more, new, doses, costs
        slopes = np.zeros(x.shape[1])
        slopes[free] = beta[1:][free] / size[free]
        intercept = float(beta[0] - slopes @ center)
        dose = np.clip(intercept + x @ slopes, *ends)
        return LeafLine(intercept, slopes, *ends, dose, float(self.at(D, dose).sum()))

    def descended(
        self, D: Array, z: Array, beta: Array, used: list[int], ends: tuple[float, float]
    ) -> Array:
        """Return intercept and slopes (1 + p,) after Newton steps in the used contexts."""
        at = [0, *(1 + j for j in used)]
        u = np.column_stack([np.ones(len(z)), z[:, used]])
        ridge = RIDGE * len(z) * np.diag([0.0, *np.ones(len(used))])
        found = beta.copy()
        least = self.at(D, np.clip(found[0] + z @ found[1:], *ends)).mean()
        for _ in range(STEPS):
            r, bend = self.residuals(D, np.clip(found[0] + z @ found[1:], *ends))
            if bend <= 0.0:
                break
            step = np.linalg.solve(u.T @ u + ridge, u.T @ r - ridge @ found[at])
            for shorter in (1.0, 0.5, 0.25):
                new = found.copy()
                new[at] += shorter * step
                cost = self.at(D, np.clip(new[0] + z @ new[1:], *ends)).mean()
                if cost < least:
                    break
            else:
                break
            found, least = new, cost
        return found

    def residuals(self, D: Array, dose: Array) -> tuple[Array, float]:
        """Return −D'/D'' (m,) of rows at their doses, D'' the mean over rows, and D''."""
        w = (self.grid[-1] - self.grid[0]) / WIDE
        low, middle, high = (self.at(D, dose + side) for side in (-w, 0.0, w))
        bend = float(np.mean(low - 2.0 * middle + high)) / w**2
        slope = (high - low) / (2.0 * w)
        return (-slope / bend if bend > 0.0 else -slope), bend

    def at(self, D: Array, dose: Array) -> Array:
        """Return the curves D (m, G) at a dose of each row (m,), between doses of the grid."""
        step = (self.grid[-1] - self.grid[0]) / (len(self.grid) - 1)
        place = np.clip((dose - self.grid[0]) / step, 0.0, len(self.grid) - 1.0)
        left = np.minimum(place.astype(np.intp), len(self.grid) - 2)
        rows, right = np.arange(len(D)), place - left
        return np.asarray(D[rows, left] * (1.0 - right) + D[rows, left + 1] * right)

    # The questions.

    def grown(self, depth: int, leaves: int) -> list[TreeSplit]:
        """Return the splits of a tree whose leaves have lines, the one that saves most first."""
        splits: list[TreeSplit] = []
        open_ = self.best_cut(np.ones(len(self.x), dtype=np.bool_), 0)
        while open_ and len(splits) < leaves - 1:
            best = max(open_, key=lambda cut: cut.saved)
            # Without any question there is no tree; later ones must save something.
            if splits and best.saved <= 0.0:
                break
            open_ = [cut for cut in open_ if cut is not best]
            splits.append(best)
            if best.depth + 1 < depth:
                for rows in self.sides(best):
                    open_ += self.best_cut(rows, best.depth + 1)
        return splits

    def sides(self, cut: TreeSplit) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the rows (n,) at most the cut and above it."""
        low = self.tree.code[:, cut.column] <= cut.cut
        return cut.rows & low, cut.rows & ~low

    def best_cut(self, rows: NDArray[np.bool_], depth: int) -> list[TreeSplit]:
        """Return the cut that saves most with a line on each side; none if too few rows are left.

        Tried are the best cuts of the contexts whose sides' lines explain most of the residuals.
        """
        line = self.line(rows)
        r, _ = self.residuals(self.robust[rows], line.doses)
        _, size, z = standardized(self.x[rows])
        z = z[:, size > 0.0]
        own = np.column_stack([np.ones(len(r)), r, z, z**2, z * r[:, None]])
        found: list[tuple[float, int, int]] = []
        for j, cuts in enumerate(self.tree.cuts):
            if not len(cuts):
                continue
            cell = np.zeros((len(cuts) + 1, own.shape[1]))
            np.add.at(cell, self.tree.code[rows, j], own)
            sums = np.cumsum(cell, axis=0)
            total = self.explained(sums[:-1]) + self.explained(sums[-1] - sums[:-1])
            c = int(np.argmax(total))
            if np.isfinite(total[c]):
                found.append((float(total[c]), j, c))
        tried = [TreeSplit(rows, j, c, depth=depth) for _, j, c in sorted(found)[-TRIED:]]
        saved = [line.cost - sum(self.line(s).cost for s in self.sides(cut)) for cut in tried]
        least = int(np.argmax(saved)) if tried else 0
        return [replace(cut, saved=saved[least]) for cut in tried[least : least + 1]]

    def explained(self, sums: Array) -> Array:
        """Return the squares that a line in the best one context explains (C,).

        From sums (C, 2 + 3p) of 1, r, z, z² and zr; −∞ where there are too few rows.
        """
        n, r, each = sums[:, 0], sums[:, 1], sums[:, 2:]
        p = each.shape[1] // 3
        z, zz, zr = each[:, :p], each[:, p : 2 * p], each[:, 2 * p :]
        rows = np.maximum(n, 1.0)[:, None]
        spread = zz - z**2 / rows + RIDGE * rows
        line = ((zr - z * r[:, None] / rows) ** 2 / spread).max(axis=1, initial=0.0)
        return np.where(n > self.tree.least - 0.5, r**2 / rows[:, 0] + line, -np.inf)

    def policy(self, splits: list[TreeSplit], names: tuple[str, ...]) -> Policy:
        """Return the policy of these splits, a line in each leaf."""
        if not splits:
            return Constant(float(least_dose(self.grid, self.robust.mean(axis=0)[None])[0]))
        lines = [self.line(rows) for rows, _ in self.tree.leaves(splits)]
        return LinearTree(
            *self.tree.questions(splits),
            [line.intercept for line in lines],
            slopes=[line.slopes for line in lines],
            lower=[line.lower for line in lines],
            upper=[line.upper for line in lines],
            features=names,
        )


def standardized(x: Array) -> tuple[Array, Array, Array]:
    """Return the centers and sizes (p,) of contexts and z = (x − center)/size, held (m, p).

    Medians, and quartiles where they differ: one absurd cell moves neither. The size is 0 of a
    context that does not vary.
    """
    center = np.median(x, axis=0)
    low, high = np.quantile(x, [0.25, 0.75], axis=0)
    size = np.where(high > low, (high - low) / QUARTILES, x.std(axis=0))
    size = np.where(size > ROUNDING * np.abs(x).max(axis=0, initial=0.0), size, 0.0)
    z = (x - center) / np.where(size > 0.0, size, 1.0)
    return center, size, np.clip(z, -HELD, HELD)
