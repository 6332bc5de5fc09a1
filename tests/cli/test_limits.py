"""Limits as they are typed, and what `titrant recommend --explain` tells of each person."""

import json
from pathlib import Path

import numpy as np
import pyarrow.csv as pa_csv
import pytest

import titrant as tt
from titrant.cli.commands.learn import numbers

pytestmark = pytest.mark.usefixtures("plain_models")
COLUMNS = (
    *("--treatment", "dose", "--outcome", "loss", "--propensity", "propensity"),
    *("--context", "weight,age,carrier", "--bounds", "5,75", "--models", "ridge"),
)


def test_numbers_are_one_or_several():
    assert numbers("2.5") == 2.5
    assert numbers("1,2,5") == [1.0, 2.0, 5.0]
    assert numbers("4,") == [4.0]


@pytest.mark.long
def test_limits_are_kept_and_told(call, csv_log):
    typed = ("--steps", "2.5", "--at-most", "weight", "--increasing", "age", "--mean-dose", "30")
    said = call(
        *("learn", csv_log, *COLUMNS, "--policy-class", "linear", *typed),
        *("--json", "out.json", "--html", "page.html"),
        "--allow-untrusted",
    )
    assert said.code == 0, said.err
    policy = tt.load_policy("policy.json")
    assert isinstance(policy, tt.InLimits)
    assert (policy.steps, policy.at_most) == (2.5, "weight")
    limits = json.loads(Path("out.json").read_text(encoding="utf-8"))["limits"]
    names = [one["limit"] for one in limits["costs"]]
    assert names == ["steps", "at most", "monotone", "mean dose", "all limits"]
    assert limits["budget"] == 30.0
    assert limits["finding"].split(".")[0] in " ".join(said.out.split())
    assert "Limits of the rule" in Path("page.html").read_text(encoding="utf-8")
    assert "in steps of 2.5, at most weight" in " ".join(said.out.split())

    # What is told of each person, and who gets nothing.
    Path("new.csv").write_text("weight,age,carrier\n80,50,0\n8000,50,0\n", encoding="utf-8")
    told = call("recommend", "policy.json", "new.csv", "--explain", "-o", "doses.csv")
    assert told.code == 0, told.err
    rows = pa_csv.read_csv("doses.csv").to_pydict()
    assert rows["seen"] == [True, False]
    assert rows["dose"][0] == policy({"weight": [80], "age": [50], "carrier": [0]})[0]
    assert rows["dose"][1] is None
    assert rows["dose_from"][0] <= rows["dose"][0] <= rows["dose_to"][0]
    assert "for weight 80" in rows["reason"][0]
    assert "1 of 2 rows such people or doses were not in the log" in told.err
    kept = call("recommend", "policy.json", "new.csv", "--explain", "--keep", "age")
    assert kept.out.splitlines()[2].split(",")[3] == "50"


@pytest.mark.long
def test_a_run_within_limits_is_repeated_by_its_file(call, csv_log):
    typed = ("--steps", "2.5", "--at-most", "weight", "--increasing", "age", "--mean-dose", "30")
    first = call(
        *("learn", csv_log, *COLUMNS, "--policy-class", "linear", *typed),
        *("--save-config", "run.toml", "--allow-untrusted"),
    )
    assert first.code == 0, first.err
    again = call("learn", "--config", "run.toml", "-o", "again.json")
    assert again.code == 0, again.err
    assert tt.load_policy("again.json") == tt.load_policy("policy.json")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--steps", "many"), "neither a number nor numbers"),
        (("--current", "age"), "give both, or neither"),
        (("--cap", "harm"), "not a column, a colon and a number"),
        (("--equal-across", "sex:much"), "not a column, a colon and a number"),
        (("--at-most", "wish"), "wish"),
    ],
)
def test_wrong_limits_are_refused(call, csv_log, typed, said):
    found = call("learn", csv_log, *COLUMNS, *typed)
    assert found.code == 2
    assert said in " ".join(found.err.split())


def test_a_policy_that_knows_no_people_explains_nothing(call):
    tt.Linear([1.0], features=["age"]).save("bare.json")
    Path("new.csv").write_text("age\n50\n", encoding="utf-8")
    assert call("recommend", "bare.json", "new.csv", "--explain").code == 2
    assert call("recommend", "bare.json", "new.csv", "--margin", "1").code == 2
    np.testing.assert_array_equal(tt.load_policy("bare.json")({"age": [50]}), [50.0])
