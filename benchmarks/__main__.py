"""Measure every goal of speed: ``python -m benchmarks``, a few minutes; ``--quick`` in three.

Each number is a ratio of least CPU times of contestants that took turns in one process on one
thread. The table goes to ``benchmarks/results/speed.json`` and from there to the page on
performance; ``--quick`` measures less and writes nothing.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from benchmarks import optimize
from benchmarks.optimize import Line, machine
from benchmarks.speed import (
    default_models,
    evaluating,
    imports,
    intervals,
    out_of_core,
    page,
    plug_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable

OUT = Path(__file__).parent / "results" / "speed.json"


def steps(*, quick: bool) -> dict[str, Callable[[], list[Line]]]:
    """Return what is measured, in its order."""
    repeats, few = (5, 2) if quick else (60, 12)
    sizes = (10**5, 10**6) if quick else (10**5, 10**6, 10**7)
    return {
        "evaluation": lambda: [
            *evaluating.evaluating(10**6, repeats),
            *evaluating.whole_call(10**6, 1 if quick else 3),
        ],
        "bandwidth path": lambda: evaluating.paths(10**6, few),
        "search": lambda: optimize.measure(quick=quick),
        "intervals": lambda: [
            *intervals.delta(10**5, few),
            *intervals.bootstrap(10**4, 1000, few),
        ],
        "plug-in": lambda: plug_in.plug_in(1000, 100, few),
        "imports": lambda: imports.imports(repeats if quick else 20),
        "out of core": out_of_core.out_of_core,
        "default models": lambda: default_models.default_models(1 if quick else 3),
        "growth": lambda: evaluating.growth(sizes, 2 if quick else 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="measure less, write nothing")
    parser.add_argument("--only", nargs="*", help="some steps; the others keep their last results")
    options = parser.parse_args()
    done = [] if options.quick or options.only is None or not OUT.exists() else last_results()
    with threadpool_limits(1):
        for name, step in steps(quick=options.quick).items():
            if options.only and name not in options.only:
                continue
            lines = step()
            show(lines)
            done = [x for x in done if x["step"] != name]
            done += [{"step": name} | asdict(line) for line in lines]
            if not options.quick:
                write(done)


def last_results() -> list[dict[str, object]]:
    """Return the lines of the last table."""
    lines: list[dict[str, object]] = json.loads(OUT.read_text())["lines"]
    return lines


def write(lines: list[dict[str, object]]) -> None:
    """Write the table and the page made from it."""
    OUT.parent.mkdir(exist_ok=True)
    table = {
        "command": "python -m benchmarks",
        "machine": machine(),
        "lines": sorted(lines, key=lambda line: str(line["goal"]).zfill(2)),
    }
    OUT.write_text(json.dumps(table, indent=1) + "\n")
    page.write(table)


def show(lines: list[Line]) -> None:
    """Print what was measured."""
    for line in lines:
        mark = "pass" if line.passed else "FAIL"
        print(
            f"{mark}  goal {line.goal:2}  {line.ratio:8.2f}  ({line.asked})  {line.work}",
            flush=True,
        )


if __name__ == "__main__":
    main()
