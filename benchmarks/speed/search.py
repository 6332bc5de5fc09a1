"""Row 13, searches: 32 restarts beside 32 runs of scipy, and the exact optimum of one parameter.

scipy's L-BFGS-B runs on plain numpy gradients of the same objective with the same tolerances; the
exact search is told in evaluations of one policy by the same compiled sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from benchmarks.speed.measuring import Line, at_most, in_turn
from titrant.estimators import IPW, DoublyRobust, Rows, SelfNormalized, SmoothedEstimator
from titrant.optimize import LBFGS, AffineSearch, PolicyObjective, Second, exact_line
from titrant.outcome.table import DoseTable

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, np.dtype[np.float64]]

RESTARTS = 32
H = 1.2
VALUE_TOLERANCE, GRADIENT_TOLERANCE = 2e-9, 1e-6
SAME_VALUE = 1e-6
"""Relative: how much worse than scipy's best value counts as the same."""


# ── problems ─────────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True)
class Problem:
    """A log with d contexts, losses quadratic around a linear best dose, and a model of them."""

    x: Array
    t: Array
    y: Array
    q: Array
    table: DoseTable

    @classmethod
    def draw(cls, n: int, d: int, seed: int) -> Problem:
        """Return a log of n rows."""
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, d))
        size = np.sqrt(0.9 / d)
        t = x @ rng.normal(size=d) * size + rng.normal(size=n)
        best = x @ rng.normal(size=d) * size
        y = (t - best) ** 2 + rng.normal(size=n)
        grid = np.linspace(t.min(), t.max(), 81)
        curves = 0.7 * (grid - best[:, None]) ** 2 + 0.3 * np.sin(grid + x[:, [0]])
        return cls(x, t, y, np.full(n, 0.3), DoseTable(grid[0], grid[-1], curves))

    @property
    def phi(self) -> Array:
        """Features of a linear policy (n, d + 1)."""
        return np.column_stack([np.ones(len(self.t)), self.x])

    def starts(self, seed: int) -> Array:
        """Return random starts (32, d + 1)."""
        d = self.x.shape[1]
        noise = np.random.default_rng(seed + 1000).normal(size=(RESTARTS, d + 1))
        return noise * np.sqrt(0.9 / d)

    def rows(self) -> Rows:
        """Return the log as an estimator sees it."""
        return Rows(
            tau=self.t[:, None],
            t=self.t[:, None],
            y=self.y,
            x=self.x,
            center=float(self.y.mean()),
            q=self.q,
            r_logged=self.table(self.t),
        )


def searched(estimator: SmoothedEstimator, phi: Array, rows: Rows, h: float) -> AffineSearch:
    """Return the compiled sums of an estimator for policies φ'β."""
    if estimator.uses_outcome_model:
        center, e = rows.center, rows.y - rows.need("r_logged", "searched")
    else:
        baseline, e = estimator.baseline(rows)
        center = float(baseline[0])
    return AffineSearch(
        phi=phi,
        t=rows.t[:, 0],
        e=e,
        q=rows.need("q", "searched"),
        kernel=estimator.kernel,
        h=h,
        center=center,
        weight_slopes=estimator.normalized,
    )


@dataclass(frozen=True)
class Task:
    """An estimator with its penalties, and the same in plain numpy."""

    name: str
    estimator: SmoothedEstimator
    ridge: float
    floor: float = 0.0

    def compiled(self, problem: Problem) -> PolicyObjective:
        """Return the objective of titrant."""
        rows, modeled = problem.rows(), self.estimator.uses_outcome_model
        search = replace(
            searched(self.estimator, problem.phi, rows, H),
            table=problem.table if modeled else None,
            second=Second.WEIGHTS if self.floor else Second.NONE,
        )
        return PolicyObjective(
            statistics=search, estimator=self.estimator, ridge=self.ridge, ess_floor=self.floor
        )

    def plain(self, problem: Problem) -> Callable[[Array], tuple[float, Array]]:
        """Return the same objective in numpy."""
        if self.estimator.uses_outcome_model:
            value = numpy_doubly_robust(problem)
        elif isinstance(self.estimator, SelfNormalized):
            value = numpy_self_normalized(problem, self.floor)
        else:
            value = numpy_centered(problem)

        def penalized(beta: Array) -> tuple[float, Array]:
            v, slope = value(beta)
            return v + self.ridge * (beta @ beta), slope + 2 * self.ridge * beta

        return penalized


