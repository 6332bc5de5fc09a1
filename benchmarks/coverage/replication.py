"""One replication of one cell: every selector's estimate and intervals on one drawn log."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import titrant as tt
from titrant.bandwidth import (
    AveragedBiasPath,
    LeaveOneOut,
    PathFit,
    PlugIn,
    RuleOfThumb,
    Slope,
    Subsampled,
    TwoBandwidth,
    path_of,
)
from titrant.bandwidth.path import path_statistics
from titrant.errors import UntrustedEstimate
from titrant.estimators import Question, ask
from titrant.evaluation.evaluation import Evaluation
from titrant.inference import EmpiricalBernstein, Normal, PoissonBootstrap, RobustBiasCorrected
from titrant.kernels import Scale
from titrant.outcome import Stack, ridge_pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.coverage.designs import Case, TenContextCase
    from titrant.bandwidth import BandwidthSelector
    from titrant.estimators import Problem, Rows, SmoothedEstimator

ESTIMATORS: dict[str, SmoothedEstimator] = {
    "self-normalized": tt.SelfNormalized(),
    "doubly robust": tt.DoublyRobust(outcome=Stack(ridge_pair())),
}
SELECTORS: dict[str, BandwidthSelector] = {
    "averaged bias path": AveragedBiasPath(),
    "two bandwidths": TwoBandwidth(),
    "path fit": PathFit(),
    "rule of thumb": RuleOfThumb(),
    "SLOPE": Slope(),
}
"""Selectors of every replication; the default is the first."""
SLOW_SELECTORS: dict[str, BandwidthSelector] = {
    "plug-in": PlugIn(),
    "plug-in as printed": PlugIn(as_printed=True),
    "subsampled": Subsampled(AveragedBiasPath(), rows=500),
    "leave one out": LeaveOneOut(),
}
"""Selectors of every tenth replication, leave-one-out up to n = 1000 only: they read each row."""
EVERY = 10
INTERVALS = {"robust bias-corrected": RobustBiasCorrected(recentered=True), "normal": Normal()}
"""Intervals made around every selector's estimate."""
DEFAULT_INTERVALS = {
    "Poisson bootstrap": PoissonBootstrap(draws=400),
    "empirical Bernstein": EmpiricalBernstein(),
}
"""Intervals made around the default selector's estimate only."""


def selectors_of(replication: int, n: int) -> dict[str, BandwidthSelector]:
    """Return the selectors that take part in a replication."""
    if replication % EVERY:
        return SELECTORS
    slow = {k: s for k, s in SLOW_SELECTORS.items() if n <= 1000 or k != "leave one out"}
    return SELECTORS | slow


def remembering(problem: Problem) -> Problem:
    """Return the same problem, computing a bandwidth path that several selectors ask for once."""
    known: dict[tuple[float, ...], Any] = {}

    def over_rows(statistic: Callable[[Rows], Any]) -> Any:
        if not isinstance(statistic, partial) or statistic.func is not path_statistics:
            return problem.over_rows(statistic)
        grid = tuple(scale.volume for scale in statistic.args[1])
        if grid not in known:
            known[grid] = problem.over_rows(statistic)
        return known[grid]

    return replace(problem, over_rows=over_rows)


def replicate(
    case: Case | TenContextCase, n: int, estimator: str, replication: int, seed: int
) -> dict[str, Any]:
    """Return the numbers of one drawn log, or why it was refused."""
    log = case.draw(n, [seed, n, replication])
    chosen = ESTIMATORS[estimator]
    evaluation = Evaluation.of(log, {"policy": case.rule()}, chosen, case.propensity)
    problem = remembering(evaluation.problem(0, chosen))
    selectors = selectors_of(replication, n)
    try:
        bandwidths = [selector.select(problem) for selector in selectors.values()]
        interval = INTERVALS["robust bias-corrected"]
        default = evaluation.comparison({0: bandwidths[0]}, interval)["policy"]
    except UntrustedEstimate as refusal:
        return {"verdict": "refuse", "why": str(refusal)}
    point = ask([Question(chosen, 0, Scale.of(b.h, 1)) for b in bandwidths], evaluation.over_rows)
    inferences = {k: m.infer(point, evaluation.over_rows) for k, m in INTERVALS.items()}
    first = ask([point.questions[0]], evaluation.over_rows)
    extra = {k: m.infer(first, evaluation.over_rows) for k, m in DEFAULT_INTERVALS.items()}
    return {
        "verdict": default.diagnostics.verdict.value,
        "checks": {c.name: c.verdict.value for c in default.diagnostics.checks},
        "path": path_of(problem).values.tolist(),
        "values": dict(zip(selectors, point.values.tolist(), strict=True)),
        "intervals": {
            f"{name} | {kind}": inference.interval(i).at(0.95)
            for kind, inference in inferences.items()
            for i, name in enumerate(selectors)
        }
        | {
            f"averaged bias path | {kind}": inference.interval(0).at(0.95)
            for kind, inference in extra.items()
        },
    }
