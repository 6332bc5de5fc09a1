"""The triangular kernel: a difference of convex functions, and a procedure that only descends."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from titrant.data.simulate import Synthetic
from titrant.optimize import LBFGS, AffineSearch, Box, PolicyObjective, exact_line
from titrant.paper.cccp import CCCP
from titrant.paper.result import Row, mean_of
from titrant.paper.study import Findings
from titrant.paper.synthetic import rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.estimators import SmoothedEstimator
    from titrant.paper.study import Measurement, Piece, Settings, Task


NAME = "descent"
H, ROWS, STARTS, SHARE = 0.2, 200, 5, 200
"""Bandwidth, rows of a log, starts on a log; one log for every 200 of the study's replications."""
ESTIMATORS: dict[str, SmoothedEstimator] = {
    "IPW, centered": tt.IPW(kernel=tt.Triangular(), clip=0.1, centered=True),
    "self-normalized": tt.SelfNormalized(kernel=tt.Triangular(), clip=0.1),
}
LOW, HIGH = np.array([-0.5, 0.0]), np.array([0.5, 1.5])
"""Intercept and slope stay on the data."""
ROUNDING = 1e-9
"""The tolerance of a linear program, in the value."""


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each log."""
    logs = max(settings.replications // SHARE, 3)
    return [{"part": NAME, "replication": k, "seed": settings.seed} for k in range(logs)]


def measure(task: Task) -> Measurement:
    """Return the values along each descent, and where L-BFGS ends from the same starts."""
    rng = np.random.default_rng([task["seed"], 6, task["replication"]])
    log = Synthetic().draw(ROWS, rng)
    starts = rng.uniform(LOW, HIGH, (STARTS, 2))
    return {name: _descents(estimator, log, starts) for name, estimator in ESTIMATORS.items()}


def _descents(estimator: SmoothedEstimator, log: tt.LoggedData, starts: Array) -> Measurement:
    rows = rows_of(log)
    baseline, e = estimator.baseline(rows)
    search = AffineSearch(
        phi=np.hstack([np.ones((len(log), 1)), log.context]),
        t=rows.t[:, 0],
        e=e,
        q=rows.need("q", "descent"),
        kernel=estimator.kernel,
        h=H,
        center=float(baseline[0]),
    )
    objective = PolicyObjective(statistics=search, estimator=estimator)
    traces = []
    for start in starts:
        trace = [float(objective(start[None])[0][0])]
        kept = partial(_keep, trace)
        CCCP(constraint=Box(LOW, HIGH), progress=kept).minimize(objective, start[None])
        traces.append(trace)
    peer = LBFGS(constraint=Box(LOW, HIGH)).minimize(objective, starts)
    slope = log.context[:, 0]
    exact = exact_line(estimator, rows, H, slope=slope, low=0.0, high=1.5, ess_floor=0.0)
    return {"traces": traces, "lbfgs": float(peer.value), "best slope": float(exact.value)}


def _keep(trace: list[float], step: int, value: float) -> None:
    """Keep the value after a step."""
    del step
    trace.append(float(value))


def summarize(pieces: Sequence[Piece]) -> Findings:
    """Return the largest step upward, and how the ends compare with L-BFGS."""
    u = np.linspace(-3.0, 3.0, 601)
    hinges = np.maximum(-1.0, u) - 2.0 * np.maximum(0.0, u) + np.maximum(1.0, u)
    off = float(np.round(np.abs(tt.Triangular()(u) - hinges).max(), 12))
    label = "Triangular kernel − its three hinges"
    identity = Row(label, "largest difference", off, limits=(0.0, 1e-12))
    rows = [row for name in ESTIMATORS for row in _rows(name, pieces)]
    traces: dict[str, Any] = {name: pieces[0].found[name]["traces"] for name in ESTIMATORS}
    ends = {f"end of the first descent, {name}": traces[name][0][-1] for name in ESTIMATORS}
    return Findings(rows=(identity, *rows), series={NAME: traces}, sample=ends)


def _rows(name: str, pieces: Sequence[Piece]) -> list[Row]:
    found = [piece.found[name] for piece in pieces]
    upward = [max(np.diff(trace).max(initial=0.0) for trace in one["traces"]) for one in found]
    steps = np.array([len(trace) - 1.0 for one in found for trace in one["traces"]])
    ends = [min(trace[-1] for trace in one["traces"]) for one in found]
    ahead = np.array([end - one["lbfgs"] for end, one in zip(ends, found, strict=True)])
    ahead = np.round(ahead, 4) + 0.0  # what solvers of different versions agree on
    label = f"CCCP, {name}"
    highest = float(np.round(max(upward), 9))
    return [
        Row(label, "largest step upward", highest, limits=(0.0, ROUNDING)),
        mean_of(label, "linear programs a descent", steps),
        mean_of(label, "value − that of L-BFGS, same starts", ahead, limits=(None, 0.0)),
    ]