TASKS = (
    Task("centered IPW, ridge", IPW(centered=True), ridge=0.1),
    Task("doubly robust, ridge", DoublyRobust(self_normalized=False), ridge=0.03),
    Task("self-normalized, ridge", SelfNormalized(), ridge=0.1),
    Task("self-normalized, ridge, ESS floor", SelfNormalized(), ridge=0.03, floor=100.0),
)


# ── the same objectives as anyone would write them ───────────────────────────────────────────────
def numpy_centered(problem: Problem) -> Callable[[Array], tuple[float, Array]]:
    phi, t, q, n = problem.phi, problem.t, problem.q, len(problem.t)
    center = problem.y.mean()
    e = problem.y - center

    def value(beta: Array) -> tuple[float, Array]:
        u = (phi @ beta - t) / H
        inside = np.abs(u) <= 1
        w = 0.75 * (1 - u * u) * inside / (q * H)
        slope = -1.5 * u * inside / (q * H**2)
        return center + (w @ e) / n, phi.T @ (slope * e) / n

    return value


def numpy_self_normalized(problem: Problem, floor: float) -> Callable[[Array], tuple[float, Array]]:
    phi, t, q, y = problem.phi, problem.t, problem.q, problem.y

    def value(beta: Array) -> tuple[float, Array]:
        u = (phi @ beta - t) / H
        inside = np.abs(u) <= 1
        w = 0.75 * (1 - u * u) * inside / q
        slope = -1.5 * u * inside / (q * H)
        total = w.sum()
        v = (w @ y) / total
        gradient = phi.T @ (slope * (y - v)) / total
        if floor:
            square = w @ w
            short = floor * square / total**2 - 1
            if short > 0:
                change = w * slope - square / total * slope
                gradient = gradient + 4 * short * floor / total**2 * (phi.T @ change)
                v = v + short**2
        return v, gradient

    return value


def slope_of(table: DoseTable, t: Array) -> Array:
    """Return ∂r̂/∂t at the dose of each row (n,), 0 beyond the grid."""
    rows, last, step = np.arange(len(t)), table.values.shape[1] - 1, table.grid[1] - table.grid[0]
    place = np.clip((t - table.lower) / step, 0.0, last)
    cell = np.minimum(place.astype(np.intp), last - 1)
    u, rise = place - cell, table.values[rows, cell + 1] - table.values[rows, cell]
    left, right = table.slopes[rows, cell], table.slopes[rows, cell + 1]
    slope = 6 * u * (1 - u) * rise + (1 - u) * (1 - 3 * u) * left + u * (3 * u - 2) * right
    return np.where((t < table.lower) | (t > table.upper), 0.0, slope / step)


def numpy_doubly_robust(problem: Problem) -> Callable[[Array], tuple[float, Array]]:
    phi, t, q, table, n = problem.phi, problem.t, problem.q, problem.table, len(problem.t)
    e = problem.y - table(t)

    def value(beta: Array) -> tuple[float, Array]:
        tau = phi @ beta
        u = (tau - t) / H
        inside = np.abs(u) <= 1
        w = 0.75 * (1 - u * u) * inside / (q * H)
        slope = slope_of(table, tau) - 1.5 * u * inside / (q * H**2) * e
        return (table(tau).sum() + w @ e) / n, phi.T @ slope / n

    return value


# ── measuring ────────────────────────────────────────────────────────────────────────────────────
def restarts(task: Task, size: tuple[int, int], *, seed: int, repeats: int, asked: float) -> Line:
    """Return how 32 restarts compare with 32 runs of scipy, for (n, d) rows and contexts."""
    n, d = size
    problem = Problem.draw(n, d, seed)
    objective, plain, starts = task.compiled(problem), task.plain(problem), problem.starts(seed)
    check_same(objective, plain, starts)
    ours = LBFGS(
        steps=15_000, value_tolerance=VALUE_TOLERANCE, gradient_tolerance=GRADIENT_TOLERANCE
    )
    options = {"ftol": VALUE_TOLERANCE, "gtol": GRADIENT_TOLERANCE}

    def peer() -> list[Any]:
        return [minimize(plain, s, jac=True, method="L-BFGS-B", options=options) for s in starts]

    (mine, theirs), (solution, runs) = in_turn(
        [lambda: ours.minimize(objective, starts), peer], repeats
    )
    best = min(run.fun for run in runs)
    worse = (solution.value - best) / max(abs(best), 1.0)
    return Line(
        13,
        f"{RESTARTS} restarts, n = {n:,}, d = {d}, {task.name}",
        theirs / mine,
        f"≥ {asked:g} × faster than scipy, same value",
        bool(theirs / mine >= asked and worse <= SAME_VALUE),
        {
            "seed": seed,
            "evaluations": solution.evaluations,
            "scipy_evaluations": sum(run.nfev for run in runs),
            "best_relative_to_scipy": worse,
            "median_minus_scipy": float(
                np.median(solution.values) - np.median([run.fun for run in runs])
            ),
        },
    )


