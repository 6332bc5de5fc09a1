"""Workers run the titrant of the process that they work for, or are refused by name."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import zipfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import titrant
from faults.copies import altered, look_first_in
from titrant.errors import ExecutionError
from titrant.execute import Engine
from titrant.execute.engine import Task
from titrant.execute.installed import installed


def asked_in(path):
    """What a process with another path says it has installed."""
    code = "from titrant.execute.installed import installed; print(installed())"
    line = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(path)!r}); {code}"]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip()


def test_it_is_the_version_and_a_hash_of_the_source(tmp_path):
    assert re.fullmatch(rf"{re.escape(titrant.__version__)} \(source [0-9a-f]{{16}}\)", installed())
    here = Path(titrant.__file__).parent.parent
    assert asked_in(here) == installed()
    # One comment makes another source.
    assert asked_in(altered(tmp_path)) != installed()


def test_a_package_in_a_zip_file_is_the_same(tmp_path):
    here = Path(titrant.__file__).parent
    with zipfile.ZipFile(tmp_path / "titrant.zip", "w") as archive:
        for file in (*here.rglob("*.py"), *here.rglob("*.pyi")):
            archive.write(file, file.relative_to(here.parent))
    assert asked_in(tmp_path / "titrant.zip") == installed()


def test_processes_with_another_titrant_are_refused(tmp_path):
    pool = ProcessPoolExecutor(
        1, get_context("spawn"), initializer=look_first_in, initargs=(altered(tmp_path),)
    )
    with pool, pytest.raises(ExecutionError) as caught:
        Engine(executor=pool).add_up(abs, [1, 2])
    ours, theirs = re.findall(r"\(source \w+\)", str(caught.value))
    assert ours in installed()
    assert theirs not in installed()


def test_processes_with_the_same_titrant_are_not():
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert Engine(executor=pool).add_up(abs, [-1, 2]) == 3


def test_the_source_is_read_once_in_a_process(monkeypatch):
    sent = pickle.dumps(Task(abs, pin=False))

    def read_again(_):
        raise AssertionError

    monkeypatch.setattr("titrant.execute.installed.files", read_again)
    assert pickle.loads(sent)(-3) == 3  # noqa: S301
    assert pickle.dumps(Task(abs, pin=False)) == sent
