"""Whatever goes wrong has a sentence and an exit code; files are written whole or not at all."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import click
import pytest

from titrant._writing import draft, write_text
from titrant.cli import terminal
from titrant.cli.app import explain
from titrant.cli.commands import simulate
from titrant.errors import DataError, NoOverlap, PolicyFileError, UntrustedEstimate
from titrant.policies import load_training
from titrant.reporting.numbers import number

OF_A_FILE = """\
Error: `a.csv` cannot be read or written: Permission denied. Check the path and its permissions."""
OF_A_BUG = """\
Error: titrant failed in a way it should not (KeyError: 'x'). \
Run it again with `--debug` for the details, and report them."""
NO_MEMORY = "Error: The memory does not suffice. Name fewer columns with `--context`."
STOPPED = "Interrupted; no file was left half written."
WIDE = "Name fewer contexts, or give `propensity` and an outcome model of your own."
WIDE_TYPED = """\
Error: Name fewer columns by `--context`, or evaluate with `--estimator sn` and \
`--propensity-model linear-gaussian`."""
ERRORS = [
    (NoOverlap("No row is near."), 1, "Refused: No row is near."),
    (UntrustedEstimate("Pass `allow_untrusted=True`."), 1, "Refused: Pass `--allow-untrusted`."),
    (DataError(WIDE), 2, WIDE_TYPED),
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


DEEP = 100_000
DIGITS = "9" * 400
HEADER = '"format": "titrant-policy", "version": 1'


def wrapped(times: int) -> str:
    """A policy in as many others."""
    opened = '"class": "Clipped", "lower": 0, "upper": 50, "policy": {' * times
    return f'{{{HEADER}, {opened}"class": "Constant", "dose": 35{"}" * times}}}'


def nested(times: int) -> str:
    return "[" * times + "]" * times


POLICY_FILES = {
    "an array in arrays": (nested(DEEP), "is nested too deeply"),
    "objects in objects": ('{"a":' * DEEP + "1" + "}" * DEEP, "is nested too deeply"),
    "policies in policies": (wrapped(900), "is wrapped more than 100 times"),
    "a long number": (f'{{{HEADER}, "class": "Constant", "dose": {DIGITS}}}', "a finite number"),
    "an endless number": (f'{{{HEADER}, "class": "Constant", "dose": {"9" * 5000}}}', "not JSON"),
}
LONG_RANGE = f'{{"training": {{"version": 1, "rows": 1, "context": {{"a": [0, {DIGITS}]}}}}}}'


@pytest.mark.parametrize("name", POLICY_FILES)
def test_absurd_policy_files_have_a_sentence(call, csv_log, plain, name):
    content, sentence = POLICY_FILES[name]
    call()
    Path("p.json").write_text(content)
    said = call("recommend", "p.json", csv_log, "--treatment", "new")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert sentence in said.err
    assert call("evaluate", csv_log, *plain, "--policy", "p.json").code == 2


def test_a_range_without_an_end_has_a_sentence(tmp_path):
    (tmp_path / "p.json").write_text(LONG_RANGE)
    with pytest.raises(PolicyFileError, match="a smallest and a largest value"):
        load_training(tmp_path / "p.json")


def test_a_policy_may_be_wrapped_a_hundred_times(call, csv_log, plain):
    call()
    Path("p.json").write_text(wrapped(100))
    for policy in ("p.json", "rounded:1:" * 100 + "constant:35"):
        assert call("evaluate", csv_log, *plain, "--policy", f"p={policy}").code == 0


CONFIGS = {
    f"context = {nested(DEEP)}": "nested too deeply",
    f"context = {'{a=' * 5000}1{'}' * 5000}": "nested too deeply",
    f"seed = {DIGITS}": "is not in the range 0<=x<=4294967295",
    f"seed = 0x{'f' * 6000}": "a number of over 1,000 digits",
    f"seed = {'9' * 6000}": "is not TOML",
    'json = "a\\u0000b"': "holds a NUL",
    'context = "a\\nb"': "a name with a line break in double quotes",
}


@pytest.mark.parametrize("content", CONFIGS, ids=lambda content: content[:24])
def test_absurd_configurations_have_a_sentence(call, csv_log, content):
    call()
    Path("run.toml").write_text(content)
    columns = ("--treatment", "dose", "--outcome", "loss", "--policy", "constant:35")
    said = call("evaluate", csv_log, *columns, "--config", "run.toml")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert CONFIGS[content] in said.err


# Characters: a number of 5,000 digits is not repeated as a whole.
LONGEST_SENTENCE = 1_500
ABSURD = {
    "--policy": [
        "constant:1e400", f"constant:{DIGITS}", "linear:intercept=1e400", "linear:age=1e400",
        "rounded:1e400:constant:3", "clipped:0,1e400:constant:3", "linear:a\nge=1",
        "clipped:0,50:" * 3000 + "constant:35", "clipped(" * 3000 + "constant:3", "x" * 5000,
    ],
    "--context": ["wei\nght", "a" * 200_000],
    "--treatment": ["do\nse", '"do\nse"'],
    "--outcome": ["lo\nss", "lo\x1b[31mss"],
    "--bounds": ["1e400,", f"5,{DIGITS}", f"-{DIGITS},5", "nan,"],
    "--seed": [DIGITS, "9" * 5000, "4294967296", "1e400"],
    "--bandwidth": ["1e400", DIGITS],
    "--clip": ["1e400", DIGITS],
    "--level": ["1e400", DIGITS, "nan"],
    "--workers": [DIGITS, "9" * 5000],
    "--html": ["x" * 5000],
}  # fmt: skip
EACH = [(option, value) for option, values in ABSURD.items() for value in values]


@pytest.mark.parametrize(("option", "value"), EACH, ids=lambda text: ascii(text)[:30])
def test_absurd_options_have_a_sentence(call, csv_log, option, value):
    columns = {"--treatment": "dose", "--outcome": "loss", "--policy": "constant:35"}
    columns |= {"--context": "age", "--propensity": "propensity", "--estimator": "sn"}
    given = [part for pair in (columns | {option: value}).items() for part in pair]
    said = call("evaluate", csv_log, *given)
    assert said.code == 2, said.err
    assert said.err.startswith("Error: ")
    assert said.err.count("\n") == 1
    assert len(said.err) < LONGEST_SENTENCE


@pytest.mark.parametrize("number", [DIGITS, "9" * 5000, "1000000001"], ids=len)
@pytest.mark.parametrize("command", ["simulate dosing -n", "demo -n", "reproduce theory --seeds"])
def test_absurd_sizes_have_a_sentence(call, command, number):
    said = call(*command.split(), number)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert len(said.err) < LONGEST_SENTENCE


@pytest.mark.parametrize("column", ["dose", "loss", "age"])
@pytest.mark.parametrize("number", [DIGITS, f"-{DIGITS}", "1e400"], ids=len)
def test_absurd_numbers_in_a_log_have_a_sentence(call, rewritten, column, number):
    def change(lines):
        place = lines[0].split(",").index(column)
        cells = lines[5].split(",")
        cells[place] = number
        return [*lines[:5], ",".join(cells), *lines[6:]]

    columns = ("--treatment", "dose", "--outcome", "loss", "--context", "age")
    said = call("evaluate", rewritten(change), *columns, "--policy", "constant:35")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert f"column `{column}`: 1; row 4" in said.err
