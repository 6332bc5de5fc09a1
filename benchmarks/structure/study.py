"""One log of the study: the default call on it, with what is said of its structure and without."""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.confounding.records import digits
from benchmarks.confounding.study import estimates, evaluated, timed
from benchmarks.structure.designs import DESIGNS

if TYPE_CHECKING:
    from benchmarks.confounding.records import Task

RECORDS = Path(__file__).parent / "records.jsonl.gz"
SEED = 2028
ROWS = 1000
VERSIONS = "with", "without"


@cache
def truths(design: str) -> tuple[float, ...]:
    """Return the true values of a design's policies, found once."""
    return tuple(digits(DESIGNS[design].truth(name)) for name in DESIGNS[design].policies)


def seed_of(task: Task) -> list[int]:
    return [task.seed, task.n, task.replication, zlib.crc32(task.design.encode())]


def study(task: Task) -> dict[str, Any]:
    """Return what is kept of one log; every list is in the order of the design's policies."""
    design = DESIGNS[task.design]
    found: dict[str, Any] = {"truth": list(truths(task.design))}
    for name, log in zip(VERSIONS, design.versions(task.n, seed_of(task)), strict=True):
        (_, answers), found[name] = timed(lambda log=log: evaluated(log, design.policies))
        found[name] |= estimates(answers, design.policies)
    return found
