"""One command takes in a table as it is, says every decision, and serves rows with gaps after."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from causaldata import nhefs

import titrant as tt

COLUMNS = ("--treatment", "dose", "--outcome", "loss")
FAST = (
    *("--estimator", "sn", "--propensity-model", "linear-gaussian"),
    *("--bandwidth", "rule-of-thumb", "--allow-untrusted"),
)
POLICY = ("--policy", "p=constant:4")


@pytest.fixture(scope="module")
def messy() -> pd.DataFrame:
    """Return 400 visits of 80 patients as a spreadsheet holds them."""
    rng = np.random.default_rng(5)
    n = 400
    age = rng.uniform(20, 80, n).round(1)
    dose = 1 + age / 20 + rng.normal(size=n)
    table = pd.DataFrame(
        {
            "patient": [f"P-{i % 80}" for i in range(n)],
            "visit": pd.date_range("2023-11-01", periods=n, freq="17h").strftime("%Y-%m-%d"),
            "age": age,
            "sex": rng.choice(["female", "male"], n),
            "weight": rng.uniform(0.5, 2.0, n).round(3),
            "dose": dose.round(3),
            "loss": ((dose - 3) ** 2 + rng.normal(size=n)).round(3),
        }
    )
    table.loc[rng.random(n) < 0.1, "age"] = np.nan
    table.loc[rng.random(n) < 0.05, "sex"] = None
    table.loc[[3, 9], "dose"] = np.nan
    table.loc[[9, 20, 30], "loss"] = np.nan
    return table


@pytest.fixture
def messy_csv(messy, tmp_path) -> Path:
    path = tmp_path / "visits.csv"
    messy.to_csv(path, index=False)
    return path


def test_each_gap_that_needs_a_decision_is_refused_with_the_options(call, messy_csv):
    said = call("evaluate", messy_csv, *COLUMNS, *FAST, *POLICY)
    assert said.code == 2
    assert "missing in 2 of 400 rows (first rows, counting from 0: 3, 9)." in said.err
    assert "Give `--missing-treatment drop` to leave these rows out." in said.err
    said = call("evaluate", messy_csv, *COLUMNS, "--missing-treatment", "drop", *FAST, *POLICY)
    assert said.code == 2
    for option in ("weight", "drop", "refuse"):
        assert f"`--missing-outcome {option}`" in said.err


def test_every_decision_is_said_and_kept(call, messy_csv, messy):
    said = call(
        *("evaluate", messy_csv, *COLUMNS, "--groups", "patient", "--weights", "weight"),
        *("--missing-treatment", "drop", "--missing-outcome", "drop", *FAST, *POLICY),
        *("--json", "out.json", "--html", "page.html"),
    )
    assert said.code == 0, said.err
    rows = (
        "400 rows → 396 used: 2 left out because the treatment column `dose` is missing; 2 left "
        "out because the outcome column `loss` is missing."
    )
    assert rows in said.err
    used = messy.dropna(subset=["dose", "loss"])
    gaps, median = int(used["age"].isna().sum()), float(used["age"].median())
    assert f"Column `age` is missing in {gaps} of 396 rows: the median, {median:g}," in said.err
    assert "Column `sex` is text: encoded 0/1 as `sex=male`, `sex=missing`" in said.err
    assert "`visit.weekday`, `visit.days` stand for it." in said.err
    contexts = next(line for line in said.err.splitlines() if line.startswith("Context: "))
    assert "patient" not in contexts
    assert "weight" not in contexts
    data = json.loads(Path("out.json").read_text(encoding="utf-8"))["data"]
    assert (data["rows_in"], data["rows_used"]) == (400, 396)
    assert [step["rows"] for step in data["steps"]] == [2, 2]
    assert {note["column"] for note in data["columns"]} == {"visit", "age", "sex", "patient"}
    assert "Column `patient` says which rows belong together and is no context" in said.err
    page = Path("page.html").read_text(encoding="utf-8")
    assert "What was done to the data</h2>" in page
    assert "400 rows → 396 used" in page
    # The Python interface does the same to the same table.
    log = tt.LoggedData.from_frame(
        messy.assign(visit=pd.to_datetime(messy["visit"])),
        treatment="dose",
        outcome="loss",
        groups="patient",
        weights="weight",
        missing_treatment="drop",
        missing_outcome="drop",
    )
    assert log.flow.to_dict() == data
    found = tt.evaluate(
        log,
        tt.Constant(4.0),
        estimator=tt.SelfNormalized(),
        propensity=tt.LinearGaussian(),
        bandwidth=tt.RuleOfThumb(),
        allow_untrusted=True,
    )
    assert json.loads(Path("out.json").read_text(encoding="utf-8"))["value"] == found.value


def test_a_page_of_plain_numbers_says_that_nothing_was_done(call, csv_log, plain):
    said = call("evaluate", csv_log, *plain, "--policy", "constant:35", "--html", "page.html")
    assert said.code == 0
    assert "Every column was taken as it is." in Path("page.html").read_text(encoding="utf-8")


def test_the_choices_are_in_the_file_of_the_run(call, messy_csv):
    asked = ("--groups", "patient", "--weights", "weight", "--missing-treatment", "drop")
    asked += ("--missing-outcome", "drop", "--save-config", "run.toml", "--json", "first.json")
    assert call("evaluate", messy_csv, *COLUMNS, *asked, *FAST, *POLICY).code == 0
    assert 'groups = "patient"' in Path("run.toml").read_text(encoding="utf-8")
    said = call("evaluate", "--config", "run.toml", "--json", "second.json")
    assert said.code == 0, said.err
    assert Path("first.json").read_text() == Path("second.json").read_text()


@pytest.mark.usefixtures("plain_models")
def test_rows_with_gaps_are_served_as_the_rule_was_trained(call, messy_csv, messy):
    said = call(
        *("learn", messy_csv, *COLUMNS, "--context", "age,sex,visit", "--models", "ridge"),
        *("--policy-class", "linear"),
        *("--missing-treatment", "drop", "--missing-outcome", "drop", "--allow-untrusted"),
        *("--propensity-model", "linear-gaussian", "--json", "learned.json"),
    )
    assert said.code == 0, said.err
    assert json.loads(Path("learned.json").read_text(encoding="utf-8"))["data"]["rows_used"] == 396
    training = json.loads(Path("policy.json").read_text(encoding="utf-8"))["training"]
    used = messy.dropna(subset=["dose", "loss"])
    assert training["version"] == 2
    assert training["fills"] == {"age": used["age"].median()}
    assert training["levels"] == {"sex": ["female", "male", "missing"]}
    served = "age,sex,visit,note\n50,male,2024-01-05,007\n,NA,2024-01-05,\n,,2024-01-05,x\n"
    Path("new.csv").write_text(served, encoding="utf-8")
    said = call("recommend", "policy.json", "new.csv", "-o", "doses.csv", "--exact")
    assert said.code == 0, said.err
    with Path("doses.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["note"] for row in rows] == ["007", "", "x"]
    assert {row["outside_training"] for row in rows} == {"false"}
    policy = tt.load_policy("policy.json")
    filled = {"age": [training["fills"]["age"]], "age is missing": [1.0], "sex=missing": [1.0]}
    filled |= {"sex=male": [0.0], "visit.year": [2024.0], "visit.month": [1.0]}
    dose = policy({**filled, "visit.day": [5.0], "visit.weekday": [5.0]})[0]
    assert [float(row["dose"]) for row in rows[1:]] == pytest.approx([dose, dose])
    # A text without a gap in training has none to be served by.
    assert float(rows[0]["dose"]) != pytest.approx(dose)


def test_a_policy_without_names_takes_no_gaps(call):
    tt.Linear([1.0, 2.0], 3.0).save("policy.json")
    Path("new.csv").write_text("age,sex\n50,male\n,female\n", encoding="utf-8")
    said = call("recommend", "policy.json", "new.csv")
    assert said.code == 2
    assert "values are missing in `age`. Name the columns by `--context`, or fill" in said.err


def test_texts_that_an_older_file_knows_are_no_gaps(call):
    training = {"version": 1, "rows": 9, "context": {"sex=NA": [0, 1], "sex=m": [0, 1]}}
    training["levels"] = {"sex": ["NA", "f", "m"]}
    policy = tt.Linear([1.0, 2.0], 3.0, features=["sex=NA", "sex=m"]).to_dict()
    Path("policy.json").write_text(json.dumps({**policy, "training": training}), encoding="utf-8")
    Path("new.csv").write_text("sex\nNA\nm\nf\nx\n", encoding="utf-8")
    said = call("recommend", "policy.json", "new.csv")
    rows = [line.split(",") for line in said.out.replace('"', "").splitlines()[1:]]
    assert [(float(dose), *marks) for _, dose, *marks in rows] == [
        (4.0, "false", ""),
        (5.0, "false", ""),
        (3.0, "false", ""),
        (3.0, "true", "`sex` is 'x'", " dosed as 'NA'"),
    ]


def test_files_in_parts_say_how_gaps_can_be_filled(call, messy):
    messy.dropna(subset=["dose", "loss"]).to_parquet("visits.parquet")
    said = call("evaluate", "visits.parquet", *COLUMNS, "--context", "age", "--in-parts", *POLICY)
    assert said.code == 2
    assert "context column `age`" in said.err
    assert "read the log as a whole (without `--in-parts`), where gaps" in said.err
    dropped = ("--missing-outcome", "drop", "--in-parts", *POLICY)
    said = call("evaluate", "visits.parquet", *COLUMNS, "--context", "age", *dropped)
    assert said.code == 2
    assert "A log that is read part by part keeps all its rows." in said.err
    dated = ("--treated-on", "visit", "--in-parts", *POLICY)
    said = call("evaluate", "visits.parquet", *COLUMNS, "--context", "age", *dated)
    assert said.code == 2
    assert "A log that is read part by part is not searched for dates." in said.err


# ── Tables of others ─────────────────────────────────────────────────────────────────────────────

LEAD = os.environ.get("TITRANT_LEAD")
WARFARIN = os.environ.get("TITRANT_WARFARIN")


def test_smokers_as_they_are_shipped(call):
    nhefs.load_pandas().data.to_csv("nhefs.csv", index=False)
    said = call(
        *("evaluate", "nhefs.csv", "--treatment", "smkintensity82_71", "--outcome", "wt82_71"),
        *("--missing-outcome", "drop", "--policy", "constant:0", *FAST, "--json", "out.json"),
        *("--context", "sex,age,race,education,smokeintensity,smokeyrs,active,exercise,wt71"),
        *("--context", "income,price71,tax71,cholesterol"),
    )
    assert said.code == 0, said.err
    assert "1,629 rows → 1,566 used: 63 left out because the outcome column `wt82_71`" in said.err
    filled = [line for line in said.err.splitlines() if "the median" in line]
    assert [line.split("`")[1] for line in filled] == ["income", "price71", "tax71", "cholesterol"]
    assert "`price71 is missing` says where, these being the same rows." in said.err
    # In Python the same table has categories, and no file between.
    log = tt.LoggedData.from_frame(
        nhefs.load_pandas().data,
        treatment="smkintensity82_71",
        outcome="wt82_71",
        context=["sex", "education", "income"],
        missing_outcome="drop",
    )
    assert len(log) == 1566
    assert "income is missing" in log.names
    assert "Column `education` is text: encoded 0/1 as" in str(log.flow)


@pytest.mark.skipif(not LEAD, reason="the survey's table is not part of titrant: set TITRANT_LEAD")
def test_children_as_the_survey_has_them(call):
    said = call(
        *("evaluate", LEAD, "--treatment", "logBLL", "--outcome", "Math", "--weights", "MEC_wt"),
        *("--context", "Age,Male,Race,PIR,Enough_Food,Smoke_in_Home,Smoke_Pregnant,NICU"),
        *("--policy", "constant:0.5", *FAST, "--json", "out.json"),
    )
    assert said.code == 0, said.err
    assert "encoded 0/1 as `Race=Hispanic`, `Race=Other`, `Race=White` (all 0: `Black`)" in said.err
    result = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert result["data"]["rows_used"] == 2521


@pytest.mark.long
@pytest.mark.skipif(
    not WARFARIN, reason="the consortium's table is not part of titrant: set TITRANT_WARFARIN"
)
def test_patients_as_the_consortium_has_them(call):
    dose, inr = "Therapeutic Dose of Warfarin", "INR on Reported Therapeutic Dose of Warfarin"
    said = call(
        *("evaluate", WARFARIN, "--treatment", dose, "--outcome", inr, *FAST),
        *("--missing-treatment", "drop", "--missing-outcome", "drop"),
        *("--policy", "constant:35", "--json", "out.json"),
    )
    assert said.code == 0, said.err
    assert "5,700 rows → 4,968 used: 172 left out because the treatment column" in said.err
    data = json.loads(Path("out.json").read_text(encoding="utf-8"))["data"]
    assert [step["rows"] for step in data["steps"]] == [172, 560]
    done = {note["column"]: note["done"] for note in data["columns"]}
    assert done["PharmGKB Subject ID"] == "left out"
    assert done["Gender"] == "encoded"
    assert done["Height (cm)"] == "filled"
    assert "`Gender=missing`" in said.err
    for note in data["columns"]:
        assert note["note"] in said.err


# The same by the default call, all columns being contexts.

DOSE = "Therapeutic Dose of Warfarin"
INR = "INR on Reported Therapeutic Dose of Warfarin"
needs_lead = pytest.mark.skipif(
    not LEAD, reason="the survey's table is not part of titrant: set TITRANT_LEAD"
)
needs_warfarin = pytest.mark.skipif(
    not WARFARIN, reason="the consortium's table is not part of titrant: set TITRANT_WARFARIN"
)


class AsItIs(NamedTuple):
    """A table that is evaluated by one command, and what must be said of it."""

    table: str | None
    command: tuple[str, ...]
    left_out: tuple[int, ...]
    """Rows, by reason."""
    done: dict[str, int]
    """Columns that were not taken as they are, by what was done."""
    contexts: int
    doubts: set[str]
    """Checks that must not be ok."""


SMOKERS = AsItIs(
    "nhefs.csv",
    (
        *("--treatment", "smkintensity82_71", "--policy", "constant:0"),
        *("--outcome", "wt82_71", "--missing-outcome", "drop"),
    ),
    (63,),
    {"filled": 17, "left out": 1},
    73,
    {"dropped_rows", "constant_contexts", "key_contexts", "repeated_contexts", "leaked_outcomes"},
)
CHILDREN = AsItIs(
    LEAD,
    (
        *("--treatment", "logBLL", "--policy", "constant:0.5"),
        *("--outcome", "Math", "--weights", "MEC_wt"),
    ),
    (),
    {"encoded": 1},
    13,
    set(),
)
PATIENTS = AsItIs(
    WARFARIN,
    (
        *("--treatment", DOSE, "--missing-treatment", "drop", "--policy", "constant:35"),
        *("--outcome", INR, "--missing-outcome", "drop"),
    ),
    (172, 560),
    {"encoded": 35, "filled": 25, "left out": 3},
    217,
    {"dropped_rows", "constant_contexts", "repeated_contexts"},
)


@pytest.mark.long
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(SMOKERS, id="NHEFS"),
        pytest.param(CHILDREN, id="lead", marks=needs_lead),
        pytest.param(PATIENTS, id="warfarin", marks=needs_warfarin),
    ],
)
def test_the_default_call_announces_every_decision_about_a_table(case, call):
    nhefs.load_pandas().data.to_csv("nhefs.csv", index=False)
    said = call("evaluate", case.table, *case.command, "--json", "out.json")
    assert said.code == 0, said.err
    result = json.loads(Path("out.json").read_text(encoding="utf-8"))
    data, checks = result["data"], result["diagnostics"]["checks"]
    assert tuple(step["rows"] for step in data["steps"]) == case.left_out
    assert data["rows_in"] - sum(case.left_out) == data["rows_used"] == result["rows"]
    # Each decision in a sentence, and no sentence about a column that is not in the JSON.
    assert Counter(note["done"] for note in data["columns"]) == case.done
    for note in data["columns"]:
        assert note["note"] in said.err
    announced = [line for line in said.err.splitlines() if line.startswith("Column ")]
    assert len(announced) == len(data["columns"]) == sum(case.done.values())
    if case.left_out:
        rows = f"{data['rows_in']:,} rows → {data['rows_used']:,} used: "
        assert said.err.startswith(rows + f"{case.left_out[0]:,} left out because the")
    # All contexts in the JSON, the first dozen of many on the terminal.
    assert len(data["contexts"]) == len(set(data["contexts"])) == case.contexts
    shown = ", ".join(f"`{name}`" for name in data["contexts"][:12])
    more = f" and {case.contexts - 12} more." if case.contexts > 13 else ""
    assert f"Context: {shown}{more}" in said.err
    # Defaults, not plain models, and doubts before the answer.
    assert "CrossPropensity" in result["method"]["propensity"]
    assert result["method"]["estimator"].startswith("DoublyRobust(outcome=None")
    found = {name for name, check in checks.items() if check["verdict"] != "ok"}
    assert case.doubts <= found
    assert np.isfinite([result["value"], result["se"]]).all()


@pytest.mark.long
@needs_lead
def test_sampling_weights_that_are_not_given_are_asked_for(call):
    said = call(
        *("evaluate", LEAD, "--treatment", "logBLL", "--outcome", "Math", *FAST),
        *("--policy", "constant:0.5", "--json", "out.json"),
    )
    assert "'MEC_wt' is called as sampling weights are" in " ".join(said.err.split())
    result = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert result["diagnostics"]["verdict"] == "warn"


def test_an_id_that_has_no_part_in_the_log_is_pointed_out(call, messy_csv):
    options = "--context", "age", "--missing-treatment", "drop", "--missing-outcome", "drop"
    said = call("evaluate", messy_csv, *COLUMNS, *FAST, *POLICY, *options)
    assert "groups='patient'" in said.err
    said = call("evaluate", messy_csv, *COLUMNS, *FAST, *POLICY, *options, "--groups", "patient")
    assert "groups='patient'" not in said.err
