"""Measure whole commands: ``python -m benchmarks.speed.commands``.

Each runs in a fresh interpreter on one thread. Given another checkout (``--before FOLDER``) it runs
there in turn, and the table tells how many times less CPU a command takes now. The least of
``--repeats`` runs counts; the first fills the cache of compiled code. The table goes to
``benchmarks/results/profiles.json`` and from there to the page on performance.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.optimize import machine

if TYPE_CHECKING:
    from titrant.paper.warfarin_table import Cohort

HERE = Path(__file__).parents[2]
OUT = HERE / "benchmarks" / "results" / "profiles.json"
QUICK = ["--quick", "--workers", "1", "--fresh", "--out", "results", "--simulated"]
COLUMNS = ["--treatment", "dose", "--outcome", "loss", "--propensity", "density"]
COMMANDS = {
    "demo": ["demo"],
    "learn": ["learn", "warfarin.csv", *COLUMNS, "--bounds", "0,"],
    "reproduce figure-4": ["reproduce", "figure-4", *QUICK],
    "reproduce figure-5": ["reproduce", "figure-5", *QUICK],
    "reproduce table-1": ["reproduce", "table-1", *QUICK],
    "reproduce theory": ["reproduce", "theory", *QUICK],
}
THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}


def main() -> None:
    """Parse, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="another checkout to compare with")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    options = parser.parse_args()
    places = {"now": HERE} | ({"before": options.before.resolve()} if options.before else {})
    table = json.loads(OUT.read_text()) if OUT.exists() else {"lines": {}}
    table |= {"command": "python -m benchmarks.speed.commands", "machine": machine()}
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder, "warfarin.csv"))
        for name in options.only:
            table["lines"][name] = line = measure(COMMANDS[name], places, folder, options.repeats)
            print(f"{name}: {line}", flush=True)
            OUT.write_text(json.dumps(table, indent=1) + "\n")


def measure(
    command: list[str], places: dict[str, Path], folder: str, repeats: int
) -> dict[str, Any]:
    """Return the least CPU seconds of a command in each place, and their ratio."""
    least = dict.fromkeys(places, float("inf"))
    for _ in range(repeats):
        for name, place in places.items():
            least[name] = min(least[name], cpu(command, place, folder))
    line: dict[str, Any] = {f"seconds_{name}": seconds for name, seconds in least.items()}
    if "before" in places:
        line |= {"ratio": least["before"] / least["now"], "before": commit(places["before"])}
    return line


def cpu(command: list[str], place: Path, folder: str) -> float:
    """Return the CPU seconds of a command of the code in a checkout; a refusal counts as an end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | THREADS | {"PYTHONPATH": str(place / "src")}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "titrant.cli", *command],
        check=False,
        cwd=folder,
        env=environment,
        **quiet,
    )
    if done.returncode not in {0, 1}:
        raise SystemExit(f"`titrant {' '.join(command)}` in {place} ended with {done.returncode}.")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commit(place: Path) -> str:
    """Return the commit that a checkout is at."""
    command = ["git", "-C", str(place), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603


def write_log(path: Path) -> None:
    """Write a log of the warfarin study's size: four in five patients, 81 contexts."""
    cohort = patients()
    log = cohort.log(cohort.split(0)[0], 0)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*log.names, "dose", "loss", "density"])
        for x, *rest in zip(log.context, log.treatment, log.outcome, log.propensity, strict=True):
            rows.writerow([*map(repr, x.tolist()), *(repr(float(value)) for value in rest)])


def patients() -> Cohort:
    """Return the patients of $TITRANT_WARFARIN, or made-up ones."""
    from titrant.paper.warfarin_table import load_warfarin, simulated_cohort  # noqa: PLC0415

    table = os.environ.get("TITRANT_WARFARIN")
    return load_warfarin(table) if table else simulated_cohort()


if __name__ == "__main__":
    main()
