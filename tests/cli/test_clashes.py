"""A file that a command reads is never written by it, and no file is written twice."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import titrant as tt
from titrant.cli.writing import identity

COLUMNS = ("--treatment", "dose", "--outcome", "loss", "--propensity", "propensity")
POLICY = ("--policy", "constant:35")
FORMATS = ("log.csv", "log.parquet")
pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def here(call, csv_log):
    """The empty folder of `call` with a log in two formats, links to it, and a policy."""
    call()
    shutil.copy(csv_log, "log.csv")
    pq.write_table(pa_csv.read_csv(csv_log), "log.parquet")
    for name in FORMATS:
        Path(f"soft-{name}").symlink_to(name)
        Path(f"hard-{name}").hardlink_to(name)
    tt.Constant(35.0).save("policy.json")
    Path("run.toml").write_text('outcome = "loss"\n')
    Path("logs").mkdir()
    for name in FORMATS:
        shutil.copy(name, Path("logs", name))


def contents() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def refused(call, *arguments: object) -> str:
    """What is said, after nothing was touched."""
    before = contents()
    said = call(*arguments)
    assert said.code == 2, said.err
    assert contents() == before
    assert said.out == ""
    return said.err


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("output", ["{}", "./{}", "logs/../{}", "soft-{}", "hard-{}"])
def test_an_output_that_is_the_log_by_any_name(call, name, output):
    target = output.format(name)
    for command in (
        ("learn", name, *COLUMNS, "-o", target),
        ("learn", name, *COLUMNS, "--html", target),
        ("evaluate", name, *COLUMNS, *POLICY, "--html", target),
        ("evaluate", name, *COLUMNS, *POLICY, "--save-config", target),
        ("compare", name, *COLUMNS, *POLICY, "--policy", "logged-mean", "--json", target),
        ("check", name, *COLUMNS, "--json", target),
        ("recommend", "policy.json", name, "-o", target),
    ):
        said = refused(call, *command)
        assert f"`{target}` would replace `{name}`, which is read as" in said


def test_an_output_that_is_the_log_behind_a_link(call):
    said = refused(call, "recommend", "policy.json", "soft-log.csv", "-o", "log.csv")
    assert "`log.csv` would replace `soft-log.csv`, which is read as `TABLE`" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("recommend", "policy.json", "log.csv", "--save-config", "policy.json"), "`POLICY`"),
        (("learn", "log.csv", *COLUMNS, "--against", "old=policy.json"), "`--against`"),
        (
            ("evaluate", "log.csv", *COLUMNS, "--policy", "rounded:1:policy.json", "--json",
             "policy.json"),
            "`--policy`",
        ),
        (
            ("evaluate", "log.csv", *COLUMNS, *POLICY, "--config", "run.toml", "--save-config",
             "./run.toml"),
            "`--config`",
        ),
        (("demo", "--config", "run.toml", "--save-config", "run.toml"), "`--config`"),
        (
            ("learn", "logs", *COLUMNS, "--context", "age", "--in-parts", "--procedure", "cpo",
             "--checkpoint", "logs"),
            "would replace `logs`",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_an_output_that_is_another_input(call, arguments, sentence):
    assert sentence in refused(call, *arguments)


@pytest.mark.parametrize("source", ["logs", "logs/", "logs/*.csv", "lo*/*", "**/*.csv", "./logs"])
def test_an_output_that_would_be_read_as_a_part_of_the_log(call, source):
    said = refused(call, "recommend", "policy.json", source, "-o", "logs/new.csv")
    assert "would be read as a part of" in said
    existing = refused(call, "recommend", "policy.json", source, "-o", "logs/log.csv")
    assert "`logs/log.csv` would" in existing


def test_a_report_may_lie_beside_the_tables(call, plain):
    said = call("evaluate", "logs/*.csv", *plain, *POLICY, "--json", "logs/out.json")
    assert said.code == 0, said.err


@pytest.mark.parametrize("pair", [("--html", "--json"), ("--json", "--save-config")])
@pytest.mark.parametrize(
    "names", [("a", "./a"), ("a", "A"), ("-", "-"), ("soft-log.csv", "log.csv")]
)
def test_no_file_is_written_twice(call, pair, names):
    options = [part for both in zip(pair, names, strict=True) for part in both]
    said = refused(call, "evaluate", "logs/log.csv", *COLUMNS, *POLICY, *options)
    assert ("Standard output takes" in said) == (names[0] == "-")
    assert pair[0] in said


def test_what_a_command_writes_unasked_counts_too(call):
    said = refused(call, "simulate", "dosing", "-o", "a.csv", "--save-config", "a.truth.json")
    assert "the truth beside --output" in said
    said = refused(call, "reproduce", "figure-1", "--out", ".", "--save-config", "figure-1.svg")
    assert "--save-config" in said
    said = refused(call, "demo", "--save-config", "report.html")
    assert "--html" in said


def test_a_device_is_no_place_for_a_file(call):
    said = refused(call, "evaluate", "log.csv", *COLUMNS, *POLICY, "--json", "/dev/null")
    assert "`/dev/null` is a device or a pipe" in said


def test_a_link_to_standard_output_is_no_place_for_a_file(call):
    with Path("redirected.json").open("w+b") as file:
        link = Path("stdout")
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        said = refused(call, "evaluate", "log.csv", *COLUMNS, *POLICY, "--json", link)
        assert "`stdout` leads through /dev or /proc" in said
        assert "or - for standard output." in said
        assert link.is_symlink()


@pytest.mark.parametrize(
    ("words", "role"),
    [
        (("evaluate", "-", *COLUMNS, *POLICY, "--json"), "LOG"),
        (("recommend", "policy.json", "-", "-o"), "TABLE"),
    ],
)
@pytest.mark.parametrize("output", ["log.csv", "soft-log.csv", "hard-log.csv"])
def test_the_file_behind_standard_input_is_an_input(call, words, role, output):
    before = os.dup(0)
    try:
        with Path("log.csv").open("rb") as file:
            os.dup2(file.fileno(), 0)
        said = refused(call, *words, output)
    finally:
        os.dup2(before, 0)
        os.close(before)
    assert f"`{output}` would replace the file that is read from standard input as `{role}`" in said


def test_files_that_are_not_there_yet_are_known_by_their_folder(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to("a")
    assert identity(str(tmp_path / "a" / "x")) == identity(str(tmp_path / "b" / "X"))
    assert identity(str(tmp_path / "a" / "x")) != identity(str(tmp_path / "x"))
    assert identity(str(tmp_path / "no" / "x")) != identity(str(tmp_path / "nor" / "x"))
