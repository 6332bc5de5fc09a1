"""The bandwidth path: value, standard error and joint covariance over a grid of bandwidths.

One pass over the data: the terms of all bandwidths stand side by side and their moments merge;
many rows are dropped into bins instead (:mod:`titrant.bandwidth.binned`), with the same result.
A bandwidth is a factor g times sd(T) of each dose, so a path has no units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _drawing
from titrant._tables import Tabular, rows_of
from titrant.bandwidth.base import Bandwidth, as_bandwidth, rate
from titrant.bandwidth.binned import PathGrid, PathMoments, binned, has_bins
from titrant.errors import NoOverlap
from titrant.estimators import Question
from titrant.estimators.form import has_weighted_terms, values_of
from titrant.estimators.joint import joint_estimates, of_one, statistics_of
from titrant.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from titrant._drawing import Axes
    from titrant._types import Array
    from titrant.estimators import Problem, Rows, SmoothedEstimator
    from titrant.estimators.joint import Search
    from titrant.kernels import Scale

DEFAULT_FACTORS = 0.03 * 2.0 ** (np.arange(27) / 4)
"""g = .03·2^{j/4}, j = 0 … 26: from .03 to 2.7 standard deviations, four steps an octave."""


@dataclass(frozen=True, slots=True)
class PathStatistics:
    """What is kept of the rows: moments of b, w₁e, w₁, …, w_m e, w_m, and rows in reach (m,)."""

    moments: Moments
    count: Array

    def __add__(self, other: PathStatistics) -> PathStatistics:
        """Return the statistics of both sets of rows."""
        return PathStatistics(self.moments + other.moments, self.count + other.count)

    def finish(self) -> PathMoments:
        """Return the moments at all bandwidths."""
        return PathMoments.of(self.moments, self.count)


@dataclass(frozen=True, slots=True)
class BandwidthPath(Tabular):
    """Estimates over m bandwidths g·sd(T), from n rows; arrays are (m,) unless stated."""

    n: int
    factors: Array
    """g, the bandwidths in units of sd(T), increasing."""
    spread: Array
    """sd(T) of each dose (d,)."""
    values: Array
    covariance: Array
    """Joint covariance of the values (m, m)."""
    ess: Array
    """Effective sample size (Σw)²/Σw² of each bandwidth."""
    count: Array
    """Rows within reach of each bandwidth."""
    baseline_variance: float
    """Var(b)/n, the part of every variance that no bandwidth changes."""

    @property
    def se(self) -> Array:
        """The standard errors (m,)."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    @property
    def bandwidths(self) -> Array:
        """The bandwidth h of each grid point: (m,) for one dose, (m, d) for vector doses."""
        h = self.factors[:, None] * self.spread
        return h[:, 0] if len(self.spread) == 1 else h

    def to_dict(self) -> dict[str, Any]:
        """Return the path as plain lists; None where no row is in reach."""

        def where_reached(column: Array) -> list[float | None]:
            pairs = zip(column.tolist(), np.isnan(self.values).tolist(), strict=True)
            return [None if missing else value for value, missing in pairs]

        return {
            "rows": self.n,
            "bandwidths": self.bandwidths.tolist(),
            "values": where_reached(self.values),
            "se": where_reached(self.se),
            "ess": self.ess.tolist(),
            "rows_in_reach": self.count.astype(int).tolist(),
        }

    def plot(self, ax: Axes | None = None, *, chosen: float | None = None) -> Axes:
        """Draw the estimates ± 1.96 SE over the bandwidth; return the matplotlib axes.

        For vector doses the bandwidth is in units of sd(T). ``chosen`` marks one bandwidth.
        """
        drawn, scalar = _drawing.new_axes(ax), len(self.spread) == 1
        drawn.set_xlabel("bandwidth h" if scalar else "bandwidth h, in sd of the dose")
        drawn.set_ylabel("value")
        seen = np.isfinite(self.values)
        h = (self.bandwidths if scalar else self.factors)[seen]
        half = 1.96 * self.se[seen]
        return _drawing.path(drawn, h, self.values[seen], half, chosen=chosen, color="C0")

    def _texts(self, level: float) -> list[list[str]]:  # noqa: ARG002
        columns = zip(
            self.factors.tolist(), self.values, self.se, self.ess, self.count, strict=True
        )
        rows = [
            [_product(g, self.spread), f"{v:.4g}", f"{se:.3g}", f"{ess:,.0f}", f"{count:,.0f}"]
            for g, v, se, ess, count in columns
        ]
        return [["h", "value", "SE", "ESS", "rows in reach"], *rows]

    def _numbers(self, level: float) -> list[dict[str, Any]]:  # noqa: ARG002
        found = self.to_dict()
        names = {"bandwidth": "bandwidths", "value": "values", "se": "se", "ess": "ess"}
        columns = {name: found[key] for name, key in names.items()}
        return rows_of({**columns, "rows_in_reach": found["rows_in_reach"]})


