"""titrant in a folder that cannot be written to, for a user without a home, as in a container."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import titrant
from sweeps import long

# From 131,072 rows on loops are compiled.
EVALUATE = """
import sys, numpy as np, titrant as tt
rng = np.random.default_rng(0)
x, t = rng.normal(size=132_000), rng.normal(size=132_000)
log = tt.LoggedData(x[:, None], t, (t - x) ** 2 + rng.normal(size=132_000))
found = tt.evaluate(log, tt.Constant(0.2), estimator=tt.SelfNormalized(), bandwidth=0.3)
assert "titrant.compiled.decorators" in sys.modules
print(tt.__file__, found.value)
"""
LIST = """
import numpy as np, titrant as tt
from titrant.compiled.decorators import listed
flags, which = np.zeros(64, np.uint8), np.zeros(64, np.int64)
flags[5] = 1
print(tt.__file__, listed(flags, 64, which))
"""
# A user whom nobody knows, who may read whatever the superuser may but write nothing.
STRANGER = (
    *("setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)
HOMES = [({}, EVALUATE), ({"HOME": "/nonexistent"}, LIST)]


@pytest.mark.parametrize(("home", "code"), [*long(HOMES[0]), HOMES[1]])
def test_a_read_only_installation_works_and_leaves_nothing(tmp_path, home, code):
    package, work = tmp_path / "installed" / "titrant", tmp_path / "work"
    there = Path(titrant.__file__).parent
    shutil.copytree(there, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (package, *(one for one in package.rglob("*") if one.is_dir())):
        folder.chmod(0o555)
    work.mkdir()
    work.chmod(0o777)
    # What is shown is that loops are compiled, so the pass that does without is told nothing.
    left_out = {"HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT"}
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    # The superuser may write anywhere, so somebody else does the work.
    stranger = STRANGER if os.geteuid() == 0 else ()
    run = subprocess.run(
        [*stranger, sys.executable, "-c", code],
        env={**environment, **home, "PYTHONPATH": str(package.parent)},
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert not run.stderr
    where, found = run.stdout.split()
    assert Path(where).parent == package
    assert float(found) > 0.0
    assert not list(package.rglob("__pycache__"))
    assert not list(work.iterdir())  # numba would make a folder called `~`