def check_same(
    objective: PolicyObjective, plain: Callable[[Array], tuple[float, Array]], starts: Array
) -> None:
    """Refuse to compare different objectives."""
    value, gradient = objective(starts[:1])
    expected = plain(starts[0])
    np.testing.assert_allclose(value[0], expected[0], rtol=1e-9)
    np.testing.assert_allclose(gradient[0], expected[1], rtol=1e-7, atol=1e-9)


def line_search(slope: str, n: int, repeats: int) -> Line:
    """Return what the exact optimum of one parameter costs in evaluations of one policy."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=n)
    t = x + 0.1 + 0.5 * rng.normal(size=n)
    y = 2 * np.abs(x - t) ** 1.5 + 0.2 * rng.normal(size=n)
    q = np.exp(-2 * (t - x - 0.1) ** 2) / (0.5 * np.sqrt(2 * np.pi))
    rows = Rows(
        tau=t[:, None],
        t=t[:, None],
        y=y,
        x=x[:, None],
        center=float(y.mean()),
        q=np.maximum(q, 0.1),
    )
    h = 0.2
    single = searched(SelfNormalized(), np.ones((n, 1)), rows, h)
    along = np.ones(n) if slope == "1" else x
    kinks = np.concatenate([(t - h) / along, (t + h) / along])
    low, high = kinks.min(), kinks.max()  # wherever any row has weight
    points = np.array([[0.5], [0.6]])  # candidates are computed two at a time
    (mine, one), (solution, _) = in_turn(
        [
            lambda: exact_line(SelfNormalized(), rows, h, slope=along, low=low, high=high),
            lambda: [single(points) for _ in range(10)],
        ],
        repeats,
    )
    ratio = mine / (one / 20)
    return at_most(
        13,
        f"exact optimum of one parameter, n = {n:,}, τ = {'β' if slope == '1' else 'βx'}",
        ratio,
        60,
        "evaluations",
        beta=float(solution.params[0]),
        gap=solution.gap,
        cells=solution.evaluations,
    )


def growth(sizes: tuple[int, ...], repeats: int) -> Line:
    """Return how far a search of eight restarts and ten steps is from proportional in rows."""
    few = LBFGS(steps=10, value_tolerance=0.0, gradient_tolerance=0.0)
    task = Task("self-normalized, ridge", SelfNormalized(), ridge=0.1)

    def search(n: int) -> Callable[[], Any]:
        problem = Problem.draw(n, 10, 0)
        objective, starts = task.compiled(problem), problem.starts(0)[:8]
        return lambda: few.minimize(objective, starts)

    least, found = in_turn([search(n) for n in sizes], repeats)
    # How many trials ten steps take differs with the data; the cost of one must not.
    each = [s / (n * f.evaluations) for s, n, f in zip(least, sizes, found, strict=True)]
    off = max(b / a - 1 for a, b in pairwise(each))
    shown = " → ".join(f"{n:,}" for n in sizes)
    work, each_ns = f"a search, n = {shown}", [1e9 * s for s in each]
    return at_most(13, work, off, 0.15, "above linear", nanoseconds_a_row=each_ns)


def measure(*, quick: bool) -> list[Line]:
    """Return all lines of the search but its growth."""
    repeats, few, tasks = (1, 1, TASKS[2:3]) if quick else (7, 3, TASKS)
    lines = [
        restarts(task, (400, 10), seed=seed, repeats=repeats, asked=10.0)
        for task in tasks
        for seed in ((0,) if quick else (0, 1, 2))
    ]
    lines += [
        restarts(task, size, seed=0, repeats=few, asked=3.0)
        for size in ((10_000, 10), (3_171, 82))
        for task in tasks
    ]
    return [*lines, *(line_search(slope, 100_000, repeats) for slope in ("1", "x"))]
