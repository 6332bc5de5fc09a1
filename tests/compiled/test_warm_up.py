"""`titrant warm-up` leaves nothing to compile to default calls, and there is little to compile."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

MOST = 100
"""Specializations that default calls have compiled, 93 as counted: a new one shows here."""
CALLS = """
import numpy as np, titrant as tt
from titrant.compiled import FEWEST, Loop
rng = np.random.default_rng(0)
def log(n, **more):
    x, e = rng.standard_normal((n, 2)), rng.standard_normal(n)
    q = np.exp(-0.5 * e**2) / np.sqrt(2 * np.pi)
    return tt.LoggedData(x, e, (e - 0.3 * x[:, 0]) ** 2, q, **more)
for bounds in (None, (-9.0, 9.0)):
    many = log(FEWEST[Loop.PATH] + 7, bounds=bounds)
    tt.compare(many, {"a": tt.Constant(0.1), "b": tt.Constant(0.2)})
tt.PolicyLearner().fit(log(400))
"""


@pytest.mark.long
def test_default_calls_find_everything_compiled(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    environment["NUMBA_CACHE_DIR"] = str(tmp_path)

    def run(*words: str) -> set[Path]:
        subprocess.run([sys.executable, *words], env=environment, check=True, capture_output=True)
        return set(tmp_path.rglob("*.nbc"))

    compiled = run("-m", "titrant", "warm-up")
    assert 0 < len(compiled) <= MOST
    assert run("-c", CALLS) == compiled
