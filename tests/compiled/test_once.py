"""Several processes that need a compiled function compile it once; nobody waits for ever.

Who has compiled a function and who finds it on disk compute the same bits.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time

import pytest

from titrant.compiled import once

LISTED = """
import numpy as np
from titrant.compiled.decorators import listed
flags, which = np.zeros(64, np.uint8), np.zeros(64, np.int64)
flags[5] = 1
assert listed(flags, 64, which) == 1 and which[0] == 5
print(sum(listed.stats.cache_misses.values()), sum(listed.stats.cache_hits.values()))
"""
# Products of two bandwidths' weights: a loop that may reorder sums inside one that may not.
PRODUCTS = """
import numpy as np
from titrant.compiled.path import products
h = np.geomspace(0.3, 3.0, 21)
bins = np.random.default_rng(1).uniform(size=(21, 3, 5))
found = products(bins, np.array([0.0, 0.75, 0.1]), h, 2)
print(sum(products.stats.cache_hits.values()), found.tobytes().hex())
"""


def started(code, folder):
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    environment["NUMBA_CACHE_DIR"] = str(folder)
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


def test_processes_that_start_together_compile_once(tmp_path):
    runs = [started(LISTED, tmp_path) for _ in range(2)]
    told = [tuple(map(int, run.communicate()[0].split())) for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert sorted(told) == [(0, 1), (1, 0)]  # misses and hits


def test_the_first_call_and_the_next_process_have_the_same_bits(tmp_path):
    (first, here), (second, there) = (
        started(PRODUCTS, tmp_path).communicate()[0].split() for _ in range(2)
    )
    assert (first, second) == (b"0", b"1")  # compiled, and found on disk
    assert here == there


def test_who_waits_too_long_goes_on_without_the_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(once, "WAIT", 0.1)
    with (tmp_path / once.LOCK).open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        compiling = once.Compiling()
        with compiling.function():
            assert compiling.begin(str(tmp_path))
            assert not compiling.begin(str(tmp_path))  # what it calls: the lock is not asked again


def test_the_lock_is_given_back_also_after_an_error(tmp_path):
    compiling = once.Compiling()

    def fail() -> None:
        with compiling.function(), compiling.function():
            compiling.begin(str(tmp_path))
            raise ValueError("no such type")

    with pytest.raises(ValueError, match="no such type"):
        fail()
    with (tmp_path / once.LOCK).open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_folder_without_locks_is_no_error(tmp_path):
    compiling = once.Compiling()
    with compiling.function():
        assert compiling.begin(str(tmp_path / "nowhere"))


def test_compiling_that_takes_long_is_told_once(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(once, "PATIENCE", 0.01)
    compiling = once.Compiling()
    for _ in range(2):
        with compiling.function():
            compiling.begin(str(tmp_path))
            time.sleep(0.2)
    assert [record.message for record in caplog.records] == [once.SAID]


def test_what_is_quick_is_not_told(tmp_path, caplog):
    compiling = once.Compiling()
    with compiling.function():
        compiling.begin(str(tmp_path))
    assert not caplog.records
