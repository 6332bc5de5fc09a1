"""Measure whole default calls beside what people would run instead: ``python -m benchmarks``.

Each number is a ratio of least CPU times of contestants that took turns on one thread. Every step
is written to ``benchmarks/results/speed.json``, and the page on performance from it, when it ends;
a run that was stopped goes on where it was, unless the source has changed. ``--only`` takes the
numbers or names of steps and measures them anew; ``--quick`` measures less, and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from benchmarks.speed import (
    calls,
    evaluating,
    files,
    first_use,
    intervals,
    learning,
    page,
    paths,
    plug_in,
    search,
    starting,
)
from benchmarks.speed.measuring import Line, machine, source, today

if TYPE_CHECKING:
    from collections.abc import Callable

OUT = Path(__file__).parent / "results" / "speed.json"
LONG = ("2-60", "4-evaluate-1000000", "4-learn-5000", "11")
"""Steps that --quick leaves out: there is no small form of them."""


def steps(*, quick: bool) -> dict[str, Callable[[], list[Line]]]:
    """Return what is measured; a number is a row of the table of aims."""
    few, n = (1, 100_000) if quick else (3, 1_000_000)
    found: dict[str, Callable[[], list[Line]]] = {
        "1": lambda: evaluating.beside_self_normalized(n, 1 if quick else 2),
        "2-3": lambda: evaluating.beside_trees(n // 10, 3, 1),
        "2-60": lambda: evaluating.beside_trees(n // 10, 60, 1),
        "3": lambda: evaluating.beside_numpy(10**6, few),
        **{
            f"4-{call}-{rows}": partial(first_use.first_use, call, rows)
            for call, rows in first_use.LIMITS
        },
        "5": first_use.read_only,
        "6": lambda: starting.command(few),
        "7": lambda: files.beside_reading(200_000 if quick else 10**7),
        "8": lambda: files.beside_memory(200_000 if quick else 10**6),
        "9": lambda: files.beside_threads(200_000 if quick else 2 * 10**6),
        "10": lambda: learning.beside_trees(1_000 if quick else 10_000, 1),
        "11": lambda: learning.growth(10_000, 100_000),
        "12": lambda: paths.paths(10**6, 2 * few),
        "13-search": lambda: search.measure(quick=quick),
        "13-intervals": lambda: [
            *intervals.delta(10**5, few),
            *intervals.bootstrap(10**4, 1000, few),
        ],
        "13-plug-in": lambda: plug_in.plug_in(1000, 100, few),
        "13-imports": lambda: starting.imports(3 if quick else 12),
        "13-growth": lambda: paths.growth((10**5, 3 * 10**5, 10**6)[: 2 if quick else 3], few),
    }
    for name, (rows, p) in calls.IN_PYTHON.items():
        if not quick or name == "calls-1e3-3":
            found[name] = partial(calls.in_python, rows, p)
    if quick:
        return {name: step for name, step in found.items() if name not in LONG}
    return found | {name: partial(calls.commands, n) for name, n in calls.COMMANDS.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="measure less, write nothing")
    parser.add_argument("--only", nargs="+", default=[], help="such as 4, 13-search or calls-1e3")
    options = parser.parse_args()
    kept: dict[str, Any] = json.loads(OUT.read_text())["steps"] if OUT.exists() else {}
    version = source()
    with threadpool_limits(1):
        for name, step in steps(quick=options.quick).items():
            done = kept.get(name, {}).get("source") == version and "+" not in version
            if not wanted(name, options.only) or (done and not options.only and not options.quick):
                continue
            print(name, flush=True)
            load = os.getloadavg()[0]
            lines = step()
            show(lines)
            if not options.quick:
                found = [asdict(line) for line in lines]
                kept[name] = {"source": version, "date": today(), "load": load, "lines": found}
                write({other: kept[other] for other in steps(quick=False) if other in kept})


def wanted(name: str, only: list[str]) -> bool:
    """Return whether a step is one of those named, by its name or the beginning of it."""
    return not only or any(name == one or name.startswith(f"{one}-") for one in only)


def write(done: dict[str, Any]) -> None:
    """Write the results and the page made from them."""
    table: dict[str, Any] = {"command": "python -m benchmarks", "machine": machine()}
    table |= {"source": source(), "steps": done}
    OUT.write_text(json.dumps(table, indent=1) + "\n")
    page.write(table)


def show(lines: list[Line]) -> None:
    """Print what was measured."""
    for line in lines:
        mark = ("pass" if line.passed else "FAIL") if line.goal else "    "
        print(f"{mark}  {line.ratio:8.2f}  ({line.asked})  {line.work}", flush=True)


if __name__ == "__main__":
    main()
