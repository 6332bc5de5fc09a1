from __future__ import annotations

import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS = (4_000, 6_000, 1_500, 7_000, 5_500)  # of each file
LOOPBACK = "127.0.0.1"


@pytest.fixture(scope="session")
def spark():
    sql = pytest.importorskip("pyspark.sql", reason="Spark is tested by `make test-spark`")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = LOOPBACK
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.driver.bindAddress", LOOPBACK)
        .config("spark.driver.host", LOOPBACK)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .config(
            "spark.sql.execution.arrow.maxRecordsPerBatch", "700"
        )  # cuts where titrant does not
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A log in files of different lengths: x ~ N(0, I), t = x₀/2 + N(0, 1), a quadratic loss."""
    folder = tmp_path_factory.mktemp("log")
    rng = np.random.default_rng(7)
    paths = []
    for number, n in enumerate(ROWS):
        x = rng.standard_normal((n, 2))
        z = rng.standard_normal(n)
        t = 0.5 * x[:, 0] + z
        columns = {
            "age": x[:, 0],
            "body mass": x[:, 1],
            "dose": t,
            "loss": (t - 0.3 * x[:, 1]) ** 2 + 0.5 * rng.standard_normal(n),
            "density": np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi),
        }
        paths.append(str(folder / f"{number}.parquet"))
        pq.write_table(pa.table(columns), paths[-1])
    return paths
