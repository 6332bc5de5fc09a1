"""The logs of the golden numbers: made from fixed seeds, in memory and in files."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import titrant as tt
from titrant import compiled
from titrant.bandwidth import binned
from titrant.estimators import weight

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from numpy.typing import NDArray

    from titrant.data.source import Source

    Array = NDArray[np.float64]

FEW, MANY = 300, 40_000
"""Rows for which numpy suffices, and rows for which compiled loops run in golden cases."""
BLOCKS = 150_000
"""Rows of more than one block."""
SETTLED, SETTLED_BOUNDED = 600, 700
"""Rows, without bounds and with, from which the default procedure learns a policy that does not
move by more than 1e-11 when each outcome moves by its last bit. From 300 or 450 rows it moves by
1e-7 or more: rounding decides in which of several near-equal minima a candidate ends."""
FILES, GROUP = 3, 3_000
"""Files of a scanned log, and rows of each of their row groups."""
SAMPLED = 4_000
"""Rows of a scanned log that models are fitted on: fewer than it has."""
CONTEXTS = ("age", "weight", "dose_before")


@contextmanager
def loops_from(rows: int) -> Iterator[None]:
    """Use compiled loops from so many rows on: logs long enough by themselves take minutes."""
    kept = [(names, name, names[name]) for names, name in _thresholds()]
    try:
        for names, name, _ in kept:
            names[name] = rows
        yield
    finally:
        for names, name, value in kept:
            names[name] = value


def _thresholds() -> list[tuple[dict[Any, Any], Any]]:
    """Return where it is said from how many rows on loops are used.

    Sources of other days, which `golden.py --since` asks, say it in two modules; still older ones
    under other names, and all of these rows were many to them.
    """
    if hasattr(compiled, "FEWEST"):
        return [(compiled.FEWEST, compiled.Loop.WEIGHTS), (compiled.FEWEST, compiled.Loop.PATH)]
    places = (vars(module) for module in (weight, binned))
    return [(names, "ROWS_FOR_LOOPS") for names in places if "ROWS_FOR_LOOPS" in names]


@cache
def scalar(n: int, *, known: bool = True) -> tt.LoggedData:
    """Return a log of one dose without bounds, with the column of propensities if ``known``."""
    rng = np.random.default_rng(n)
    x, noise = _contexts(rng, n), rng.standard_normal(n)
    t = center(x) + 0.6 * noise
    q = _normal(noise) / 0.6
    return tt.LoggedData(x, t, _outcome(rng, x, t), q if known else None, names=CONTEXTS)


@cache
def bounded(n: int, *, by_row: bool = False, known: bool = True) -> tt.LoggedData:
    """Return a log of one dose in [0, 1], or in bounds of its own for each row."""
    rng = np.random.default_rng(n + 1)
    x = _contexts(rng, n)
    low = 0.2 * x[:, 1] if by_row else np.zeros(n)
    width = 1.0 - 0.2 * x[:, 2] if by_row else np.ones(n)
    # f(u) = 1 + a(2u − 1) on [0, 1], drawn by its inverse.
    a = 0.7 * np.tanh(2.0 * x[:, 0] - 1.0)
    u = (a - 1.0 + np.sqrt((1.0 - a) ** 2 + 4.0 * a * rng.uniform(size=n))) / (2.0 * a)
    t, q = low + width * u, (1.0 + a * (2.0 * u - 1.0)) / width
    ends = (low, low + width) if by_row else (0.0, 1.0)
    y = _outcome(rng, x, t)
    return tt.LoggedData(x, t, y, q if known else None, bounds=ends, names=CONTEXTS)


@cache
def vector(n: int, *, known: bool = True) -> tt.LoggedData:
    """Return a log of two doses without bounds."""
    rng = np.random.default_rng(n + 2)
    x, noise = _contexts(rng, n), rng.standard_normal((n, 2))
    t = center(x)[:, None] + np.array([0.0, 0.3]) + np.array([0.6, 0.8]) * noise
    q = np.prod(_normal(noise), axis=1) / (0.6 * 0.8)
    return tt.LoggedData(x, t, _both(rng, x, t), q if known else None, names=CONTEXTS)


@cache
def boxed(n: int) -> tt.LoggedData:
    """Return a log of two doses drawn evenly from the square [0, 1]²."""
    rng = np.random.default_rng(n + 3)
    x, t = _contexts(rng, n), rng.uniform(size=(n, 2))
    return tt.LoggedData(x, t, _both(rng, x, t), np.ones(n), bounds=(0.0, 1.0), names=CONTEXTS)


@contextmanager
def scanned(log: tt.LoggedData, bounds: Any = None) -> Iterator[Source]:  # noqa: ANN401
    """Give a log as Parquet files with several row groups each, gone after the block."""
    doses = [f"t{j}" for j in range(log.dimension)]
    columns = dict(zip((*log.names, *doses), (*log.context.T, *log.doses.T), strict=True))
    columns["y"] = log.outcome
    if log.propensity is not None:
        columns["q"] = log.propensity
    roles = tt.Columns(
        treatment=doses[0] if len(doses) == 1 else doses,
        outcome="y",
        context=log.names,
        propensity=None if log.propensity is None else "q",
    )
    with TemporaryDirectory() as folder:
        for k, rows in enumerate(np.array_split(np.arange(len(log)), FILES)):
            table = pa.table({name: column[rows] for name, column in columns.items()})
            pq.write_table(table, Path(folder) / f"part-{k}.parquet", row_group_size=GROUP)
        yield tt.scan_parquet(
            folder, roles, bounds=bounds, sample_rows=SAMPLED, partition_rows=2 * GROUP
        )


def center(x: Array) -> Array:
    """Return the mean logged dose (n,) of contexts (n, 3)."""
    return np.asarray(0.3 + 0.5 * x[:, 0] - 0.2 * x[:, 1])


def _contexts(rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(size=(n, len(CONTEXTS)))


def _outcome(rng: np.random.Generator, x: Array, t: Array) -> Array:
    """Return losses (n,), least at a dose that goes with the first context, with noise."""
    best = 0.2 + 0.6 * x[:, 0]
    return np.asarray(1.0 + x[:, 2] + (t - best) ** 2 + 0.3 * rng.standard_normal(len(t)))


def _both(rng: np.random.Generator, x: Array, t: Array) -> Array:
    return 0.5 * (_outcome(rng, x, t[:, 0]) + _outcome(rng, x, t[:, 1]))


def _normal(z: Array) -> Array:
    return np.asarray(np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi))