def _product(factor: float, spread: Array) -> str:
    return ", ".join(f"{factor * s:.4g}" for s in spread)


def path_of(
    problem: Problem, factors: Array = DEFAULT_FACTORS, *, joint: bool = True
) -> BandwidthPath:
    """Return what `path_search` finds, in a pass of its own."""
    return problem.answered(path_search(problem, factors, joint=joint))


def path_search(
    problem: Problem, factors: Array = DEFAULT_FACTORS, *, joint: bool = True
) -> Search[BandwidthPath]:
    """Ask for one pass; return the estimates of a problem at the bandwidths ``factors`` × sd(T).

    Without ``joint`` the covariance is nan but for the variances. Over many rows all bandwidths
    cost about as much as a few of them. Rows near a bound take time in proportion to the number of
    bandwidths that reach them, and for the joint covariance to its square.
    """
    g, estimator = np.asarray(factors, dtype=np.float64), problem.estimator
    scales = [problem.scale(factor) for factor in g]
    if not problem.alike:
        path = yield from _path_of_questions(problem, g, scales)
    elif has_bins(problem, g):
        grid = PathGrid(estimator.kernel, g * problem.spread[0])
        found = yield problem.ask(partial(binned, estimator, grid, joint=joint))
        path = _path(problem, g, found.finish())
    elif has_weighted_terms(estimator):
        found = yield problem.ask(partial(path_statistics, estimator, scales))
        path = _path(problem, g, found.finish())
    else:
        path = yield from _path_of_questions(problem, g, scales)
    return path if joint else replace(path, covariance=_variances(path.covariance))


def _path_of_questions(
    problem: Problem, factors: Array, scales: Sequence[Scale]
) -> Search[BandwidthPath]:
    """Return the path with each bandwidth a question.

    So it is found of an estimator with terms of its own, and of rows that do not count alike.
    """
    questions = [Question(problem.estimator, problem.policy, s) for s in scales]
    every = partial(of_one, problem.policy, partial(statistics_of, questions))
    found = joint_estimates(questions, (yield problem.ask(every)))
    return BandwidthPath(
        n=problem.n,
        factors=factors,
        spread=problem.spread,
        values=found.values,
        covariance=found.covariance,
        ess=found.tally.ess,
        count=found.tally.count,
        # Which of its terms no bandwidth changes, an estimator with terms of its own knows alone.
        baseline_variance=float(found.moments.covariance[0, 0] / found.moments.n)
        if has_weighted_terms(problem.estimator)
        else 0.0,
    )


def path_statistics(
    estimator: SmoothedEstimator, scales: Sequence[Scale], rows: Rows
) -> PathStatistics:
    """Return the statistics of some rows at every scale."""
    b, e = estimator.baseline(rows)
    terms = np.empty((1 + 2 * len(scales), len(b)))
    terms[0], w = b, terms[2::2]
    for j, scale in enumerate(scales):
        w[j] = estimator.weight(rows, scale)
    np.multiply(w, e, out=terms[1::2])
    return PathStatistics(Moments.of(terms.T), np.count_nonzero(w, axis=1).astype(np.float64))


