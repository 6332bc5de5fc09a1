"""One log of the study: the default call on it, once for all policies."""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import titrant as tt
from benchmarks.confounding.records import digits
from benchmarks.confounding.study import estimates, timed
from benchmarks.moves.designs import DESIGNS

if TYPE_CHECKING:
    from benchmarks.confounding.records import Task

RECORDS = Path(__file__).parent / "records.jsonl.gz"
SEED = 2030
SIZES = (500, 2000)
REFERENCE = "status quo"


@cache
def truths(design: str) -> dict[str, float]:
    """Return the true values of a design's policies, found once."""
    return {name: digits(value) for name, value in DESIGNS[design].truths().items()}


def study(task: Task) -> dict[str, Any]:
    """Return what is kept of one log; every list is in the order of the design's policies."""
    design = DESIGNS[task.design]
    seed = [task.seed, task.n, task.replication, zlib.crc32(task.design.encode())]
    log = design.draw(task.n, seed)
    policies = design.policies
    found: dict[str, Any] = {"truth": list(truths(task.design).values())}
    compared, used = timed(lambda: tt.compare(log, policies, allow_untrusted=True))
    ends = [compared.contrast(name, REFERENCE).interval() for name in design.moves]
    found |= used | estimates(compared.estimates, policies)
    found["difference_low"] = [digits(low) for low, _ in ends]
    found["difference_high"] = [digits(high) for _, high in ends]
    return found
