from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from titrant import LoggedData
from titrant.cli import run
from titrant.data.simulate import DESIGNS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Call = Callable[..., "Said"]


@dataclass(frozen=True)
class Said:
    """What one call of the command line left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def call(capsys, tmp_path, monkeypatch) -> Call:
    """Return a function that runs `titrant ARGUMENTS` in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def called(*arguments: object) -> Said:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Said(code, out, err)

    return called


@pytest.fixture(scope="session")
def log() -> LoggedData:
    """Return 600 rows of the dosing design: contexts weight, age, carrier; doses 5 … 75."""
    drawn = DESIGNS["dosing"].draw(600, 3)
    return LoggedData.from_frame(
        drawn.to_columns(treatment="dose", outcome="loss"),
        treatment="dose",
        outcome="loss",
        context=drawn.names,
        propensity="propensity",
        bounds=(5, 75),
    )


@pytest.fixture(scope="session")
def table(log) -> dict[str, list[object]]:
    """Return the log as columns, with a header that needs quotes and a category besides."""
    columns: dict[str, list[object]] = {
        name: column.tolist()
        for name, column in log.to_columns(treatment="dose", outcome="loss").items()
    }
    rows = range(len(log))
    return columns | {
        'Größe, "cm"': [160 + i % 40 for i in rows],
        "sex": ["male" if i % 3 else "female" for i in rows],
    }


@pytest.fixture(scope="session")
def csv_log(table, tmp_path_factory) -> Path:
    """Return the table as a CSV file."""
    path = tmp_path_factory.mktemp("logs") / "log.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path


@pytest.fixture
def rewritten(csv_log, tmp_path) -> Callable[[Callable[[list[str]], list[str]]], Path]:
    """Return a function that writes a copy of the CSV with its lines changed."""

    def write(change: Callable[[list[str]], list[str]]) -> Path:
        lines = csv_log.read_text(encoding="utf-8").splitlines()
        path = tmp_path / "changed.csv"
        path.write_text("\n".join(change(lines)) + "\n", encoding="utf-8")
        return path

    return write


COLUMNS = ("--treatment", "dose", "--outcome", "loss", "--propensity", "propensity")
PLAIN = (*COLUMNS, "--context", "weight,age,carrier", "--bounds", "5,75", "--estimator", "sn")


@pytest.fixture(scope="session")
def plain() -> tuple[str, ...]:
    """Return options that name the columns of the log and a quick estimator."""
    return PLAIN
