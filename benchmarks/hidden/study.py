"""One log of the study: bounds at the true strength, of a value and of a difference."""

from __future__ import annotations

import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import titrant as tt
from benchmarks.confounding.records import digits
from benchmarks.hidden.designs import DESIGNS, OTHER, POLICY, LeftOut, policy, true_value
from titrant.doubt.sensitivity import left_out_of, sensitivity_of
from titrant.evaluation import Evaluation

if TYPE_CHECKING:
    from benchmarks.confounding.records import Task
    from titrant.data import LoggedData

RECORDS = Path(__file__).parent / "records.jsonl.gz"
SEED = 2031
ROWS = 1000


def study(task: Task) -> dict[str, Any]:
    """Return what is kept of one log: of the value of a policy, and of the difference of two."""
    design = DESIGNS[task.design]
    seed = [task.seed, task.n, task.replication, zlib.crc32(task.design.encode())]
    log = design.log(task.n, seed)
    found: dict[str, Any] = {}
    if isinstance(design, LeftOut):
        # What a reader of the recorded log would take for the strength of the third context.
        gamma = tt.sensitivity(log, policy(POLICY), benchmarks=["x2"], allow_untrusted=True)
        found["gamma"] = digits(gamma.benchmarks["x2"])
        log = log.without(["x2"])
    else:
        found["gamma"] = design.gamma
    return found | bounded(log, found["gamma"])


def bounded(log: LoggedData, gamma: float) -> dict[str, Any]:
    """Return bounds and intervals at Γ and at 1, tipping points, and the time that they took."""
    start = time.process_time()
    policies = {"policy": policy(POLICY), "other": policy(OTHER)}
    evaluation = Evaluation.of(log, policies, None, None)
    comparison = evaluation.compare(allow_untrusted=True)
    evaluated = time.process_time()
    none = left_out_of(evaluation, None, (), lambda *_: None)
    apart = sensitivity_of(evaluation, comparison, none, given=True)
    difference = kept(apart, gamma, true_value(POLICY) - true_value(OTHER))
    contrast = comparison.contrast("policy", "other")
    difference["estimate"] = digits(contrast.difference)
    bounds = time.process_time()
    alone = evaluation.with_policies({"policy": policy(POLICY), "status quo": tt.StatusQuo()})
    of_alone = alone.compare(allow_untrusted=True)
    value = kept(sensitivity_of(alone, of_alone, none, given=False), gamma, true_value(POLICY))
    value["estimate"] = digits(of_alone["policy"].value)
    times = [evaluated - start, bounds - evaluated]
    return {"value": value, "difference": difference, "cpu": [digits(t) for t in times]}


def kept(found: tt.Sensitivity, gamma: float, truth: float) -> dict[str, Any]:
    """Return what is kept of one sensitivity analysis."""
    return {
        "truth": digits(truth),
        "bounds": [digits(end) for end in found.bounds(gamma)],
        "interval": [digits(end) for end in found.interval(gamma)],
        "at_one": [digits(end) for end in found.bounds(1.0)],
        "plain": [digits(end) for end in found.interval(1.0)],
        "tipping": [found.tipping.bound, found.tipping.interval],
    }
