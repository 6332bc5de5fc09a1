"""The triangular kernel: a difference of convex functions, and a procedure that only descends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from titrant.data.simulate import Synthetic
from titrant.estimators import Rows
from titrant.optimize import LBFGS, AffineSearch, Box, PolicyObjective, exact_line
from titrant.paper.cccp import CCCP
from titrant.paper.result import Row, standard_error
from titrant.paper.study import Findings
from titrant.paper.theory.designs import Part

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


@dataclass(frozen=True, slots=True)
class Trace:
    """The values of a descent, start first."""

    values: list[float]

    def __call__(self, step: int, value: float) -> None:
        """Keep the value after a step."""
        del step
        self.values.append(float(value))


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
        trace = Trace([float(objective(start[None])[0][0])])
        CCCP(constraint=Box(LOW, HIGH), progress=trace).minimize(objective, start[None])
        traces.append(trace.values)
    peer = LBFGS(constraint=Box(LOW, HIGH)).minimize(objective, starts)
    slope = log.context[:, 0]
    exact = exact_line(estimator, rows, H, slope=slope, low=0.0, high=1.5, ess_floor=0.0)
    return {"traces": traces, "lbfgs": float(peer.value), "best slope": float(exact.value)}


def rows_of(log: tt.LoggedData) -> Rows:
    """Return the rows of a log that has propensities, floored at 0.1 as in the paper."""
    if log.propensity is None:
        raise tt.DataError("The study needs the propensity of every row; the log has none.")
    return Rows(
        tau=log.doses,  # not read
        t=log.doses,
        y=log.outcome,
        x=log.context,
        center=float(log.outcome.mean()),
        q=np.maximum(log.propensity, 0.1),
    )


def summarize(pieces: Sequence[Piece]) -> Findings:
    """Return the largest step upward, and how the ends compare with L-BFGS."""
    u = np.linspace(-3.0, 3.0, 601)
    hinges = np.maximum(-1.0, u) - 2.0 * np.maximum(0.0, u) + np.maximum(1.0, u)
    identity = Row(
        label="Triangular kernel − its three hinges",
        quantity="largest difference",
        ours=float(np.round(np.abs(tt.Triangular()(u) - hinges).max(), 12)),
        band=(0.0, 1e-12),
    )
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
    return [
        Row(
            label=label,
            quantity="largest step upward",
            ours=float(np.round(max(upward), 9)),
            band=(0.0, ROUNDING),
        ),
        Row(
            label=label,
            quantity="linear programs a descent",
            ours=float(steps.mean()),
            se=standard_error(steps),
        ),
        Row(
            label=label,
            quantity="value − that of L-BFGS, same starts",
            ours=float(ahead.mean()),
            se=standard_error(ahead),
            band=(-1.0, 0.01),
        ),
    ]


PART = Part(name=NAME, tasks=tasks, measure=measure, summarize=summarize)
