"""The golden numbers: that the quick ones still hold, and that a number that moves is told."""

from __future__ import annotations

from pathlib import Path

import golden
import pytest
from golden_cases import CASES

KNOWN = Path(golden.__file__).with_suffix(".json")
# Another processor or linear algebra rounds in its own way; the script itself asks for more.
ANYWHERE = 1e-8


def test_the_file_holds_every_case():
    assert len(CASES) == 40
    assert list(golden.read(KNOWN)) == list(CASES)


@pytest.mark.parametrize("name", ["default_few", "boundaries_few", "compare_few"])
def test_quick_cases_are_what_they_were(name):
    told = golden.differences(CASES[name](), golden.read(KNOWN)[name], ANYWHERE)
    assert not told, golden.report(name, told)


def test_a_number_that_moves_appears_or_goes_is_told():
    old = {"same": 1.0, "near": 2.0, "far": 2.0, "gone": 0.0, "missing": None, "zero": 0.0}
    new = {"same": 1.0, "near": 2.0 + 1e-12, "far": 2.1, "missing": 1.0, "zero": 1e-13, "new": 3.0}
    told = golden.differences(new, old)
    assert list(told) == ["far", "gone", "missing", "new"]
    assert "2.0 → 2.1, relative 5.0e-02" in golden.report("case", told)


def test_room_for_what_machines_round_otherwise_is_for_files_alone_and_for_nothing_else():
    old = {
        "a.value": 2.0,
        "a.se": 0.01,
        "a.smoothing_gap": 2e-4,
        "path.values.0": 1.1,
        "path.se.0": 6e-8,
        "path.values.1": 1.1,
        "path.se.1": 0.01,
    }
    near = {"a.smoothing_gap": 2e-4 + 5e-11, "path.se.0": 2.4e-8}
    beyond = {"a.smoothing_gap": 2e-4 + 2e-9, "path.se.0": 2e-7}
    others = {name: old[name] * (1.0 + 2e-10) for name in old if name not in near}
    assert not golden.differences(old | near, old, between_machines=True)
    assert list(golden.differences(old | near, old)) == list(near)
    for moved in (beyond, others):
        assert set(golden.differences(old | moved, old, between_machines=True)) == set(moved)


def test_only_the_farthest_numbers_of_a_case_are_listed():
    old = {str(i): 1.0 for i in range(20)}
    lines = golden.report("case", golden.differences({k: 1.0 + int(k) for k in old}, old))
    assert lines.splitlines()[0] == "case: 19 numbers differ"
    assert lines.splitlines()[1].startswith("    19: ")
    assert lines.splitlines()[-1] == "    and 11 more"


def test_a_case_without_numbers_counts_as_one_that_moved(monkeypatch, capsys):
    def missing():
        raise AttributeError("no such name")

    monkeypatch.setattr(golden, "computed_since", lambda *_: {"default_few": {}})
    since = ["--since", "HEAD", "--only", "default_few"]
    monkeypatch.setitem(CASES, "default_few", lambda: {"value": 0.1})
    assert golden.main(since) == 1
    assert "default_few: nothing to compare it with" in capsys.readouterr().out
    monkeypatch.setitem(CASES, "default_few", missing)
    assert golden.main(since) == 1
    told = capsys.readouterr().out
    assert "cannot be computed: default_few: AttributeError('no such name')" in told
    assert "default_few: nothing is computed" in told


@pytest.mark.long
def test_the_sources_of_a_commit_give_todays_cases(capfd):
    found = golden.computed_since("HEAD", ["boundaries_few"])
    assert found["boundaries_few"].keys() == CASES["boundaries_few"]().keys()
    assert "cannot be computed" not in capfd.readouterr().out


def test_what_is_written_compares_as_equal_and_a_change_gives_exit_code_1(
    tmp_path, monkeypatch, capsys
):
    path = tmp_path / "golden.json"
    monkeypatch.setitem(CASES, "default_few", lambda: {"value": 0.1 + 0.2, "none": None})
    only = ["--only", "default_few"]
    assert golden.main(["--write", str(path), *only]) == 0
    assert golden.main(["--compare", str(path), *only]) == 0
    told = capsys.readouterr().out
    assert golden.OPENLY in told
    assert "No number differs." in told
    monkeypatch.setitem(CASES, "default_few", lambda: {"value": 0.31, "none": None})
    assert golden.main(["--compare", str(path), *only]) == 1
    assert "1 cases differ" in capsys.readouterr().out
