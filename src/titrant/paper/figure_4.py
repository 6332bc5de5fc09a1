"""Figure 4: how good the slope is that looks best on a log of n = 10 … 300 rows.

The kernel estimate is minimized over β in [0, 1.3] exactly: it is piecewise rational in β, and
every piece is solved. The other estimates are minimized over a grid of slopes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from titrant.data.simulate import Synthetic
from titrant.optimize.exact_line import exact_line
from titrant.paper.result import COLORS, Row, falls, mean_of, ribbon, where, with_halves
from titrant.paper.study import Findings, Study
from titrant.paper.synthetic import (
    LOGGING,
    METHODS,
    OURS,
    drawn,
    estimates,
    line,
    log_tasks,
    rows_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from titrant._types import Array
    from titrant.paper.study import Measurement, Piece, Settings, Task


SIZES = (10, 20, 30, 50, 100, 200, 300)
QUICK_SIZES = (30, 100, 300)
GRID = tuple(round(0.05 * k, 2) for k in range(27))
EXACT = {
    "kernel, h = 0.3": (0.3, 1.3),
    "kernel, h = 0.3, β up to 3": (0.3, 3.0),
    "kernel, h = 0.1": (0.1, 1.3),
}
"""Bandwidth and greatest slope of each exact search; the paper looks at β up to 1.3."""
ON_GRID = ("discretized, 10 bins", "direct, forest", "direct, cubic")

PLUG_IN = "kernel, plug-in as printed"
RESCALED = f"{PLUG_IN}, rescaled from n₀"
GREATEST = 1.3
N0 = 100
"""Rows of the log on which the rescaled bandwidth is found."""


def tasks(settings: Settings) -> list[Task]:
    """Return one task for each log."""
    return log_tasks(settings, LOGGING, QUICK_SIZES if settings.quick else SIZES)


def measure(task: Task) -> Measurement:
    """Return the slope that each estimate finds best on one log."""
    log = drawn(task)
    found: Measurement = {
        method: learned_slope(log, h, greatest) for method, (h, greatest) in EXACT.items()
    }
    for method, n in ((PLUG_IN, task["n"]), (RESCALED, N0)):
        h0 = plug_in({**task, "n": n})
        h = None if h0 is None else h0 * (n / task["n"]) ** 0.2
        found[method] = None if h is None else learned_slope(log, h, GREATEST)
    for method in ON_GRID:
        values = estimates(METHODS[method], task, {str(beta): line(beta) for beta in GRID})
        ranked = sorted((answer["value"], float(beta)) for beta, answer in values.items())
        found[method] = ranked[0][1] if ranked else None
    return found


def plug_in(task: Task) -> float | None:
    """Return the paper's plug-in bandwidth of τ(x) = x on a log; None where it has no rows."""
    answer = estimates(METHODS[PLUG_IN], task, {"best": line(1.0)}).get("best")
    return None if answer is None else float(answer["h"])


def learned_slope(log: tt.LoggedData, h: float, greatest: float) -> float:
    """Return the β in [0, greatest] whose τ(x) = βx has the least self-normalized estimate."""
    estimator = tt.SelfNormalized(kernel=tt.Epanechnikov(), clip=0.1)
    slope = log.context[:, 0]
    # The paper sets no floor under the effective sample size.
    best = exact_line(
        estimator, rows_of(log), h, slope=slope, low=0.0, high=greatest, ess_floor=0.0
    )
    return float(best.params[0])


def regrets(pieces: Sequence[Piece], method: str, logging: str, n: int) -> Array:
    """Return the true value of the slope found on each log; the best has 0."""
    chosen = [piece.found[method] for piece in where(pieces, {"logging": logging, "n": n})]
    return np.array([Synthetic.value_of_slope(beta) for beta in chosen if beta is not None])


def summarize(pieces: Sequence[Piece]) -> Findings:
    """Return the mean regrets."""
    methods = [*EXACT, PLUG_IN, RESCALED, *ON_GRID]
    sizes = sorted({piece.task["n"] for piece in pieces})
    rows = [
        row for logging in LOGGING for method in methods for row in _rows(pieces, logging, method)
    ]
    series: dict[str, Any] = {"n": sizes}
    for logging in LOGGING:
        each = {m: [regrets(pieces, m, logging, n) for n in sizes] for m in methods}
        series[logging] = {method: with_halves(over_n) for method, over_n in each.items()}
    return Findings(rows=tuple(rows), series=series, sample=_sample(pieces))


def _rows(pieces: Sequence[Piece], logging: str, method: str) -> list[Row]:
    """Return the mean regrets; those of a kernel estimate fall as n grows, says the paper."""
    label = f"{logging}, {method}"
    each = {n: regrets(pieces, method, logging, n) for n in QUICK_SIZES}
    rows = [mean_of(label, f"regret at n = {n}", regret) for n, regret in each.items()]
    few, many = QUICK_SIZES[0], QUICK_SIZES[-1]
    if method in ON_GRID:
        return rows
    return [*rows, falls(label, "regret", each[few], each[many], (few, many))]


def _sample(pieces: Sequence[Piece]) -> dict[str, float]:
    """Return the slopes found on the first logs of 100 rows."""
    first = where(pieces, {"n": 100, "replication": 0})
    return {
        f"{piece.task['logging']}, {method}": beta
        for piece in first
        for method, beta in piece.found.items()
        if beta is not None
    }


def draw(figure: Figure, series: dict[str, Any]) -> None:
    """Draw the mean regret over n, with its 95 % interval, for both ways of logging."""
    panels: Sequence[Axes] = figure.subplots(1, 2, sharey=True)
    for axes, logging in zip(panels, LOGGING, strict=True):
        for (method, one), color in zip(series[logging].items(), COLORS, strict=False):
            ribbon(axes, series["n"], one["mean"], one["half"], label=method, color=color)
        axes.set(xlabel="n", title=f"{logging} logging", ylim=(-0.01, 0.25))
        axes.axhline(0.0, color="black", lw=0.8)
    panels[0].set_ylabel("regret of the learned policy")
    panels[0].legend(fontsize=7)


STUDY = Study(
    name="figure-4",
    title="Learning the slope of τ(x) = βx as n grows",
    claim="the out-of-sample error of the empirically optimal policy converges to zero.",
    ours=(
        *OURS,
        "Bandwidths of the search: the constants 0.3 and 0.1, and the plug-in of τ(x) = x.",
        f"The rescaled plug-in is that of a log of n₀ = {N0} rows times (n₀/n)^(1/5); n₀ is ours.",
    ),
    replications=100,
    quick_replications=10,
    tasks=tasks,
    measure=measure,
    summarize=summarize,
    draw=draw,
)
