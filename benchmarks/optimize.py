"""Measure the search for a policy: ``python -m benchmarks.optimize``.

Every time is the least CPU time of several runs on one thread, the contestants in turn, so that
what is compared is measured under the same load. 32 restarts compete with 32 runs of scipy's
L-BFGS-B on plain numpy gradients of the same objective, with the same tolerances; the exact
search for one parameter is told in evaluations of one policy by the same compiled sums. The table
goes to ``benchmarks/results/optimize.json``; ``--quick`` measures once and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import scipy
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from titrant.estimators import IPW, DoublyRobust, Rows, SelfNormalized, SmoothedEstimator
from titrant.optimize import LBFGS, AffineSearch, PolicyObjective, Second, exact_line
from titrant.outcome.table import DoseTable

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, np.dtype[np.float64]]

OUT = Path(__file__).parent / "results" / "optimize.json"
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
def in_turn(contestants: list[Callable[[], Any]], repeats: int) -> tuple[list[float], list[Any]]:
    """Return the least CPU time of each contestant, and what it returned."""
    results = [run() for run in contestants]  # compiles, fills caches
    least = [np.inf] * len(contestants)
    for _ in range(repeats):
        for k, run in enumerate(contestants):
            begun = time.process_time()
            results[k] = run()
            least[k] = min(least[k], time.process_time() - begun)
    return least, results


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    goal: int
    work: str
    ratio: float
    """How many times faster than the peer, or how many evaluations it costs."""
    asked: str
    passed: bool
    details: dict[str, Any]


def restarts(
    goal: int, task: Task, size: tuple[int, int], *, seed: int, repeats: int, asked: float
) -> Line:
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
        goal,
        f"{RESTARTS} restarts, n = {n:,}, d = {d}, {task.name}",
        theirs / mine,
        f"≥ {asked:g} × scipy, same value",
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
    return Line(
        7,
        f"exact optimum of one parameter, n = {n:,}, τ = {'β' if slope == '1' else 'βx'}",
        ratio,
        "≤ 60 evaluations",
        bool(ratio <= 60),
        {"beta": float(solution.params[0]), "gap": solution.gap, "cells": solution.evaluations},
    )


def growth(sizes: tuple[int, ...], repeats: int) -> Line:
    """Goal 11: how far a search of eight restarts and ten steps is from proportional in rows."""
    few = LBFGS(steps=10, value_tolerance=0.0, gradient_tolerance=0.0)
    task = Task("self-normalized, ridge", SelfNormalized(), ridge=0.1)

    def search(n: int) -> Callable[[], Any]:
        problem = Problem.draw(n, 10, 0)
        objective, starts = task.compiled(problem), problem.starts(0)[:8]
        return lambda: few.minimize(objective, starts)

    least, found = in_turn([search(n) for n in sizes], repeats)
    # How many trials ten steps take differs with the data; the cost of one must not.
    each = [s / (n * f.evaluations) for s, n, f in zip(least, sizes, found, strict=True)]
    off = max(abs(b / a - 1) for a, b in pairwise(each))
    shown = " → ".join(f"{n:,}" for n in sizes)
    details = {"nanoseconds_a_row_and_evaluation": [1e9 * s for s in each]}
    asked = "≤ .15 from proportional"
    return Line(11, f"learn, n = {shown}", off, asked, bool(off <= 0.15), details)


def measure(*, quick: bool) -> list[Line]:
    repeats, few = (1, 1) if quick else (7, 3)
    lines = [
        restarts(3, task, (400, 10), seed=seed, repeats=repeats, asked=10.0)
        for task in TASKS
        for seed in ((0,) if quick else (0, 1, 2))
    ]
    lines += [
        restarts(4, task, size, seed=0, repeats=few, asked=3.0)
        for size in ((10_000, 10), (3_171, 82))
        for task in TASKS
    ]
    lines += [line_search(slope, 100_000, repeats) for slope in ("1", "x")]
    return [*lines, growth((10**5, 3 * 10**5) if quick else (10**5, 3 * 10**5, 10**6), few)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="measure once, write nothing")
    quick = parser.parse_args().quick
    with threadpool_limits(1):
        lines = measure(quick=quick)
    for line in lines:
        mark = "pass" if line.passed else "FAIL"
        print(f"{mark}  goal {line.goal}  {line.ratio:6.1f}  ({line.asked})  {line.work}")
    if not quick:
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(
            json.dumps({"machine": machine(), "lines": [asdict(x) for x in lines]}, indent=1) + "\n"
        )


def machine() -> dict[str, str]:
    """Return what the numbers were measured on."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "scipy": scipy.__version__,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [x for x in info.read_text().splitlines() if "model name" in x] if info.exists() else []
    return names[0].split(":")[1].strip() if names else platform.processor()


if __name__ == "__main__":
    main()
