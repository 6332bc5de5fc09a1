"""Files that are broken, and places that cannot be written to: named, and nothing half written."""

from __future__ import annotations

import os
import resource
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import titrant as tt
from faults import logs
from optimize.functions import Numerical
from titrant.cli import run
from titrant.optimize import LBFGS, Checkpoint

HOW = {"estimator": tt.SelfNormalized(), "bandwidth": 0.5}
POLICY = tt.Constant(0.1)


@pytest.fixture
def paths(tmp_path):
    return logs.write(tmp_path / "log", 3)


def without_half(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def without_a_column(path):
    pq.write_table(pq.read_table(path).drop_columns("loss"), path)


def with_text(path):
    table = pq.read_table(path)
    place = table.column_names.index("loss")
    pq.write_table(table.set_column(place, "loss", pc.cast(table["loss"], pa.string())), path)


def with_a_gap(path):
    table = pq.read_table(path)
    place = table.column_names.index("loss")
    gap = pc.if_else(pc.greater(table["age"], 2.5), None, table["loss"])
    pq.write_table(table.set_column(place, "loss", gap), path)


def empty(path):
    path.write_bytes(b"")


BROKEN = {
    without_half: "cannot be read as Parquet",
    empty: "cannot be read as Parquet",
    without_a_column: "`loss`",
    with_text: "`loss`",
    with_a_gap: "missing or infinite",
}


@pytest.mark.parametrize("breaking", BROKEN, ids=lambda f: f.__name__)
@pytest.mark.parametrize("threads", [None, 2], ids=["one thread", "two threads"])
def test_a_broken_file_is_named(paths, breaking, threads):
    breaking(paths[1])

    def evaluated(executor):
        source = tt.scan_parquet(str(paths[0].parent), logs.KNOWN)
        return tt.evaluate(source, POLICY, **HOW, executor=executor)

    with ThreadPoolExecutor(2) as two, pytest.raises(tt.DataError) as caught:
        evaluated(two if threads else tt.Engine())
    assert f"`{paths[1]}`" in str(caught.value)
    assert BROKEN[breaking] in str(caught.value)


def damaged(path):
    """The footer is whole; the pages in front of it are not."""
    content = bytearray(path.read_bytes())
    content[1_000:40_000] = bytes(39_000)
    path.write_bytes(content)


def shorter(path):
    pq.write_table(pq.read_table(path)[:-5], path)


@pytest.mark.parametrize("breaking", [damaged, without_half, shorter, os.remove])
def test_a_file_that_breaks_after_it_was_scanned_is_named(paths, breaking):
    source = tt.scan_parquet(str(paths[0].parent), logs.KNOWN)
    breaking(paths[1])
    with pytest.raises(tt.DataError, match=f"`{paths[1]}`"):
        tt.evaluate(source, POLICY, **HOW)


# The commands


def titrant(paths, *outputs):
    """The exit code of an evaluation."""
    columns = ("--treatment", "dose", "--outcome", "loss", "--context", "age,bmi")
    how = ("--propensity", "q", "--estimator", "sn", "--bandwidth", "0.5")
    log = paths[0].parent / "*.parquet"
    words = ("evaluate", log, *columns, *how, "--policy", "constant:0.1", *outputs)
    return run([str(word) for word in words])


@contextmanager
def room_for(size):
    """Let no file grow beyond ``size`` bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("breaking", BROKEN, ids=lambda f: f.__name__)
def test_a_command_on_a_broken_file_leaves_nothing(paths, breaking, tmp_path, capsys):
    breaking(paths[1])
    out = tmp_path / "out"
    out.mkdir()
    assert titrant(paths, "--json", out / "a.json", "--html", out / "a.html") == 2
    assert paths[1].name in capsys.readouterr().err or breaking is with_a_gap
    assert list(out.iterdir()) == []


def test_a_full_disk_leaves_what_was_there(paths, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    page = out / "page.html"
    assert titrant(paths, "--html", page) == 0  # and everything is compiled and cached
    before = page.read_bytes()
    with room_for(len(before) // 2):
        assert titrant(paths, "--html", page) == 2
    assert "too large" in capsys.readouterr().err
    assert page.read_bytes() == before
    assert list(out.iterdir()) == [page]


def test_a_place_that_cannot_be_written_to_is_named(paths, capsys):
    # Nobody, not even root, makes files there.
    assert titrant(paths, "--json", "/proc/a.json") == 2
    assert "/proc" in capsys.readouterr().err


# The state of a search


def test_a_full_disk_keeps_the_state_before(tmp_path):
    search = LBFGS(checkpoint=Checkpoint(str(tmp_path)))
    starts = np.ones((4, 2))
    seen = []

    def fill(count, _):
        seen.append(count)
        if count == 3:
            limits.enter_context(room_for(100))

    objective = Numerical(lambda x: float(np.sum(np.cosh(x))))
    with ExitStack() as limits, pytest.raises(tt.ExecutionError) as caught:
        replace(search, progress=fill).minimize(objective, starts)
    (file,) = tmp_path.iterdir()
    assert f"`{file}`: File too large" in str(caught.value)
    assert seen == [1, 2, 3]
    # With room again, the search goes on after its third round.
    seen.clear()
    replace(search, progress=lambda count, _: seen.append(count)).minimize(objective, starts)
    assert seen[0] == 4
