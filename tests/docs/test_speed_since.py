"""Calls before and now: the least time of each source's own, and what one of them does not know."""

from __future__ import annotations

import subprocess

import pytest
from benchmarks.speed import since
from benchmarks.speed.measuring import ROOT, least_in_turn
from scripts.sources import tree_of

SOURCE = """\
Linear = LoggedData = SelfNormalized = lambda *a, **k: None
def evaluate(*a, **k):
    print("said by a call")
    sum(range({steps}))
"""
CALL, OTHER = "evaluate, bandwidth given, n = 10,000", "curve, nine doses, n = 100,000"
# Of contestants of which one does ten times as much; a busy machine moves ratios.
FAR = 3.0


@pytest.fixture
def trees(tmp_path):
    """Return two trees of sources that know little but `evaluate`, ten times as slow."""
    for name, steps in (("before", 10**6), ("now", 10**7)):
        package = tmp_path / name / "src" / "titrant"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(SOURCE.format(steps=steps))
    return tmp_path / "before", tmp_path / "now"


def test_each_source_is_asked_in_a_process_of_its_own(trees, monkeypatch):
    monkeypatch.setattr(since, "SECONDS", 0.0)
    found = since.measured(CALL, *trees)
    assert found["turns"] == since.FEWEST == 5
    assert found["now"] > FAR * found["before"] > 0
    assert since.shown(CALL, found).endswith(CALL)


def test_what_a_source_does_not_know_is_said(trees):
    found = since.measured(OTHER, *trees)
    assert found["cannot"] == "before"
    assert "AttributeError" in found["reason"]
    assert "cannot be asked before: AttributeError" in since.shown(OTHER, found)


def test_contestants_take_turns_and_the_least_counts():
    asked, times = [], {"a": iter([3.0, 1.0, 2.0]), "b": iter([5.0, 6.0, 4.0])}

    def clock(name):
        asked.append(name)
        return next(times[name])

    assert least_in_turn([lambda: clock("a"), lambda: clock("b")], 3) == [1.0, 4.0]
    assert asked == ["a", "b"] * 3


def test_a_tree_of_a_commit_is_gone_afterwards():
    with tree_of("HEAD") as tree:
        assert (tree / "src" / "titrant" / "__init__.py").exists()
    ask = ("git", "-C", ROOT, "worktree", "list")
    listed = subprocess.run(ask, check=True, capture_output=True, text=True)
    assert not tree.exists()
    assert str(tree) not in listed.stdout
