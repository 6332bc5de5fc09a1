"""`titrant reproduce`: which studies it runs, what it says, its exit code."""

from __future__ import annotations

import json

import pytest

from titrant.cli import run
from titrant.paper import STUDIES, Findings, Row, Study
from titrant.paper.warfarin import VARIABLE


def tasks(settings):
    return [
        {"k": k, "data": settings.data, "made_up": settings.simulated}
        for k in range(settings.replications)
    ]


def measure(task):
    return {"k": task["k"]}


def summarize(pieces):
    return Findings(
        rows=(Row(label="count", quantity="tasks", ours=float(len(pieces)), limits=(3.0, 9.0)),),
        notes=(f"Data: {pieces[0].task['data']}.",),
    )


def draw(figure, _):
    figure.subplots()


def toy(name, *, patients=False):
    return Study(
        name=name,
        title="Counting",
        claim="it counts.",
        replications=4,
        quick_replications=2,
        tasks=tasks,
        measure=measure,
        summarize=summarize,
        draw=draw,
        patients=patients,
    )


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run `titrant reproduce ARGUMENTS` with two toy studies in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    for name in list(STUDIES):
        monkeypatch.delitem(STUDIES, name)
    monkeypatch.setitem(STUDIES, "plain", toy("plain"))
    monkeypatch.setitem(STUDIES, "ill", toy("ill", patients=True))

    def called(*arguments):
        code = run(["reproduce", "--workers", "1", *arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return called


def test_a_study_prints_its_table_and_writes_its_files(call, tmp_path):
    code, out, err = call("plain")
    assert (code, err) == (0, "")
    assert out.startswith("plain: Counting\nThe paper: it counts.\n")
    assert "count  tasks     –      4        3 … 9      holds" in out
    assert "$ titrant reproduce plain --replications 4" in out
    written = sorted(path.name for path in (tmp_path / "results").iterdir())
    assert written == ["plain.json", "plain.png", "plain.svg"]


def test_how_often_and_where(call, tmp_path):
    assert "tasks     –      2 " in call("plain", "--quick")[1]
    assert "tasks     –      7 " in call("plain", "--seeds", "7", "--out", "elsewhere")[1]
    assert (tmp_path / "elsewhere" / "plain.json").is_file()


def test_a_statement_that_fails_is_an_exit_code_but_a_quick_run_has_none(call):
    assert call("plain", "--replications", "2")[0] == 1
    assert call("plain", "--replications", "2", "--quick")[0] == 0


def test_all_leaves_out_the_patients_when_there_is_no_table(call):
    code, out, err = call("all")
    assert code == 0
    assert "plain: Counting" in out
    assert "ill: Counting" not in out
    assert err.startswith("Left out: ill. No warfarin table was given")
    assert "submission 553247439" in err
    assert "--simulated" in err


def test_a_study_of_patients_that_is_named_needs_the_table(call, tmp_path):
    code, out, err = call("plain", "ill")
    assert (code, out) == (2, "")
    assert "submission 553247439" in err
    assert not (tmp_path / "results").exists()


def test_the_table_by_option_or_environment(call, monkeypatch):
    assert "Data: here.csv." in call("ill", "--data", "here.csv")[1]
    monkeypatch.setenv(VARIABLE, "there.csv")
    code, out, err = call("all")
    assert (code, err) == (0, "")
    assert "ill: Counting" in out


def test_made_up_patients_are_labelled_everywhere(call, tmp_path):
    _, out, _ = call("all", "--simulated")
    assert "ill-simulated: Counting (MADE-UP PATIENTS)" in out
    assert "plain: Counting\n" in out
    assert "$ titrant reproduce ill --replications 4 --simulated" in out
    kept = json.loads((tmp_path / "results" / "ill-simulated.json").read_text())
    assert kept["settings"]["simulated"]
    assert "made-up patients" in (tmp_path / "results" / "ill-simulated.svg").read_text()
    assert "made-up patients" not in (tmp_path / "results" / "plain.svg").read_text()
    assert not (tmp_path / "results" / "ill.json").exists()


def test_an_unknown_experiment_is_refused(call):
    code, _, err = call("figure-99")
    assert code == 2
    assert "There is no experiment `figure-99`. Choose from plain, ill, all." in err


def test_progress_is_drawn_on_a_terminal(call, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    code, out, _ = call("plain")
    assert code == 0
    assert out.startswith("plain: Counting\n")
