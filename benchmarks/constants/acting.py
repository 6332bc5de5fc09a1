"""Constants that act on some logs only, varied on logs where they act.

A group is some designs at one number of rows with the constants that are varied there.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.confounding.designs import (
    DESIGNS,
    KNOWN,
    TUNING,
    normal,
    shared_cause,
    two_of_twenty,
)
from benchmarks.confounding.records import Task
from benchmarks.constants.study import RECORDS as MAIN_RECORDS
from benchmarks.constants.study import estimates, with_constant
from titrant.evaluation.evaluation import Evaluation

if TYPE_CHECKING:
    from collections.abc import Iterator

    Record = dict[str, Any]

RECORDS = MAIN_RECORDS.with_name("constants_acting.jsonl.gz")
SEED = 2054

AFTER_MODELS: dict[str, tuple[float, float]] = {
    "bandwidth.AveragedBiasPath.fewest_rows": (4, 16),
    "bandwidth.AveragedBiasPath.widest": (1.0, 4.0),
    "bandwidth.path.FEWEST": (4, 8),
    "inference.rbc._PURITY": (0.25, 0.75),
    "inference.rbc._FALLBACK": (0.35, 0.71),
    "inference.rbc._SMALLEST": (0.01, 0.2),
    "evaluation.models.jackknife.FEWEST": (5, 20),
}
"""Constants that the models know nothing of: the same models serve all their values."""
SMOOTHING = {k: v for k, v in AFTER_MODELS.items() if not k.startswith("evaluation")}


class Group(NamedTuple):
    """Designs at one number of rows, how often each is drawn, and what is varied there."""

    title: str
    designs: tuple[str, ...]
    rows: int
    replications: int
    constants: dict[str, tuple[float, float]]

    def holds(self, record: Record) -> bool:
        """Whether a record is of this group."""
        return (
            record["n"] == self.rows
            and record["design"] in self.designs
            and record["replication"] < self.replications
        )


FORTY = "two of forty contexts"
OWN = {FORTY: shared_cause("nonlinear", normal(40, 0.2), two_of_twenty)}
"""Designs of this study alone."""
GROUPS = (
    Group("Calibration designs, known propensities, 300 rows", tuple(KNOWN), 300, 10, SMOOTHING),
    Group("Calibration designs, known propensities, 40 rows", tuple(KNOWN), 40, 20, SMOOTHING),
    Group(
        "Tuning designs, unknown propensities, 300 rows",
        tuple(TUNING),
        300,
        5,
        {
            **SMOOTHING,
            "outcome.Bounded.share": (0.002, 0.05),
            "propensity.average.LEAST": (0.0, 0.05),
        },
    ),
    Group(
        "Five, eight and ten contexts, 300 rows",
        ("threshold in two", "radial bump in eight", "linear, ten contexts"),
        300,
        6,
        {"outcome.forest.FEW": (2, 12)},
    ),
    Group(
        "A context of 8 values, and one of 24, 1,000 rows",
        ("site number", "rush hours"),
        1000,
        6,
        {"outcome.context.LEVELS_UP_TO": (6, 24)},
    ),
    Group(
        "Ten contexts, 100 rows",
        ("linear, ten contexts",),
        100,
        10,
        {"outcome.ridge.SATURATED": (0.6, 0.99)},
    ),
    Group(
        "Twenty and forty contexts, 1,000 rows",
        ("two of twenty contexts", FORTY),
        1000,
        2,
        {
            "outcome.context.PRODUCTS_UP_TO": (7, 40),
            "outcome.context.BENDS_UP_TO": (15, 60),
            "outcome.ridge.WIDE": (250, 1000),
        },
    ),
    Group(
        "Fewer than 50 rows (40)",
        tuple(TUNING),
        40,
        5,
        {"evaluation.models.fitting.FEWEST_TO_FOLLOW": (25, 100)},
    ),
    Group(
        "More than 50 rows (80)",
        tuple(TUNING),
        80,
        5,
        {"evaluation.models.fitting.FEWEST_TO_FOLLOW": (25, 100)},
    ),
    Group(
        "4,000 rows",
        ("threshold", "product of two"),
        4000,
        4,
        {"outcome.Forest.rows": (800, 3200)},
    ),
    Group(
        "20,000 rows",
        ("threshold", "product of two"),
        20_000,
        3,
        {
            "evaluation.models.fitting.MOST_TO_FIT": (5000, 20_000),
            "propensity.CrossPropensity.rows": (2500, 10_000),
            "evaluation.models.jackknife.FEWEST": (5, 20),
        },
    ),
)
CONSTANTS = tuple(dict.fromkeys(name for group in GROUPS for name in group.constants))


def plan() -> list[Task]:
    """Return every log of the plan; any stop leaves a balanced record."""
    tasks = [
        Task(name, group.rows, replication, SEED)
        for replication in range(max(group.replications for group in GROUPS))
        for group in GROUPS
        if replication < group.replications
        for name in group.designs
    ]
    return list(dict.fromkeys(tasks))  # a log may be in two groups


def changes(task: Task) -> Iterator[tuple[str, float]]:
    """Yield the constants that are varied on a log, each with the values tried."""
    for group in GROUPS:
        if task.design in group.designs and task.n == group.rows:
            for name, values in group.constants.items():
                yield from ((name, value) for value in values)


def study(task: Task) -> dict[str, Any]:
    """Return values and intervals of all policies of a log, by the default and by each change."""
    design = (DESIGNS | OWN)[task.design]
    seed = [task.seed, task.n, task.replication, zlib.crc32(task.design.encode())]
    log = design.draw(task.n, seed)
    default = Evaluation.of(log, design.policies, None, None)
    found = {"default": estimates(default)}
    for name, value in changes(task):
        with with_constant(name, value):
            same = name in AFTER_MODELS
            own = default if same else Evaluation.of(log, design.policies, None, None)
            found[f"{name}={value:g}"] = estimates(own)
    truths = [float(f"{design.truths[policy]:.5g}") for policy in design.policies]
    return {"truth": truths, "found": found}
