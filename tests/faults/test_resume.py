"""A long search that is killed goes on from its state to the same policy, bit for bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from faults.gates import Gates, kill, wait_until
from faults.logs import write

LONG = 180.0  # seconds: a test that reaches it has failed


def search(log, state, result, gates=None):
    words = [sys.executable, "-m", "faults.long_search", log, state, result]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    every = [*words, *([] if gates is None else [gates])]
    return subprocess.Popen(list(map(str, every)), env=environment)


@pytest.mark.long
def test_a_killed_search_goes_on(tmp_path):
    log, state, result = tmp_path / "log", tmp_path / "state", tmp_path / "result.json"
    write(log, 4)
    (tmp_path / "gates").mkdir()
    gates = Gates(str(tmp_path / "gates"))
    # One search runs to its end, with a state of its own.
    whole = search(log, tmp_path / "other", tmp_path / "whole.json")
    killed = search(log, state, result, gates.folder)
    try:
        gates.wait_for("middle")
        kill(killed.pid)
        assert killed.wait(LONG) < 0
        assert not result.exists()
        assert len(list(state.glob("search-*.npz"))) == 1
        resumed = search(log, state, result)
        assert resumed.wait(LONG) == 0
        assert whole.wait(LONG) == 0
    finally:
        for process in (whole, killed):
            process.kill()
            process.wait()
    one, other = (json.loads(p.read_text()) for p in (result, tmp_path / "whole.json"))
    # It did go on rather than begin anew.
    assert one.pop("passes") < other.pop("passes")
    # JSON keeps every bit of a number.
    assert one == other


def command(log, folder):
    words = [sys.executable, "-m", "titrant", "learn", log, "--treatment", "dose", "--outcome",
             "loss", "--context", "age,bmi", "--propensity", "q", "--procedure", "cpo",
             "--allow-untrusted", "--in-parts", "--checkpoint", folder / "state",
             "-o", folder / "policy.json", "--json", folder / "result.json"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    folder.mkdir(exist_ok=True)
    with (folder / "said.txt").open("a") as said:
        return subprocess.Popen(list(map(str, words)), env=environment, stdout=said, stderr=said)


@pytest.mark.long
def test_a_killed_command_goes_on(tmp_path):
    log = tmp_path / "log"
    write(log, 4)
    whole, killed = command(log, tmp_path / "whole"), command(log, tmp_path / "killed")
    folder = tmp_path / "killed"
    try:
        wait_until(lambda: list((folder / "state").glob("search-*.npz")), "no state")
        kill(killed.pid)
        assert killed.wait(LONG) < 0
        assert not (folder / "policy.json").exists()
        assert command(log, folder).wait(LONG) == 0
        assert whole.wait(LONG) == 0
    finally:
        for process in (whole, killed):
            process.kill()
            process.wait()
    for name in ("policy.json", "result.json"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
