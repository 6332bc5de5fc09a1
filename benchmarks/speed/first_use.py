"""Rows 4 and 5: the first call after installation, and one where nothing can be written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.speed import job
from benchmarks.speed.measuring import IMPORT_NUMPY, ROOT, Line, at_most, commands_in_turn
from benchmarks.speed.measuring import environment as usual

LIMITS = {
    ("evaluate", 5_000): 1,
    ("evaluate", 40_000): 10,
    ("evaluate", 1_000_000): 60,
    ("learn", 5_000): 25,
}
"""What the first call may take beyond the second, in imports of numpy."""
STRANGER = (
    *("setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)
"""A user who may read whatever the superuser may but write nothing."""
COMPILES = "titrant compiles its loops"


def first_use(call: str, rows: int) -> list[Line]:
    """Row 4."""
    (numpy,) = commands_in_turn([IMPORT_NUMPY], 5, ROOT)
    with tempfile.TemporaryDirectory() as empty:
        work = {"call": call, "rows": rows, "times": 2}
        first, second = job.run(work, NUMBA_CACHE_DIR=empty)["cpu"]
    what = f"{call}() for the first time, n = {rows:,}: seconds beyond the second time"
    ratio, more = (first - second) / numpy, {"seconds": [first, second], "numpy": numpy}
    return [at_most(4, what, ratio, LIMITS[call, rows], "× import numpy", **more)]


def read_only() -> list[Line]:
    """Row 5: the lines that a call says where neither the package nor a home can be written to."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "installed", "titrant")
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src" / "titrant", package, ignore=ignored)
        for one in (Path(folder), package, *package.rglob("*")):
            one.chmod(0o555)
        path = f"{package.parent}{os.pathsep}{ROOT}"
        found = usual(PYTHONPATH=path, HOME="/nonexistent")
        environment = {k: v for k, v in found.items() if k not in {"NUMBA_CACHE_DIR", "TMPDIR"}}
        work: dict[str, Any] = {"call": "plain", "rows": 132_000}
        done = subprocess.run(  # noqa: S603
            [
                *(STRANGER if os.geteuid() == 0 else ()),
                *(sys.executable, "-B", "-m", "benchmarks.speed.job", json.dumps(work)),
            ],
            check=False,
            capture_output=True,
            text=True,
            env=environment,
            cwd=package.parent,
        )
        for one in (Path(folder), *Path(folder).rglob("*")):
            one.chmod(0o755)
    said = [line for line in done.stderr.splitlines() if COMPILES not in line]
    ended = float(len(said)) if done.returncode == 0 else float("inf")
    what = "evaluate(), n = 132,000, package and home read-only: lines said"
    what += ", besides that loops are compiled"
    return [at_most(5, what, ended, 0, "lines, and it works")]
