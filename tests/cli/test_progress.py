"""The bar: where it is drawn, how far it is, and how long it will take."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys

import pytest

from titrant.cli.terminal import (
    COSTS,
    ESTIMATING,
    FITTING,
    LEARNING,
    READING,
    REPORTING,
    bar,
    learned_share,
    time_left,
    working,
)

pty = pytest.importorskip("pty", reason="only Unix has pseudo-terminals")


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self) -> bool:
        return True


def moves(*parts):
    """Return a bar that keeps what it would draw, and what it kept."""
    kept: list[tuple[str, float]] = []
    with bar(*parts) as steps:
        steps.draw = lambda text, share: kept.append((text, share))
    return steps, kept


def test_a_bar_on_a_terminal_and_none_elsewhere(monkeypatch):
    with bar(LEARNING) as steps:
        assert steps.draw is None
        steps.begin(LEARNING)  # nobody looks, nothing happens
        steps.learning("all rows: outcome models", 3, 15)
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with bar(LEARNING) as steps:
        steps.begin(LEARNING)
        steps.learning("all rows: outcome models", 15, 15)
    assert "Learning: all rows: outcome models" in screen.getvalue()
    assert "s left" in screen.getvalue()


def test_work_of_unknown_length_has_a_sign_of_life_and_no_bar(monkeypatch):
    with working("Drawing rows"):
        pass
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with working("Drawing rows"):
        pass
    assert "Drawing rows" in screen.getvalue()
    assert "left" not in screen.getvalue()


def test_parts_follow_each_other_and_fill_the_bar():
    steps, kept = moves(READING, FITTING, None, ESTIMATING)
    total = COSTS[READING] + COSTS[FITTING] + COSTS[ESTIMATING]
    steps.begin(READING)
    steps.begin(FITTING)
    steps.begin(ESTIMATING)
    steps.advance("half", 1, 2)
    steps.advance("all", 2, 2)
    texts, shares = zip(*kept, strict=True)
    assert texts[-2:] == (f"{ESTIMATING}: half", f"{ESTIMATING}: all")
    begun = COSTS[READING] / total
    estimated = (COSTS[READING] + COSTS[FITTING]) / total
    assert shares == pytest.approx((0, begun, estimated, (estimated + 1) / 2, 1))


def test_learning_goes_forward_through_all_its_stages():
    stages = [
        (f"{rows}: {work}", done, total)
        for rows in ("all rows", "first half", "second half")
        for work, total in (("outcome models", 15), ("candidates", 6), ("grading", 1))
        for done in range(total + 1)
        if (rows, work) != ("all rows", "grading")
    ]
    shares = [learned_share(*stage) for stage in stages]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 1
    assert learned_share("first half: search", 1, 2) < learned_share("first half: grading", 0, 1)


@pytest.mark.parametrize(
    ("share", "moved", "elapsed", "text"),
    [
        (0.0, 0.0, 9.0, ""),  # nothing is known yet
        (0.5, 10.0, 10.0, "10 s left"),  # the second half takes as long as the first
        (0.5, 10.0, 14.0, "6 s left"),  # and it counts down until the next step
        (0.5, 10.0, 30.0, "1 s left"),  # late, but not over
        (0.01, 1.0, 1.0, "1 min 39 s left"),
    ],
)
def test_the_time_left(share, moved, elapsed, text):
    assert time_left(share, moved, elapsed) == text


@pytest.mark.long
def test_the_bar_goes_to_the_screen_and_the_result_to_its_file(csv_log, plain, tmp_path):
    # Standard error is a terminal, standard output a file: the table must be in the file alone.
    screen, end = pty.openpty()
    command = [sys.executable, "-m", "titrant", "evaluate", str(csv_log), *plain]
    arguments = ["--policy", "constant:35", "--html", str(tmp_path / "page.html")]
    with (
        (tmp_path / "out.txt").open("w") as file,
        subprocess.Popen([*command, *arguments], stdout=file, stderr=end) as process,
    ):
        os.close(end)
        said = b""
        while part := _read(screen):  # all the time, or the screen is full and the process waits
            said += part
        code = process.wait(timeout=60)
    os.close(screen)
    assert code == 0, said
    assert "policy" in (tmp_path / "out.txt").read_text(encoding="utf-8")
    text = said.decode(errors="replace")
    assert "verdict" not in text
    assert REPORTING in text  # the shorter parts may be over before they are drawn
    assert re.search(r"\d s left", text)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the other end is closed
        return b""
