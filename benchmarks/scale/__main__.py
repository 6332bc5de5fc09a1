"""Logs in files beside logs in memory: ``python -m benchmarks.scale``.

Writes logs of 1e6 and 1e7 rows × 12 columns (and 5e7 with ``--rows 1e6 1e7 5e7``), and runs each
job in a process of its own: an evaluation by known propensities and by a fitted model, in memory,
in files by one thread, by threads and by Dask, and a search over linear policies. Logs of more
than 2e7 rows are measured in files alone: in memory a search would take 30 GB. Each measurement is
kept under ``--cache``, so a run that was stopped goes on where it was. The summary goes to
``benchmarks/results/scale.json``; ``--quick`` takes small logs and writes it to the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale.generate import generate

OUT = Path(__file__).parents[1] / "results" / "scale.json"
JOBS = (
    "evaluate:memory",
    "evaluate:files-serial",
    "evaluate:files",
    "evaluate:files-dask",
    "evaluate-modeled:memory",
    "evaluate-modeled:files",
    "search:memory",
    "search:files",
)
MOST = 2e7
"""Rows of a log that is also worked on in memory."""
SLOWDOWN, PEAK, FLAT, SAME = 3.0, 600.0, 1.15, 1e-8
"""Goals: time in files to time in memory; MB; MB of the longest log to MB of the shortest; doses
of the policy found in files beside the one found in memory."""

Record = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short logs, to see that it runs")
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument("--cache", type=Path, default=Path(".benchmark-cache") / "scale")
    given = parser.parse_args()
    sizes = [20_000, 100_000] if given.quick else [int(rows) for rows in given.rows]
    records = [
        measured(job, generate(given.cache, n), n, given.cache) for n in sizes for job in jobs(n)
    ]
    result = {"machine": machine(), "goals": goals(records), "ratios": ratios(records)}
    result["growth"] = growth(records)
    result["measurements"] = [{k: v for k, v in r.items() if k != "found"} for r in records]
    out = given.cache / "scale.json" if given.quick else OUT
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    show(result)
    print(out)


def jobs(rows: int) -> tuple[str, ...]:
    """Return what is measured on a log of so many rows."""
    return JOBS if rows <= MOST else tuple(job for job in JOBS if job.endswith(":files"))


def growth(records: list[Record]) -> list[Record]:
    """Return time for each row, and memory, of the jobs in files over those of the shortest log."""
    of = {(r["task"], r["rows"]): r for r in records if r["place"] == "files"}
    shortest = min(rows for _, rows in of)
    return [
        {
            "task": task,
            "rows": rows,
            "cpu_per_row_ratio": r["cpu"] / rows / (of[task, shortest]["cpu"] / shortest),
            "peak_ratio": r["peak_mb"] / of[task, shortest]["peak_mb"],
        }
        for (task, rows), r in of.items()
        if rows > shortest
    ]


def measured(job: str, folder: Path, rows: int, cache: Path) -> Record:
    """Return the record of one job, from the cache if it is there."""
    file = cache / f"{job.replace(':', '-')}-{rows}.json"
    if not file.exists():
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "benchmarks.scale.measure", job, str(folder)]
        done = subprocess.run(  # noqa: S603
            command, env=environment, check=True, capture_output=True, text=True
        )
        file.write_text(done.stdout.strip().splitlines()[-1], encoding="utf-8")
    record: Record = json.loads(file.read_text(encoding="utf-8"))
    print(f"{job:24} {rows:>11,} rows {record['wall']:8.1f} s", flush=True)
    return record


def ratios(records: list[Record]) -> list[Record]:
    """Return time and memory of each job in files over those of the same rows in memory."""
    by = {(r["task"], r["place"], r["rows"]): r for r in records}
    return [
        {
            "task": task,
            "place": place,
            "rows": rows,
            "wall_ratio": record["wall"] / by[task, "memory", rows]["wall"],
            # The processors that Dask's workers use are not counted.
            "cpu_ratio": None
            if place == "files-dask"
            else record["cpu"] / by[task, "memory", rows]["cpu"],
            "rows_per_cpu_second": rows / record["cpu"],
            "peak_mb": max(record["peak_mb"], record["peak_mb_of_a_worker"]),
            "difference": difference(record["found"], by[task, "memory", rows]["found"]),
        }
        for (task, place, rows), record in by.items()
        if place != "memory" and rows <= MOST
    ]


def difference(a: Record, b: Record) -> float:
    """Return the largest difference of the numbers found: doses of a policy, or an estimate."""
    if "doses" in a:
        return float(np.max(np.abs(np.subtract(a["doses"], b["doses"]))))
    return max(abs(a[name] - b[name]) for name in a)


def goals(records: list[Record]) -> list[Record]:
    """Return what must hold at the longest log that was also in memory, and what was measured."""
    sizes = [r["rows"] for r in records if r["place"] == "memory"]
    longest, shortest = max(sizes), min(sizes)
    of = {
        (r["task"], r["place"], r["rows"]): r for r in [*ratios(records)] if r["place"] == "files"
    }
    found = []
    for task in ("evaluate", "evaluate-modeled"):
        here, before = of[task, "files", longest], of[task, "files", shortest]
        found += [
            goal(f"{task}: CPU time over that in memory", here["cpu_ratio"], SLOWDOWN),
            goal(f"{task}: peak MB", here["peak_mb"], PEAK),
            goal(
                f"{task}: peak over the shortest log's", here["peak_mb"] / before["peak_mb"], FLAT
            ),
        ]
    search, before = of["search", "files", longest], of["search", "files", shortest]
    growth = search["peak_mb"] / before["peak_mb"]
    found.append(goal("search: peak MB", search["peak_mb"], PEAK))
    found.append(goal("search: peak over the shortest log's", growth, FLAT))
    found.append(goal("search: doses beside those in memory", search["difference"], SAME))
    return found


def goal(name: str, measured: float, limit: float) -> Record:
    return {"goal": name, "measured": measured, "at_most": limit, "met": measured <= limit}


def machine() -> Record:
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def show(result: Record) -> None:
    for r in result["ratios"]:
        cpu = "  —  " if r["cpu_ratio"] is None else f"{r['cpu_ratio']:5.2f}"
        print(
            f"{r['task']:18}{r['place']:14}{r['rows']:>12,}  wall ×{r['wall_ratio']:5.2f}  "
            f"CPU ×{cpu}  {r['peak_mb']:6.0f} MB  |Δ| {r['difference']:.1e}"
        )
    for g in result["growth"]:
        print(
            f"{g['task']:18}{g['rows']:>12,} rows: CPU a row ×{g['cpu_per_row_ratio']:.2f}, "
            f"memory ×{g['peak_ratio']:.2f} of the shortest log's"
        )
    for g in result["goals"]:
        met = "met" if g["met"] else "NOT met"
        print(f"{g['goal']:48} {g['measured']:10.3g}  at most {g['at_most']:g}  {met}")


if __name__ == "__main__":
    main()
