"""A log in Parquet files, for tests that then break one of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from titrant import Columns

KNOWN = Columns(treatment="dose", outcome="loss", context=["age", "bmi"], propensity="q")
UNKNOWN = Columns(treatment="dose", outcome="loss", context=["age", "bmi"])
ROWS = 3_000  # of a file


def table(number, rows=ROWS):
    """x ~ N(0, I), t = x₀/2 + N(0, 1), a quadratic loss around x₁/3."""
    rng = np.random.default_rng([5, number])
    x, z = rng.standard_normal((rows, 2)), rng.standard_normal(rows)
    t = 0.5 * x[:, 0] + z
    columns = {
        "age": x[:, 0],
        "bmi": x[:, 1],
        "dose": t,
        "loss": (t - x[:, 1] / 3) ** 2 + 0.3 * rng.standard_normal(rows),
        "q": np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi),
    }
    return pa.table(columns)


def write(folder, files):
    """The paths of so many files, each one partition."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number}.parquet" for number in range(files)]
    for number, path in enumerate(paths):
        pq.write_table(table(number), path)
    return paths
