"""Rows 7 to 9: the default call over files, beside reading them, the same in memory, and Dask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.scale.generate import generate
from benchmarks.speed import job
from benchmarks.speed.measuring import Line, at_most, told

CACHE = Path(".benchmark-cache") / "scale"
MEMORY = 600
WORKERS = 2


def measured(rows: int, call: str, **more: Any) -> dict[str, Any]:
    """Return what one job on files of so many rows took, after a call on the first of them."""
    folder = str(generate(CACHE, rows).resolve())
    found = job.run({"call": call, "folder": folder, "warm": True} | more)
    return found | {"seconds": min(found["cpu"])}


def beside_reading(rows: int) -> list[Line]:
    """Row 7."""
    reading, ours = measured(rows, "read", times=3), measured(rows, "evaluate")
    ratio = ours["seconds"] / reading["seconds"]
    work = f"evaluate() over Parquet, {rows:,} rows × 12"
    more = {"seconds": ours["seconds"], "peer": reading["seconds"]}
    return [
        at_most(7, work, ratio, 15, "× reading its columns once", **more),
        at_most(7, f"{work}: peak memory", ours["peak_mb"], MEMORY, "MB"),
    ]


def beside_memory(rows: int) -> list[Line]:
    """Row 8."""
    loaded, ours = measured(rows, "loaded"), measured(rows, "evaluate")
    ratio = loaded["seconds"] / ours["seconds"]
    work = f"evaluate() in memory, {rows:,} rows × 12"
    more = {"seconds": loaded["seconds"], "peer": ours["seconds"]}
    return [at_most(8, work, ratio, 1.1, "× over files", **more)]


def beside_threads(rows: int) -> list[Line]:
    """Row 9."""
    threads, dask = measured(rows, "evaluate"), measured(rows, "evaluate", workers=WORKERS)
    ratio = dask["seconds"] / threads["seconds"]
    work = f"evaluate() by {WORKERS} workers of Dask, {rows:,} rows × 12"
    more = {"seconds": dask["seconds"], "peer": threads["seconds"]}
    return [
        at_most(9, work, ratio, 1.3, "× by threads", **more),
        told(f"{work}: peak memory of one process", dask["peak_mb"], "MB"),
    ]
