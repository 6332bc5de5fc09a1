"""A log of repeated people with weights, in files, and the questions that engines answer about it.

Rows of one person lie in several files, so that no partition knows a group as a whole.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.linear_model import LinearRegression

import titrant as tt

COLUMNS = tt.Columns(
    treatment="dose", outcome="loss", context=["age", "bmi"], weights="weight", groups="patient"
)
MODELS = {
    "estimator": tt.DoublyRobust(outcome=LinearRegression()),
    "propensity": tt.LinearGaussian(),
}
"""Plain ones: it is sums over groups that are asked about, not models."""


def tables(files, rows, people):
    """So many tables of different lengths whose rows belong to people drawn at random."""
    rng = np.random.default_rng(11)
    own = rng.normal(size=people)
    for k in range(files):
        n = rows + 7 * k
        who = rng.integers(people, size=n)
        x, z = rng.normal(size=(n, 2)), rng.normal(size=n)
        t = 0.5 * x[:, 0] + 0.5 * own[who] + z
        yield pa.table(
            {
                "patient": [f"p{i:03}" for i in who],
                "weight": rng.uniform(0.5, 2.0, n),
                "age": x[:, 0],
                "bmi": x[:, 1],
                "dose": t,
                "loss": (t - x[:, 1] / 3) ** 2 + x[:, 0] + own[who] + 0.3 * rng.normal(size=n),
            }
        )


def write(folder, files=3, rows=90, people=60):
    """The paths of the files."""
    folder.mkdir(exist_ok=True)
    paths = []
    for k, table in enumerate(tables(files, rows, people)):
        paths.append(str(folder / f"{k}.parquet"))
        pq.write_table(table, paths[-1])
    held = [set(pq.read_table(path)["patient"].to_pylist()) for path in paths]
    assert held[0] & held[-1], "no group straddles files"
    return paths


def answers(log, executor=None, models=MODELS):
    """All numbers of values, parts and bounds, in a form in which equal means equal bits."""
    how = {**models, "executor": executor, "allow_untrusted": True}
    policies = {"constant": tt.Constant(0.3), "shift": tt.Shift(-0.2), "logged": tt.StatusQuo()}
    found = [
        tt.compare(log, policies, **how),
        tt.subgroups(log, policies["constant"], by={"age": [0.0]}, **how),
        tt.sensitivity(log, policies["constant"], benchmarks=(), **how),
    ]
    return [json.dumps(one.to_dict(), sort_keys=True) for one in found]
