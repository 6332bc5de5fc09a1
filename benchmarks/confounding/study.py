"""One log of the study: the default call, the plain models and the contestants on it.

The plan is 200 logs of 1,000 rows and 100 of 300 rows from every design but those that were looked
at while the default was changed, of which 40 logs of 1,000 rows show that it follows them; and 30
of 5,000 rows from every third design.
"""

from __future__ import annotations

import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import titrant as tt
from benchmarks.confounding.contestants import CONTESTANTS
from benchmarks.confounding.designs import (
    ATTACKED,
    DESIGNS,
    FRESH,
    HELD_OUT,
    NEWEST,
    SEEN_SINCE,
    TUNING,
)
from benchmarks.confounding.records import Task, digits
from titrant.errors import UntrustedEstimate
from titrant.evaluation.evaluation import Evaluation
from titrant.inference import RobustBiasCorrected
from titrant.outcome import Stack, ridge_pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from titrant.evaluation.evaluation import AnyPolicy
    from titrant.inference.results import Estimate

R = TypeVar("R")
RECORDS = Path(__file__).parent / "records.jsonl.gz"
SEED = 2027
PLAN = {1000: 200, 300: 100, 5000: 30}
"""Replications of each size."""
LOOKED_AT = {*TUNING, *FRESH, *ATTACKED, *SEEN_SINCE}
"""Designs that were in view when the default was changed."""
FEW = {1000: 40}
"""Replications of these."""
LARGE = 5000
EVERY = 3
"""Of large logs, one design in so many takes part."""
PLAIN = (tt.DoublyRobust(outcome=Stack(ridge_pair())), tt.GaussianMixture())
"""The estimator and the propensity model of the plain contestant."""
RECENTERED = RobustBiasCorrected(recentered=True)


def plan(seed: int) -> list[Task]:
    """Return every log of the plan, those first on which the claims about the default rest.

    These are logs of the usual size from designs that were not looked at while the default was put
    together. Then come all others of that size, then the other sizes. Any stop leaves a balanced
    record of its part: all designs have the same number of logs, within one.
    """
    names = [name for name in DESIGNS if name not in LOOKED_AT]
    tasks = [
        Task(name, n, replication, seed)
        for n, replications in PLAN.items()
        for name in (names[::EVERY] if n == LARGE else names)
        for replication in range(replications)
    ]
    tasks += [
        Task(name, n, replication, seed)
        for n, replications in FEW.items()
        for name in DESIGNS
        if name in LOOKED_AT
        for replication in range(replications)
    ]
    order = [(n, telling) for n in PLAN for telling in (True, False)]
    return sorted(tasks, key=lambda task: (order.index(turn(task)), task.replication))


def turn(task: Task) -> tuple[int, bool]:
    """Return the part of the plan that a log is of: its size, and whether claims rest on it."""
    return task.n, task.design in HELD_OUT or task.design in NEWEST


def log_of(task: Task) -> tt.LoggedData:
    seed = [task.seed, task.n, task.replication, zlib.crc32(task.design.encode())]
    return DESIGNS[task.design].draw(task.n, seed)


def study(task: Task) -> dict[str, Any]:
    """Return what is kept of one log; every list is in the order of the design's policies."""
    design, log = DESIGNS[task.design], log_of(task)
    policies = design.policies
    doses = {name: policy(log.context) for name, policy in policies.items()}
    found: dict[str, Any] = {"truth": [digits(design.truths[name]) for name in policies]}
    (evaluation, default), found["default"] = timed(lambda: evaluated(log, policies))
    found["default"] |= estimates(default, policies)
    found["default"] |= corrected(evaluation, default, policies)
    estimator, propensity = PLAIN[0], None if log.has_propensity else PLAIN[1]
    (_, plain), found["plain"] = timed(lambda: evaluated(log, policies, estimator, propensity))
    found["plain"] |= estimates(plain, policies)
    for name, contestant in CONTESTANTS.items():
        values, found[name] = timed(lambda contestant=contestant: contestant(log, doses))
        found[name] |= {"value": [digits(values[policy]) for policy in policies]}
    return found


def evaluated(
    log: tt.LoggedData,
    policies: Mapping[str, AnyPolicy],
    estimator: tt.DoublyRobust | None = None,
    propensity: tt.GaussianMixture | None = None,
) -> tuple[Evaluation, Mapping[str, Estimate]]:
    """Return what `compare` returns, and what it was asked of; no estimates if none is possible."""
    evaluation = Evaluation.of(log, policies, estimator, propensity)
    try:
        return evaluation, evaluation.compare(allow_untrusted=True).estimates
    except UntrustedEstimate:
        return evaluation, {}


def estimates(found: Mapping[str, Estimate], policies: Iterable[str]) -> dict[str, list[Any]]:
    """Return values, intervals and verdicts, None where no row is near the policy."""
    each = [found.get(name) for name in policies]
    ends = [None if e is None else e.interval() for e in each]
    return {
        "value": [e and digits(e.value) for e in each],
        "se": [e and digits(e.se) for e in each],
        "low": [i and digits(i[0]) for i in ends],
        "high": [i and digits(i[1]) for i in ends],
        "verdict": [e.diagnostics.verdict.value if e else "refuse" for e in each],
        "checks": [
            [c.name for c in e.diagnostics if c.verdict.value != "ok"] if e else [] for e in each
        ],
    }


def corrected(
    evaluation: Evaluation, found: Mapping[str, Estimate], policies: Iterable[str]
) -> dict[str, list[Any]]:
    """Return the bias-corrected fits, from which other forms of the interval can be made."""
    each = {name: found.get(name) for name in policies}
    asked = {i: e.bandwidth for i, e in enumerate(each.values()) if e}
    point = evaluation.point(asked).joint if asked else None
    centers = RECENTERED.infer(point, evaluation.over_rows).centers if point else ()
    center = dict(zip(asked, centers, strict=True))
    return {
        "center": [digits(float(center[i])) if i in center else None for i in range(len(each))],
        "center_se": [e and digits(e.confidence.se) for e in each.values()],
        "degrees": [e and digits(e.confidence.degrees) for e in each.values()],
        "h": [e and e.bandwidth and digits(float(e.bandwidth.h)) for e in each.values()],
    }


def timed(call: Callable[[], R]) -> tuple[R, dict[str, Any]]:
    """Return what a call returns, and its CPU seconds for the record."""
    began = time.process_time()
    result = call()
    return result, {"cpu": round(time.process_time() - began, 2)}
