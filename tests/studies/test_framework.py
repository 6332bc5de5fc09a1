"""The frame of studies: interrupted runs, processes, tables, verdicts, files."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from studies.against import contradictions
from titrant.errors import InvalidArgument
from titrant.paper import STUDIES, Findings, Row, StatementVerdict, Study
from titrant.paper.result import command, falls, mean_of, rmse_row, standard_error
from titrant.paper.study import Settings

CALLS = []


def toy_tasks(settings):
    return [{"k": k, "seed": settings.seed} for k in range(settings.replications)]


def toy_measure(task):
    CALLS.append(task["k"])
    return {"square": float(task["k"]) ** 2 / 3.0, "nothing": None}


def toy_summarize(pieces):
    squares = np.array([piece.found["square"] for piece in pieces])
    return Findings(
        rows=(
            Row(label="squares", quantity="mean", ours=float(squares.mean()), limits=(0.0, 9.0)),
        ),
        series={"k": [piece.task["k"] for piece in pieces], "square": squares.tolist()},
        sample={"first": float(squares[0])},
    )


def toy_draw(figure, series):
    figure.subplots().plot(series["k"], series["square"])


TOY = Study(
    name="toy",
    title="Squares",
    claim="they grow",
    replications=6,
    quick_replications=3,
    tasks=toy_tasks,
    measure=toy_measure,
    summarize=toy_summarize,
    draw=toy_draw,
)


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


class Interrupted(Exception):
    pass


def stop_after(done_before):
    def progress(done, total):
        assert total == 6
        if done == done_before:
            raise Interrupted

    return progress


# ── Running ──────────────────────────────────────────────────────────────────────────────────────


def test_a_run_writes_three_files_and_no_others(tmp_path):
    result = TOY.run(folder=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["toy.json", "toy.png", "toy.svg"]
    # The squares 0, 1, 4, 9, 16 and 25 sum to 55; each was divided by 3.
    assert result.rows[0].ours == pytest.approx(55 / 18)
    kept = json.loads((tmp_path / "toy.json").read_text())
    assert kept == json.loads(json.dumps(result.to_dict()))
    assert kept["rows"][0] | {"note": ""} == {
        "label": "squares",
        "quantity": "mean",
        "ours": 3.05556,
        "se": None,
        "paper": None,
        "limits": [0.0, 9.0],
        "note": "",
        "verdict": "holds",
    }
    assert kept["command"] == "titrant reproduce toy --replications 6"


def test_quick_and_replications_choose_how_often(tmp_path):
    assert TOY.run(folder=tmp_path, quick=True).settings["replications"] == 3
    assert TOY.run(folder=tmp_path, quick=True, replications=2).settings["replications"] == 2
    assert CALLS == [0, 1, 2, 0, 1]


def test_an_interrupted_run_goes_on_where_it_ended(tmp_path):
    whole = TOY.run(folder=tmp_path / "whole").to_dict()
    CALLS.clear()
    with pytest.raises(Interrupted):
        TOY.run(folder=tmp_path, progress=stop_after(4))
    assert CALLS == [0, 1, 2, 3]
    seen = []
    again = TOY.run(folder=tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert CALLS == [0, 1, 2, 3, 4, 5]
    assert seen == [(5, 6), (6, 6)]
    assert again.to_dict() == whole
    assert not list(tmp_path.glob("*.partial*"))


def test_a_line_cut_off_by_the_interruption_is_measured_again(tmp_path):
    with pytest.raises(Interrupted):
        TOY.run(folder=tmp_path, progress=stop_after(3))
    path = tmp_path / "toy.partial.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    TOY.run(folder=tmp_path)
    assert CALLS == [0, 1, 2, 2, 3, 4, 5]


@pytest.mark.parametrize("change", [{"seed": 1}, {"fresh": True}, {"data": "another.csv"}])
def test_another_kind_of_run_begins_anew(tmp_path, change):
    with pytest.raises(Interrupted):
        TOY.run(folder=tmp_path, progress=stop_after(4))
    CALLS.clear()
    TOY.run(folder=tmp_path, **change)
    assert CALLS == [0, 1, 2, 3, 4, 5]


def test_files_are_the_same_bytes_every_time(tmp_path):
    for place in ("a", "b"):
        TOY.run(folder=tmp_path / place)
    for name in ("toy.json", "toy.svg", "toy.png"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.long
def test_processes_give_the_answer_of_one_bit_for_bit(tmp_path):
    study = STUDIES["figure-2"]
    one = study.run(folder=tmp_path / "1", replications=2)
    two = study.run(folder=tmp_path / "2", replications=2, workers=2)
    assert one == two


@pytest.mark.parametrize(
    "wrong", [{"workers": 0}, {"replications": 0}, {"seed": -1}, {"replications": 2.5}]
)
def test_wrong_settings_are_refused(tmp_path, wrong):
    with pytest.raises(InvalidArgument, match="must be a whole number"):
        TOY.run(folder=tmp_path, **wrong)


# ── Verdicts and tables ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("ours", "se", "note", "verdict"),
    [
        (1.0, None, "", StatementVerdict.HOLDS),
        (2.0, None, "", StatementVerdict.HOLDS),
        (2.1, None, "", StatementVerdict.FAILS),
        (0.9, None, "", StatementVerdict.FAILS),
        (2.1, 0.05, "", StatementVerdict.OPEN),
        (0.9, 0.049, "", StatementVerdict.FAILS),
        (2.1, 0.01, "because", StatementVerdict.EXPLAINED),
        (1.5, 0.01, "because", StatementVerdict.HOLDS),
    ],
)
def test_verdicts(ours, se, note, verdict):
    row = Row(label="a", quantity="b", ours=ours, se=se, limits=(1.0, 2.0), note=note)
    assert row.verdict is verdict


def test_without_a_statement_a_number_is_reported():
    assert Row(label="a", quantity="b", ours=math.pi).verdict is StatementVerdict.REPORTED


def test_a_result_is_well_unless_a_statement_fails_unexplained(tmp_path):
    off = Row(label="a", quantity="b", ours=3.0, limits=(1.0, 2.0))
    result = TOY.run(folder=tmp_path)
    assert result.ok
    assert not type(result)(**fields(result) | {"rows": (off,)}).ok


def fields(result):
    return {name: getattr(result, name) for name in result.__slots__}


def test_the_table_as_text(tmp_path):
    study = Study(**fields(TOY) | {"summarize": summarize_two})
    assert study.run(folder=tmp_path).as_text().splitlines() == [
        "toy: Squares",
        "The paper: they grow",
        "",
        "        quantity  paper  titrant       statement  verdict",
        "one     RMSE      10.2   8.69 ± 0.074  8 … 8.5    fails, explained",
        "second  mean      –      1.23e+05      –          reported",
        "",
        "one: It rained.",
        "Twice.",
        "$ titrant reproduce toy --replications 6",
    ]


def summarize_two(_):
    return Findings(
        rows=(
            Row(
                label="one",
                quantity="RMSE",
                ours=8.691,
                se=0.0739,
                paper=10.19,
                limits=(8.0, 8.5),
                note="It rained.",
            ),
            Row(label="second", quantity="mean", ours=123456.0),
        ),
        series={"k": [0], "square": [0]},
        notes=("Twice.",),
    )


def test_commands_repeat_what_was_set():
    assert command("x", Settings(replications=3)) == "titrant reproduce x --replications 3"
    everything = Settings(replications=3, quick=True, seed=4, simulated=True, data="here.csv")
    expected = "titrant reproduce x --replications 3 --quick --seed 4 --simulated"
    assert command("x", everything) == expected


def test_numbers_are_kept_to_six_digits_and_without_nan(tmp_path):
    series = {"k": [1 / 3, math.nan, math.inf], "square": [12345678.9, 0.0, -1e-9], "n": 7}
    result = TOY.run(folder=tmp_path)
    plain = type(result)(**fields(result) | {"series": series}).to_dict()["series"]
    assert plain == {"k": [0.333333, None, None], "square": [12345700.0, 0.0, -1e-9], "n": 7}


# ── Against a committed result ───────────────────────────────────────────────────────────────────


def test_a_run_does_not_contradict_itself(tmp_path):
    result = TOY.run(folder=tmp_path)
    assert contradictions(result, result.to_dict()) == []


def test_contradictions_are_named(tmp_path):
    result = TOY.run(folder=tmp_path)
    old = result.to_dict()
    old["sample"]["first"] = 0.1
    old["rows"][0]["ours"] = 3.1
    first, second = contradictions(result, old)
    assert first == "first: 0, committed 0.1."
    assert re.match(r"squares, mean: 3\.056, committed 3\.1, tolerance", second)
    old["rows"][0]["se"] = 0.02  # 4 standard errors are 0.08
    assert len(contradictions(result, old)) == 1
    old["rows"][0] |= {"se": 0.006, "ours": 3.1}  # too little for 6 replications,
    assert len(contradictions(result, old)) == 2
    old["settings"]["replications"] = 24  # enough for a run of 6 in place of 24
    assert len(contradictions(result, old)) == 1
    old["rows"][0]["label"] = "cubes"
    assert "not in the committed result" in contradictions(result, old)[1]
    del old["sample"]["first"]
    assert contradictions(result, old)[0] == "first: 0, committed None."


# ── Rows over replications ───────────────────────────────────────────────────────────────────────


def test_rows_worked_out():
    errors = np.array([1.0, 2.0, 3.0])
    # mean 2, se 1/√3; squares 1, 4, 9: mean 14/3, sd √(49/3), se of the root = se/(2·root)
    row = mean_of("a", "mean error", errors)
    assert (row.ours, row.se) == (2.0, pytest.approx(3**-0.5))
    row = rmse_row("a", errors**2)
    assert row.ours == pytest.approx((14 / 3) ** 0.5)
    assert row.se == pytest.approx((49 / 3 / 3) ** 0.5 / (2 * (14 / 3) ** 0.5))
    # 1 ÷ 2, each known to 1/√3 of the sd 1
    row = falls("a", "error", errors, np.array([0.0, 1.0, 2.0]), (3, 9))
    assert row.quantity == "error at n = 9 ÷ at n = 3"
    assert (row.ours, row.limits) == (0.5, (None, 1.0))
    assert row.se == pytest.approx(0.5 * ((1 / 3) / 4 + 1 / 3) ** 0.5)


@pytest.mark.parametrize(
    ("limits", "ours", "told", "holds"),
    [
        ((None, 1.0), -9.0, "≤ 1", True),
        ((None, 1.0), 1.1, "≤ 1", False),
        ((1.0, None), 9.0, "≥ 1", True),
        ((1.0, None), 0.9, "≥ 1", False),
    ],
)
def test_statements_may_have_one_end(limits, ours, told, holds):
    row = Row(label="a", quantity="b", ours=ours, limits=limits)
    assert row.cells()[4] == told
    assert (row.verdict is StatementVerdict.HOLDS) == holds


@pytest.mark.parametrize(
    ("limits", "ours", "told"),
    [
        ((0.966661, 0.966723), 0.966692, ("0.96669", "0.96666 … 0.96672")),  # 0.9667 twice
        ((0.991, 0.9918), 0.99142, ("0.991", "0.991 … 0.992")),
        ((0.1, 0.1), 0.1, ("0.1", "0.1 … 0.1")),
        ((None, 0.966723), 0.966692, ("0.967", "≤ 0.967")),
    ],
)
def test_limits_are_told_to_the_digit_that_parts_them(limits, ours, told):
    cells = Row(label="a", quantity="b", ours=ours, limits=limits).cells()
    assert (cells[3], cells[4]) == told


def test_a_quick_run_has_numbers_and_no_verdicts(tmp_path):
    assert TOY.run(folder=tmp_path).rows[0].verdict is StatementVerdict.HOLDS
    assert TOY.run(folder=tmp_path, quick=True).rows[0].verdict is StatementVerdict.REPORTED


def test_one_replication_has_no_error():
    assert standard_error(np.array([3.0])) == 0.0
    assert rmse_row("a", np.zeros(2)).se == 0.0


# ── The list ─────────────────────────────────────────────────────────────────────────────────────


def test_every_study_says_what_it_is():
    for name, study in STUDIES.items():
        assert study.name == name
        assert study.quick_replications < study.replications
        assert study.claim.endswith(".")