def _path(problem: Problem, factors: Array, moments: PathMoments) -> BandwidthPath:
    """Return values and covariance by the delta method on the joint moments."""
    m = len(factors)
    mean_w2 = np.diagonal(moments.ww) + moments.w**2
    values, g = np.full(m, np.nan), np.zeros((m, 3))
    seen = mean_w2 > 0
    means = moments.means[seen]
    values[seen] = values_of(problem.estimator, means)
    g[seen] = problem.estimator.gradient(means)
    ess = np.divide(moments.n * moments.w**2, mean_w2, out=np.zeros(m), where=seen)
    return BandwidthPath(
        n=moments.n,
        factors=factors,
        spread=problem.spread,
        values=values,
        covariance=moments.covariance(g) / moments.n,
        ess=ess,
        count=moments.count,
        baseline_variance=moments.bb / moments.n,
    )


def _variances(covariance: Array) -> Array:
    """Return a covariance (m, m) with nan off its diagonal."""
    return np.where(np.eye(len(covariance), dtype=bool), covariance, np.nan)


# ── Which bandwidths of a path the data can bear ──────────────────────────────────────────────────
# A bandwidth is usable when enough rows are in reach, their weights are even enough, and it is not
# so wide that the estimate no longer depends on the policy.

ESS_FLOOR = 12.0
"""Bandwidths with a smaller effective sample size are not considered,"""
FEWEST_ROWS = 8
"""nor are those with fewer rows in reach,"""
WIDEST = 2.0
"""nor those beyond this many sd(T)."""
FEWEST = 5
"""Bandwidths that must be usable for a choice among them."""

SMALLEST, LARGEST = "the smallest usable bandwidth", "the largest usable bandwidth"


def usable(
    path: BandwidthPath,
    *,
    ess_floor: float = ESS_FLOOR,
    fewest_rows: int = FEWEST_ROWS,
    widest: float = WIDEST,
) -> NDArray[np.intp]:
    """Return the indices of the bandwidths with enough data and not too wide."""
    enough = (path.count >= fewest_rows) & (path.ess >= ess_floor)
    return np.flatnonzero(enough & (path.factors <= widest))


def reached(path: BandwidthPath) -> NDArray[np.intp]:
    """Return the indices of the bandwidths with at least two rows in reach."""
    return np.flatnonzero((path.count >= 2) & (path.ess > 1.0))  # noqa: PLR2004


def fall_back(
    path: BandwidthPath,
    problem: Problem,
    selector: str,
    why: str,
    *,
    ess_floor: float = ESS_FLOOR,
) -> Bandwidth:
    """Return sd(T)·n^(−1/(d+4)) moved to where there is data, flagged; refuse without any."""
    some = reached(path)
    if not len(some):
        raise NoOverlap(_no_overlap_sentence(path))
    factors, ess = path.factors[some], path.ess[some]
    enough = factors[ess >= min(ess_floor, ess.max())]
    g = float(np.clip(rate(problem), enough.min(), factors.max()))
    return Bandwidth(
        h=as_bandwidth(g, problem),
        selector=selector,
        reason=f"The rule of thumb, moved to where there is data, because of {why}.",
        flag=f"fallback: {why}",
    )


def moved_inside(g: float, low: float, high: float) -> tuple[float, str | None]:
    """Return g moved into [low, high], and a flag when that changed it."""
    if g < low:
        return low, SMALLEST
    return (high, LARGEST) if g > high else (g, None)


def edge_flag(best: int, size: int) -> str | None:
    """Return a flag when the choice is the first or the last of ``size`` candidates."""
    if best == 0:
        return SMALLEST
    return LARGEST if best == size - 1 else None


def _no_overlap_sentence(path: BandwidthPath) -> str:
    return (
        f"No bandwidth up to {path.factors[-1]:.3g} sd(T) reaches two logged doses near the "
        f"policy's doses in {path.n:,} rows. Check that doses share a unit, or ask about a policy "
        "closer to what was logged."
    )
