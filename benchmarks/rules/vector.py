"""Two doses at once: the default against a quadratic plug-in, where that is right and where not."""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.confounding.records import Task, digits
from benchmarks.rules.contestants import quadratic_model
from benchmarks.rules.measure import AUTOMATIC, RESULTS

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray

RECORDS = RESULTS / "learning_rules_vector.jsonl.gz"
SEED = 2048
N, CONTEXTS, PEOPLE = 300, 3, 500
SIDE = 31
"""Doses on each side of the grid that the plug-in searches."""
QUADRATIC = "quadratic"
TOGETHER = np.array([[1.0, 0.4], [0.4, 1.0]])
"""How the two doses act together."""


def lines(x: Array) -> Array:
    """Return best doses (n, 2) that are lines."""
    return np.column_stack([0.8 * x[:, 0] - 0.4 * x[:, 1], 0.5 * x[:, 1] + 0.5 * x[:, 2]])


def groups(x: Array) -> Array:
    """Return best doses (n, 2) that jump with two contexts."""
    first, second = x[:, 0] > 0.0, x[:, 1] > 0.3
    return np.column_stack([np.where(first, 1.0, -1.0), np.where(first & second, 1.0, -0.8)])


def squared(off: Array) -> Array:
    """Return the loss (n,) of doses so far from the best ones."""
    return np.einsum("ij,jk,ik->i", off, TOGETHER, off)


DESIGNS: dict[str, Callable[[Array], Array]] = {"lines": lines, "groups": groups}
"""The best doses; a quadratic plug-in is right for the first."""


def measure(task: Task) -> dict[str, Any]:
    """Return excess risks and squared dose errors of the default and of the plug-in."""
    import titrant as tt  # noqa: PLC0415

    best = DESIGNS[task.design]
    rng = np.random.default_rng([task.seed, task.replication, zlib.crc32(task.design.encode())])
    x, new = rng.normal(size=(N, CONTEXTS)), rng.normal(size=(PEOPLE, CONTEXTS))
    t = 0.3 * x[:, :2] + rng.normal(size=(N, 2))
    y = squared(t - best(x)) + rng.normal(size=N)
    began = time.process_time()
    learner = tt.PolicyLearner(honest=False).fit(tt.LoggedData(x, t, y))
    cpu = time.process_time() - began
    off = {AUTOMATIC: learner.policy_(new), QUADRATIC: plugged_in(x, t, y, new)}
    off = {name: tau - best(new) for name, tau in off.items()}
    return {
        "chosen": learner.choice_.chosen,
        "excess": {name: digits(float(squared(gap).mean())) for name, gap in off.items()},
        "squared": {
            name: digits(float(np.sum(gap**2, axis=1).mean())) for name, gap in off.items()
        },
        "cpu": digits(cpu),
    }


def plugged_in(x: Array, t: Array, y: Array, new: Array) -> Array:
    """Return the pair of doses (n, 2) with the least prediction, within those logged."""
    model = quadratic_model().fit(np.column_stack([x, t]), y)
    ends = np.quantile(t, [0.005, 0.995], axis=0)
    sides = [np.linspace(low, high, SIDE) for low, high in ends.T]
    grid = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2)
    found = np.empty((len(new), 2))
    for i, person in enumerate(new):
        rows = np.column_stack([np.broadcast_to(person, (len(grid), len(person))), grid])
        found[i] = grid[np.argmin(model.predict(rows))]
    return found
