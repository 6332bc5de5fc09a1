"""What a terminal would act on is shown instead, wherever it comes from."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import rich.console

from titrant.cli import terminal
from titrant.cli.terminal import drawn, put, show, visible

RED = "\x1b[31m"
# As they come and as they are shown: colors, title of the window, C1, direction, lines.
CONTROLS = [
    (RED, r"\x1b[31m"),
    ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
    ("\x9b31m", r"\x9b31m"),
    ("\x7f", r"\x7f"),
    ("\u202eevil", r"\u202eevil"),
    ("a\nb", r"a\nb"),
    ("a\rb", r"a\rb"),
    ("a\u2028b", r"a\u2028b"),
    ("\udcff", r"\udcff"),
]
PLAIN = ["dose, mg", "Größe", "剂量", "C:\\new", "a–b − c", "👩‍⚕️", "[red]"]


@pytest.mark.parametrize(("text", "shown"), CONTROLS, ids=ascii)
def test_controls_are_written_out(text, shown):
    assert visible(text) == shown


@pytest.mark.parametrize("text", PLAIN)
def test_all_else_stays(text):
    assert visible(text) == text


def test_tables_keep_their_lines(capsys):
    show(f"one\ntwo {RED}")
    assert capsys.readouterr().out == "one\ntwo \\x1b[31m\n"


@pytest.mark.parametrize("terminal_there", [True, False])
def test_data_stay_as_they_are_unless_a_person_reads_them(capsys, monkeypatch, terminal_there):
    monkeypatch.setattr(terminal.sys.stdout, "isatty", lambda: terminal_there)
    put(f"a\t{RED}\n")
    assert capsys.readouterr().out == ("a\t\\x1b[31m\n" if terminal_there else f"a\t{RED}\n")


def test_a_bar_shows_names_as_they_are(capsys, monkeypatch):
    made = rich.console.Console
    plain = {"stderr": True, "force_terminal": True, "color_system": None}
    monkeypatch.setattr(rich.console, "Console", lambda **_: made(**plain))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with drawn(length=False) as draw:
        draw(f"Applying {RED}[/odd].json", 0.0)
    said = capsys.readouterr().err
    assert r"Applying \x1b[31m[/odd].json" in said
    assert RED not in said


@pytest.fixture
def odd_log(call, csv_log) -> Path:
    """The log with a context whose name turns the screen red."""
    call()
    with csv_log.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    with Path("odd.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([f"we{RED}ight" if name == "weight" else name for name in header])
        writer.writerows(rows)
    return Path("odd.csv")


COLUMNS = ("--treatment", "dose", "--outcome", "loss", "--propensity", "propensity")


def test_names_in_a_log_and_in_policies(call, odd_log):
    contexts = ("--context", f"we{RED}ight,age")
    policies = ("--policy", f"b{RED}ig=constant:40", "--policy", f"linear:we{RED}ight=0.5")
    said = call("compare", odd_log, *COLUMNS, *contexts, *policies, "--estimator", "sn")
    assert "\x1b" not in said.out + said.err
    assert r"b\x1b[31mig" in said.out
    learned = call("learn", odd_log, *COLUMNS, *contexts, "--models", "ridge")
    assert "\x1b" not in learned.out + learned.err
    assert r"we\x1b[31might" in learned.out


@pytest.mark.parametrize(
    "arguments",
    [
        (f"no{RED}.csv", *COLUMNS, "--policy", "constant:35"),
        ("odd.csv", *COLUMNS, "--context", f"we{RED}", "--policy", "constant:35"),
        ("odd.csv", *COLUMNS, "--policy", f"x{RED}"),
        ("odd.csv", *COLUMNS, "--policy", "constant:35", "--html", f"no{RED}/a.html"),
        ("odd.csv", *COLUMNS, "--policy", "constant:35", f"--no{RED}"),
    ],
    ids=ascii,
)
@pytest.mark.usefixtures("odd_log")
def test_names_in_errors(call, arguments):
    said = call("evaluate", *arguments)
    assert said.code == 2
    assert r"\x1b[31m" in said.err
    assert "\x1b" not in said.err
    assert said.err.splitlines()[-1].startswith("Error: ")
