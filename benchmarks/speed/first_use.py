"""Count what first use compiles: ``python -m benchmarks.speed.first_use``.

Each call runs twice in a fresh interpreter with an empty cache of compiled code. The table tells
how many specializations of titrant's functions were compiled, and the CPU seconds of the first call
beyond the second, also in those of importing numpy.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.speed.imports import COMMANDS, _cpu

CALL = """
import json, sys, tempfile, time
import numpy as np
import titrant as tt

what, n = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
x, e = rng.standard_normal((n, 3)), rng.standard_normal(n)
t = 0.5 * x[:, 0] + e
y = (t - 0.3 * x[:, 1]) ** 2 + rng.standard_normal(n)
log = tt.LoggedData(x, t, y, np.exp(-0.5 * e**2) / np.sqrt(2 * np.pi))
policy = tt.Linear(coef=[0.0, 0.3, 0.0], intercept=0.0)
if what == "files":
    import pyarrow as pa, pyarrow.parquet as pq
    folder = tempfile.TemporaryDirectory()
    table = pa.table(log.to_columns(treatment="t", outcome="y"))
    pq.write_table(table, f"{folder.name}/log.parquet")
    columns = tt.Columns(treatment="t", outcome="y", context=log.names, propensity="propensity")
    log = tt.scan_parquet(folder.name, columns)
seconds = []
for _ in range(2):
    start = time.process_time()
    tt.PolicyLearner().fit(log) if what == "learn" else tt.evaluate(log, policy)
    seconds.append(time.process_time() - start)
rooms = [m for name, m in sys.modules.items() if name.startswith("titrant.") and "compiled" in name]
functions = {id(f): f for room in rooms for f in vars(room).values() if hasattr(f, "signatures")}
count = sum(len(f.signatures) for f in functions.values())
print(json.dumps({"specializations": count, "seconds": seconds}))
"""
CALLS = (("evaluate", 5_000), ("evaluate", 40_000), ("evaluate", 1_000_000), ("files", 1_000_000),
         ("learn", 5_000))  # fmt: skip


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="200,000 rows for 1,000,000")
    quick = parser.parse_args().quick
    numpy = min(_cpu(COMMANDS["numpy"]) for _ in range(3))
    for what, n in CALLS:
        rows = min(n, 200_000) if quick else n
        found = first_use(what, rows)
        more = found["seconds"][0] - found["seconds"][1]
        print(
            f"{what:9s} {rows:9,} rows: {found['specializations']:3d} specializations; first − "
            f"second {more:5.1f} s, {more / numpy:.0f} × importing numpy",
            flush=True,
        )


def first_use(what: str, rows: int) -> dict[str, Any]:
    """Return what two calls compile and take, beginning without compiled code."""
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", CALL, what, str(rows)],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"NUMBA_CACHE_DIR": empty},
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
