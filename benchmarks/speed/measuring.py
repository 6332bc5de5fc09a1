"""How all is measured: least CPU seconds of contestants that take turns, and a line for each."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
IMPORT_NUMPY = (sys.executable, "-c", "import numpy")


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    goal: int
    """0 is for information."""
    work: str
    ratio: float
    asked: str
    passed: bool
    details: dict[str, Any]


def at_most(goal: int, work: str, ratio: float, limit: float, of: str, **details: Any) -> Line:
    """Return a line whose ratio is to be small."""
    return Line(goal, work, ratio, f"≤ {limit:g} {of}", ratio <= limit, details)


def at_least(goal: int, work: str, ratio: float, limit: float, of: str, **details: Any) -> Line:
    """Return a line whose ratio is to be large."""
    return Line(goal, work, ratio, f"≥ {limit:g} {of}", ratio >= limit, details)


def told(work: str, ratio: float, of: str, **details: Any) -> Line:
    """Return a line for information."""
    return Line(0, work, ratio, of, passed=True, details=details)


def in_turn(
    contestants: list[Callable[[], Any]], repeats: int, *, warm: bool = True
) -> tuple[list[float], list[Any]]:
    """Return the least CPU seconds of each contestant, and what it returned.

    All run once before, to compile and to fill caches, unless that was done on fewer rows.
    """
    results = [run() for run in contestants] if warm else [None] * len(contestants)

    def timed(k: int) -> float:
        begun = time.process_time()
        results[k] = contestants[k]()
        return time.process_time() - begun

    return least_in_turn([partial(timed, k) for k in range(len(contestants))], repeats), results


def commands_in_turn(commands: list[tuple[str, ...]], repeats: int, folder: Path) -> list[float]:
    """Return the least CPU seconds of each command, every time in a fresh interpreter."""
    return least_in_turn([partial(cpu, command, folder) for command in commands], repeats)


def least_in_turn(contestants: list[Callable[[], float]], repeats: int) -> list[float]:
    """Return the least of the seconds that each contestant says it took."""
    least = [float("inf")] * len(contestants)
    for _ in range(repeats):
        for k, seconds in enumerate(contestants):
            least[k] = min(least[k], seconds())
    return least


def cpu(command: tuple[str, ...], folder: Path, tree: Path = ROOT) -> float:
    """Return the CPU seconds of a command; one that fails has not done its work."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(  # noqa: S603
        command, check=False, cwd=folder, env=environment(tree), capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def environment(tree: Path = ROOT, **more: str) -> dict[str, str]:
    """Return the variables of a process that works on one thread and finds this checkout.

    The sources may be those of another tree.

    It keeps the bytecode of the checkout: an installed package is not compiled at every start.
    """
    path = f"{tree / 'src'}{os.pathsep}{ROOT}"
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    given = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return given | one | {"PYTHONPATH": path} | more


def source(tree: Path = ROOT) -> str:
    """Return which version of the source is measured; with "+" if it has changes of its own."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(tree), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603

    return git("rev-parse", "--short", "HEAD:src/titrant") + (
        "+" if git("status", "--porcelain", "src/titrant") else ""
    )


def today() -> str:
    """Return the date of a measurement."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def machine() -> dict[str, str]:
    """Return what the numbers were measured on."""
    info = Path("/proc/cpuinfo")
    names = [x for x in info.read_text().splitlines() if "model name" in x] if info.exists() else []
    return {
        "processor": names[0].split(":")[1].strip() if names else platform.processor(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "scipy", "scikit-learn")},
    }
