"""`titrant simulate` writes what a design draws, `titrant recommend` what a policy says."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import titrant as tt
from titrant.data.files import read_table
from titrant.data.simulate import DESIGNS

PATIENTS = "name,weight,sex\nAda,80,female\nBob,70.5,male\n"


@pytest.mark.parametrize("path", ["log.csv", "log.parquet", "log.feather", "log.arrow"])
def test_a_simulated_log_holds_the_draws_of_its_design(call, path):
    said = call("simulate", "dosing", "-n", 50, "--seed", 7, "-o", path)
    assert said.code == 0
    drawn = DESIGNS["dosing"].draw(50, 7).to_columns(treatment="dose", outcome="loss")
    written = read_table(path)
    assert written.column_names == list(drawn)
    for name, column in drawn.items():
        np.testing.assert_array_equal(written[name].to_numpy(), column)


def test_the_truth_lies_beside_the_log(call):
    assert call("simulate", "dosing", "-n", 50, "--policy", "flat=constant:35").code == 0
    truth = json.loads(Path("log.truth.json").read_text(encoding="utf-8"))
    design = DESIGNS["dosing"]
    assert truth["values"] == {"flat": design.value(tt.Constant(35.0))}
    assert truth["logged_value"] == design.logged_value()
    assert truth["best_value"] == design.value(design.best) == 3.0
    assert truth["bounds"] == [5.0, 75.0]
    assert (truth["design"], truth["rows"], truth["seed"]) == ("dosing", 50, 0)


def test_unbounded_designs_have_no_bounds(call):
    call("simulate", "synthetic", "-n", 5, "--no-propensity")
    truth = json.loads(Path("log.truth.json").read_text(encoding="utf-8"))
    assert truth["bounds"] == [None, None]
    assert read_table("log.csv").column_names == ["x", "dose", "loss"]


def test_standard_output_is_the_same_csv(call):
    call("simulate", "dosing", "-n", 20)
    said = call("simulate", "dosing", "-n", 20, "-o", "-")
    assert said.out == Path("log.csv").read_text(encoding="utf-8")
    assert said.err == ""


def test_a_saved_simulation_repeats(call):
    call("simulate", "dosing", "-n", 20, "--seed", 3, "--save-config", "run.toml")
    first = Path("log.csv").read_bytes()
    Path("log.csv").unlink()
    assert call("simulate", "--config", "run.toml").code == 0
    assert Path("log.csv").read_bytes() == first


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("dosin",), "'dosin' is not one of"),
        (("dosing", "-n", "1"), "1 is not in the range 2<=x"),
        (("dosing", "-o", "log.xlsx"), "The ending of `log.xlsx` names no format."),
        (("dosing", "-o", "no/log.csv"), "The folder `no` does not exist."),
    ],
)
def test_wrong_requests(call, tmp_path, arguments, sentence):
    said = call("simulate", *arguments)
    assert said.code == 2
    assert sentence in said.err
    assert list(tmp_path.iterdir()) == []


# ── recommend ────────────────────────────────────────────────────────────────────────────────────
@pytest.fixture
def patients(tmp_path) -> Path:
    path = tmp_path / "patients.csv"
    path.write_text(PATIENTS, encoding="utf-8")
    return path


def test_doses_by_the_features_of_the_policy(call, patients):
    # 10 + 0.5·80 + 0 = 50 for Ada; 10 + 0.5·70.5 + 3 = 48.25 for Bob.
    tt.Linear([0.5, 3.0], 10.0, features=["weight", "sex=male"]).save("policy.json")
    assert call("recommend", "policy.json", patients, "-o", "doses.csv").code == 0
    doses = pa.csv.read_csv("doses.csv")
    assert doses.column_names == ["name", "weight", "sex", "dose"]
    assert doses["dose"].to_pylist() == [50.0, 48.25]


def test_a_policy_without_names_takes_the_columns_named(call, patients):
    tt.Linear([0.5], 10.0).save("policy.json")
    said = call("recommend", "policy.json", patients, "--context", "weight", "--treatment", "mg")
    assert said.code == 0
    assert said.out.splitlines() == [
        '"name","weight","sex","mg"',
        '"Ada",80,"female",50',
        '"Bob",70.5,"male",45.25',
    ]


def test_vector_doses_and_tables_without_numbers(call):
    tt.Constant([1.0, 2.0]).save("policy.json")
    Path("ids.csv").write_text("when\n2020-01-01\n2020-01-02\n")
    said = call("recommend", "policy.json", "ids.csv")
    assert said.code == 0, said.err
    lines = list(csv.reader(said.out.splitlines()))
    assert lines == [
        ["when", "dose_0", "dose_1"],
        ["2020-01-01", "1", "2"],
        ["2020-01-02", "1", "2"],
    ]
    assert not said.err  # a constant has no context that a column could be left out of


@pytest.mark.parametrize(
    ("features", "options", "sentence"),
    [
        (["wight"], (), "did you mean `weight`?"),
        (["weight"], ("--treatment", "sex"), "The table already has a column `sex`."),
        (["weight"], ("--treatment", "a,b"), "The policy gives 1 dose(s); got 2 names."),
        (["sex"], (), "The context column `sex` must be numeric"),
    ],
)
def test_wrong_tables(call, patients, features, options, sentence):
    tt.Linear([0.5], 10.0, features=features).save("policy.json")
    said = call("recommend", "policy.json", patients, *options)
    assert said.code == 2
    assert sentence in said.err


def test_a_file_that_is_no_policy(call, patients):
    said = call("recommend", patients, patients)
    assert said.code == 2
    assert "is not JSON" in said.err
