"""Run the calibration benchmark: ``python -m benchmarks.coverage``.

Each cell (design, n, estimator) is drawn in parts of 25 replications; a finished part is kept
under ``--cache``, so a run that was stopped goes on where it was. The summary is written when
all parts are there.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from typing import Any

PART = 25
SIZES = (200, 1000, 5000)
LARGEST_UNSOUND = 1000
"""Designs made to fail show what they have to show by then."""
HERE = Path(__file__).parent


def main() -> None:
    """Parse, run the parts that are missing, and write the summary."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--cache", type=Path, default=Path(".benchmark-cache/coverage"))
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    arguments = parser.parse_args()
    parts = parts_of(arguments.replications, arguments.sizes, arguments.seed)
    run_missing(parts, arguments.cache, arguments.workers)
    summary = summary_of(parts, arguments.cache, arguments.replications, arguments.seed)
    write(arguments.out, summary)
    print(f"{arguments.out}: {len(summary['cells'])} cells")


def parts_of(
    replications: int, sizes: list[int], seed: int
) -> list[tuple[int, int, str, int, int]]:
    """Return (case, n, estimator, first replication, seed) of every part, large logs last."""
    from benchmarks.coverage.designs import CASES  # noqa: PLC0415
    from benchmarks.coverage.replication import ESTIMATORS  # noqa: PLC0415

    firsts = range(0, replications, PART)
    cells = product(firsts, sorted(sizes), range(len(CASES)), ESTIMATORS)
    return [
        (case, n, estimator, first, seed)
        for first, n, case, estimator in cells
        if CASES[case].sound or n <= LARGEST_UNSOUND
    ]


def run_missing(parts: list[tuple[int, int, str, int, int]], cache: Path, workers: int) -> None:
    """Run the parts that the cache does not hold, with a bar on stderr."""
    from rich.progress import Progress  # noqa: PLC0415

    missing = [part for part in parts if not (cache / file_name(part)).exists()]
    cache.mkdir(parents=True, exist_ok=True)
    with Progress() as bar, ProcessPoolExecutor(workers, initializer=_quiet) as pool:
        task = bar.add_task("replications", total=len(parts), completed=len(parts) - len(missing))
        for done in as_completed([pool.submit(run_part, part, cache) for part in missing]):
            done.result()
            bar.advance(task)


def _quiet() -> None:
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    warnings.simplefilter("ignore")


def run_part(part: tuple[int, int, str, int, int], cache: Path) -> None:
    """Run 25 replications of one cell and keep them."""
    from benchmarks.coverage.designs import CASES  # noqa: PLC0415
    from benchmarks.coverage.replication import replicate  # noqa: PLC0415

    case, n, estimator, first, seed = part
    records = [replicate(CASES[case], n, estimator, first + r, seed) for r in range(PART)]
    write(cache / file_name(part), records)


def file_name(part: tuple[int, int, str, int, int]) -> str:
    """Return where a part is kept."""
    case, n, estimator, first, seed = part
    return f"{seed}-{case}-{n}-{estimator.replace(' ', '_')}-{first}.json"


def write(path: Path, content: Any) -> None:
    """Write JSON under a temporary name, then rename: a stopped run leaves no half file."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=1 if isinstance(content, dict) else None))
    partial.replace(path)


def summary_of(
    parts: list[tuple[int, int, str, int, int]], cache: Path, replications: int, seed: int
) -> dict[str, Any]:
    """Return the summary of every cell."""
    from benchmarks.coverage.designs import CASES  # noqa: PLC0415
    from benchmarks.coverage.summary import summarize  # noqa: PLC0415

    cells: dict[tuple[int, int, str], list[dict[str, Any]]] = {}
    for part in parts:
        cells.setdefault(part[:3], []).extend(json.loads((cache / file_name(part)).read_text()))
    return {
        "command": f"python -m benchmarks.coverage --replications {replications} --seed {seed}",
        "cells": [
            {
                "design": CASES[case].name,
                "smooth": CASES[case].smooth,
                "sound": CASES[case].sound,
                "n": n,
                "estimator": estimator,
                **summarize(CASES[case].truth(), records),
            }
            for (case, n, estimator), records in cells.items()
        ],
    }


if __name__ == "__main__":
    main()
