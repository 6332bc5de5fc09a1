"""Goal 9: what importing costs, each time in a fresh interpreter."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

from benchmarks.optimize import Line

COMMANDS = {
    "numpy": [sys.executable, "-c", "import numpy"],
    "import titrant": [sys.executable, "-c", "import titrant"],
    "titrant --help": [sys.executable, "-m", "titrant.cli", "--help"],
}


def imports(repeats: int) -> list[Line]:
    """Return the least CPU time of importing, in that of importing numpy."""
    least = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(repeats):
        for name, command in COMMANDS.items():
            least[name] = min(least[name], _cpu(command))
    return [
        Line(
            9,
            name,
            seconds / least["numpy"],
            "≤ 1.5 × import numpy",
            bool(seconds / least["numpy"] <= 1.5),
            {"seconds": seconds},
        )
        for name, seconds in list(least.items())[1:]
    ]


def _cpu(command: list[str]) -> float:
    """Return the CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
