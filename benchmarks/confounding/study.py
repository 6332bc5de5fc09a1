"""One log of the study: the default call on it and, on the first logs of a design, all others.

The plan is 200 logs of 1,000 rows and 100 of 300 rows from every design on which a claim rests, and
30 of 5,000 rows from every third of them; 100 logs of 1,000 rows from those by which a reviewer
fooled the default. Designs that were looked at while the default was changed show that it follows
them in 60 logs; those of the calibration page are measured there at length.
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
    CALIBRATION,
    DESIGNS,
    FRESH,
    HELD_OUT,
    JUMPS,
    KNOWN,
    LATEST,
    NEWEST,
    OBLIQUE,
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
CLAIMED = [*LATEST, *NEWEST, *HELD_OUT]
"""Designs on which the claims about the default rest."""
LOOKED_AT = [*TUNING, *FRESH, *ATTACKED, *SEEN_SINCE]
"""Designs that were in view when the default was changed."""
STAGES = (
    (CLAIMED, 1000, 100),
    (list(JUMPS), 1000, 60),
    (list(OBLIQUE), 1000, 100),
    (CLAIMED, 300, 50),
    (CLAIMED[::3], 5000, 15),
    (list(KNOWN), 1000, 20),
    (CLAIMED, 1000, 200),
    (CLAIMED, 300, 100),
    (CLAIMED[::3], 5000, 30),
    (list(JUMPS), 1000, 200),
    (list(JUMPS), 300, 100),
    ([*CALIBRATION, *LOOKED_AT], 1000, 20),
    ([*KNOWN, *CALIBRATION, *LOOKED_AT], 1000, 60),
)
"""Designs, rows and logs of each, what matters most first; a later stage goes on with an earlier
one."""
COMPARED = {1000: 60, 300: 20, 5000: 10}
"""Logs of a design and size on which the other contestants run, too: errors are compared on these,
the coverage of the default is counted on all."""
PLAIN = (tt.DoublyRobust(outcome=Stack(ridge_pair())), tt.GaussianMixture())
"""The estimator and the propensity model of the plain contestant."""
RECENTERED = RobustBiasCorrected(recentered=True)


def plan(seed: int) -> list[Task]:
    """Return every log of the plan, stage after stage.

    Any stop leaves a balanced record of its stage: all its designs have the same number of logs,
    within one.
    """
    every = (
        Task(name, n, replication, seed)
        for names, n, replications in STAGES
        for replication in range(replications)
        for name in names
    )
    return list(dict.fromkeys(every))


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
    if task.replication >= COMPARED.get(task.n, task.replication + 1):
        return found
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
