"""Write a log of any length to Parquet, part by part: ``python -m benchmarks.scale.generate``.

Twelve columns: nine contexts x0 … x8, the dose, its propensity, and the loss.

    x ~ N(0, I),   t = x'a + N(0, 1),   y = (t − b(x))²/2 + N(0, 1),   b(x) = x'c + 0.2

A row depends on its file's number alone, so logs of different lengths share their first files.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import titrant as tt

CONTEXTS = 9
ROWS = 500_000
"""Of one file."""
GROUP = 1 << 17
"""Rows of one row group."""
LOGGED = np.linspace(0.4, -0.4, CONTEXTS)
BEST = np.linspace(-0.3, 0.5, CONTEXTS)
NAMES = tuple(f"x{j}" for j in range(CONTEXTS))
COLUMNS = tt.Columns(treatment="dose", outcome="loss", context=NAMES, propensity="q")
WITHOUT_Q = tt.Columns(treatment="dose", outcome="loss", context=NAMES)


def table(number: int, rows: int) -> pa.Table:
    """Return the rows of one file."""
    rng = np.random.default_rng([2026, number])
    x = rng.standard_normal((rows, CONTEXTS))
    noise = rng.standard_normal(rows)
    t = x @ LOGGED + noise
    loss = 0.5 * (t - x @ BEST - 0.2) ** 2 + rng.standard_normal(rows)
    q = np.exp(-0.5 * noise**2) / np.sqrt(2 * np.pi)
    columns = {name: x[:, j] for j, name in enumerate(NAMES)}
    return pa.table({**columns, "dose": t, "loss": loss, "q": q})


def generate(folder: Path, rows: int) -> Path:
    """Return a folder with files of so many rows in all, written unless they are there."""
    here = folder / f"rows-{rows}"
    here.mkdir(parents=True, exist_ok=True)
    for number in range(-(-rows // ROWS)):
        path = here / f"part-{number:04}.parquet"
        if not path.exists():
            size = min(ROWS, rows - number * ROWS)
            unfinished = path.with_suffix(".unfinished")
            # Random numbers do not repeat: looking for repetitions would take most of the time.
            pq.write_table(
                table(number, size), unfinished, row_group_size=GROUP, use_dictionary=False
            )
            unfinished.rename(path)
    return here


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("rows", type=float)
    given = parser.parse_args()
    print(generate(given.folder, int(given.rows)))
