"""Whatever goes wrong has a sentence and an exit code; files are written whole or not at all."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import click
import pytest

from titrant._writing import draft, write_text
from titrant.cli import simulate, terminal
from titrant.cli.failures import explain
from titrant.errors import DataError, NoOverlap, UntrustedEstimate
from titrant.report.numbers import number

OF_A_FILE = """\
Error: `a.csv` cannot be read or written: Permission denied. Check the path and its permissions."""
OF_A_BUG = """\
Error: titrant failed in a way it should not (KeyError: 'x'). \
Run it again with `--debug` for the details, and report them."""
NO_MEMORY = "Error: The memory does not suffice. Name fewer columns with `--context`."
STOPPED = "Interrupted; no file was left half written."
ERRORS = [
    (NoOverlap("No row is near."), 1, "Refused: No row is near."),
    (UntrustedEstimate("Pass `allow_untrusted=True`."), 1, "Refused: Pass `--allow-untrusted`."),
    (DataError("A table is bad. Mend it."), 2, "Error: A table is bad. Mend it."),
    (click.UsageError("no such thing"), 2, "Error: no such thing."),
    (click.ClickException("bad file"), 2, "Error: bad file."),
    (PermissionError(13, "Permission denied", "a.csv"), 2, OF_A_FILE),
    (MemoryError(), 2, NO_MEMORY),
    (KeyError("x"), 3, OF_A_BUG),
    (KeyboardInterrupt(), 130, STOPPED),
    (click.Abort(), 130, STOPPED),
]


@pytest.mark.parametrize(("error", "code", "said"), ERRORS, ids=repr)
def test_every_error_has_its_sentence_and_code(capsys, error, code, said):
    assert explain(error, debug=False) == code
    assert capsys.readouterr().err == said + "\n"


def test_a_bug_is_told_apart_from_bad_data(call, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(simulate, "truth", broken)
    said = call("simulate", "dosing", "-n", "10")
    assert said.code == 3
    assert "(ZeroDivisionError: oops)" in said.err


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_draft_that_fails_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "page.html"
    path.write_text("old")

    def fail():
        with draft(path) as stream:
            stream.write(b"half of the new")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_finished_draft_replaces_the_old_file(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    write_text(path, "new: −")
    assert path.read_text(encoding="utf-8") == "new: −"
    assert list(tmp_path.iterdir()) == [path]


def test_warnings_of_libraries_are_notes(capsys, monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", terminal._warned)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("the fit is slow", stacklevel=1)
    assert capsys.readouterr().err == "Warning: the fit is slow\n"


def test_the_result_is_kept_when_json_and_html_are_both_wanted(call, csv_log, plain):
    said = call(
        *("evaluate", csv_log, *plain, "--policy", "p=constant:35"),
        *("--json", "out.json", "--html", "out.html"),
    )
    assert said.code == 0
    value = json.loads(Path("out.json").read_text(encoding="utf-8"))["value"]
    assert number(value) in said.out
    assert number(value) in Path("out.html").read_text(encoding="utf-8")
    assert said.err.endswith("Wrote out.html.\n")
