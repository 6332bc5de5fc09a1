"""Every file is written as a whole or not at all, whoever else writes it, by one writer."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import titrant as tt
from titrant import _writing
from titrant._writing import append_text, draft, write_text
from titrant.optimize.lbfgs import Checkpoint

WRITERS = 4
ROUNDS = 25
SIZE = 200_000
"""Characters of a file: many writes of the system, so that a torn file would show."""
# One process that writes its own letter over and over; argv: package, path, letter.
WRITER = f"""
import sys
sys.path.insert(0, sys.argv[1])
from titrant._writing import write_text
for _ in range({ROUNDS}):
    write_text(sys.argv[2], sys.argv[3] * {SIZE})
"""
OTHER_WRITERS = re.compile(
    r"(?<!_writing)\.write_text\(|\.write_bytes\(|(?:savefig|np\.savez?)\((?!stream\b|out\b)"
    r"|to_csv\(|to_parquet\(|open\([^)]*[\"'][rwax]?b?[wax+]b?[\"']"
)
SOURCE = Path(tt.__file__).parent


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_nothing_else_writes_files():
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        if path.name != "_writing.py"
        for line in path.read_text("utf-8").splitlines()
        if OTHER_WRITERS.search(line)
    ]
    assert found == []


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    with draft(path) as stream:
        stream.write(b"half")
        stream.flush()
        (other,) = set(tmp_path.iterdir()) - {path}
        # Hidden, known for what it is, and not found by a pattern for tables.
        assert other.name.startswith(".titrant-")
        assert not other.name.endswith(".csv")
        assert path.read_text() == "old"
    assert path.read_text() == "half"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_usual_permissions(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_text(tmp_path / "a", "new")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a") == 0o666 & ~umask


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o644, 0o755, 0o666])
def test_a_file_keeps_its_permissions(tmp_path, kept):
    path = tmp_path / "a"
    path.touch()
    path.chmod(kept)
    write_text(path, "new")
    assert mode(path) == kept
    assert path.read_text() == "new"


def test_a_private_file_is_private_while_it_is_written(tmp_path):
    path = tmp_path / "a"
    path.touch()
    path.chmod(0o600)
    with draft(path) as stream:
        stream.write(b"secret")
        (temporary,) = set(tmp_path.iterdir()) - {path}
        assert mode(temporary) == 0o600


def test_what_a_link_points_to_stays_as_it_is(tmp_path):
    theirs, link, dangling = tmp_path / "theirs", tmp_path / "link", tmp_path / "dangling"
    theirs.write_text("theirs")
    link.symlink_to(theirs)
    dangling.symlink_to(tmp_path / "nowhere")
    for path in (link, dangling):
        write_text(path, "ours")
        assert path.read_text() == "ours"
        assert not path.is_symlink()
    assert theirs.read_text() == "theirs"
    assert not (tmp_path / "nowhere").exists()


def test_a_draft_is_never_written_through_a_link(tmp_path, monkeypatch):
    # Somebody guessed the name of the draft and put a link there: another name is taken.
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    names = iter(["guessed", "fresh"])
    monkeypatch.setattr(_writing.secrets, "token_hex", lambda _: next(names))
    trap = tmp_path / ".titrant-draft-guessed.part"
    trap.symlink_to(theirs)
    write_text(tmp_path / "a", "ours")
    assert (tmp_path / "a").read_text() == "ours"
    assert theirs.read_text() == "theirs"
    assert trap.is_symlink()


def test_lines_are_never_added_through_a_link(tmp_path):
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    (tmp_path / "link").symlink_to(theirs)
    with pytest.raises(OSError, match="link"):
        append_text(tmp_path / "link", "ours")
    append_text(tmp_path / "a", "1\n")
    append_text(tmp_path / "a", "2\n")
    assert (tmp_path / "a").read_text() == "1\n2\n"
    assert theirs.read_text() == "theirs"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a"
    path.write_text("old")

    def fail():
        with draft(path) as stream:
            stream.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_signal_while_the_draft_is_made_leaves_nothing(tmp_path, monkeypatch):
    real = os.open

    def interrupted(*arguments):
        os.close(real(*arguments))
        raise KeyboardInterrupt  # where Python runs the handler: once the system has answered

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "a", "new")
    assert list(tmp_path.iterdir()) == []


def test_the_file_and_then_its_folder_are_brought_to_the_disk(tmp_path, monkeypatch):
    path, order = tmp_path / "a", []
    real = os.fsync, os.replace

    def fsync(number):
        order.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        real[0](number)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(
        Path, "replace", lambda one, other: (order.append("rename"), real[1](one, other))
    )
    write_text(path, "new")
    assert order == ["file", "rename", "folder"]


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        write_text(tmp_path / "no" / "a", "new")
    assert error.value.filename == str(tmp_path / "no" / "a")


def test_a_device_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        write_text(pipe, "new")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.fixture
def links(tmp_path):
    """Yield links like those of /dev to a regular file that is open, and the file."""
    with (tmp_path / "redirected").open("w+b") as file:
        (tmp_path / "stdout").symlink_to(f"/proc/self/fd/{file.fileno()}")
        (tmp_path / "hop").symlink_to("stdout")
        (tmp_path / "fd").symlink_to("/proc/self/fd")
        yield [tmp_path / "stdout", tmp_path / "hop", tmp_path / "fd" / str(file.fileno())]


def test_a_link_to_an_open_file_is_not_replaced(links):
    # What /dev/stdout is under `> file`: a rename over it would take it from the whole machine.
    for link in links:
        with pytest.raises(OSError, match="leads through /dev or /proc"):
            write_text(link, "new")
        assert link.is_symlink()


def test_names_of_the_system_are_known_by_their_path():
    # Only asked about, never written.
    for path in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/../dev/stdin", "/dev/a.csv"):
        assert _writing.is_of_the_system(path)
    for path in ("/developers/a.csv", "dev/stdout", "/dev/shm/a.csv", "/process"):  # noqa: S108
        assert not _writing.is_of_the_system(path)


def whole(path: Path, letters: str) -> bool:
    """Whether the file is all of one writer."""
    text = path.read_text()
    return len(text) == SIZE and text[0] in letters and text == text[0] * SIZE


def test_threads_that_write_one_file_leave_a_whole_one(tmp_path):
    path, letters = tmp_path / "a", "abcd"
    write_text(path, "a" * SIZE)
    done = []

    def work(letter):
        for _ in range(ROUNDS):
            write_text(path, letter * SIZE)
            done.append(whole(path, letters))

    threads = [threading.Thread(target=work, args=letter) for letter in letters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [True] * (WRITERS * ROUNDS)
    assert list(tmp_path.iterdir()) == [path]


def test_processes_that_write_one_file_leave_a_whole_one(tmp_path):
    path, letters = tmp_path / "a", "abcd"
    write_text(path, "a" * SIZE)
    line = [sys.executable, "-c", WRITER, str(SOURCE.parent), str(path)]
    running = [subprocess.Popen([*line, letter]) for letter in letters]
    while any(process.poll() is None for process in running):
        assert whole(path, letters)
    assert [process.returncode for process in running] == [0] * WRITERS
    assert whole(path, letters)
    assert list(tmp_path.iterdir()) == [path]


def test_policies_and_states_of_searches_are_written_so(tmp_path):
    # The permissions of a file that was there are kept by all who write.
    paths = [tmp_path / "policy.json", tmp_path / "search.npz"]
    for path in paths:
        path.touch()
        path.chmod(0o640)
    tt.Constant(3.0).save(paths[0])
    Checkpoint.save(paths[1], [np.arange(3.0)])
    assert json.loads(paths[0].read_text())["dose"] == 3.0
    into = [np.zeros(3)]
    assert Checkpoint.load(paths[1], into)
    np.testing.assert_array_equal(into[0], [0.0, 1.0, 2.0])
    assert [mode(path) for path in paths] == [0o640, 0o640]
