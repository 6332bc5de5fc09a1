"""The rule as data: what a page evaluates for one person, and how many in the log were alike."""

from __future__ import annotations

import json
import math
from importlib.resources import files
from itertools import product
from typing import get_args

import numpy as np
import pandas as pd
import pytest

import titrant as tt
import titrant.reporting
from titrant.policies.formats.formulas import Formula, IsMissing, Number, Test
from titrant.reporting.whom import person


def table(n=210, seed=0) -> pd.DataFrame:
    """People with numbers, texts, gaps, and a yes or no."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 80, n).round(1)
    age[rng.uniform(size=n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "age": age,
            "kg": rng.normal(80, 12, n).round(1),
            "sex": rng.choice(["female", "male", 'it\'s "x"</script>'], n),
            "carrier": rng.integers(0, 2, n),
            "dose": rng.normal(35, 9, n),
            "loss": rng.normal(size=n),
        }
    )


TABLE = table()
PEOPLE = tt.LoggedData.from_frame(
    TABLE, treatment="dose", outcome="loss", context=["age", "kg", "sex", "carrier"]
)
NAMES = PEOPLE.names
P = len(NAMES)
_RNG = np.random.default_rng(1)
_SLOPES = _RNG.normal(size=P)
_LINEAR = tt.Linear(_SLOPES, 20.0, features=NAMES)
RULES = {
    "linear": _LINEAR,
    "clipped": tt.Clipped(_LINEAR, 5.0, 60.0),
    "rounded and clipped": tt.Clipped(tt.Rounded(_LINEAR, 2.5, 1.0), None, 61.0),
    "limits of each row": tt.InLimits(
        _LINEAR, steps=2.5, at_least=5.0, at_most="kg", current="kg", largest_change=45.0
    ),
    "strengths of each row": tt.InLimits(
        _LINEAR, steps=[5, 20, 40, 45, 90], at_most="kg", current="kg", largest_change=45.0
    ),
    "additive": tt.Additive(
        *(_SLOPES, 3.0),
        knots=[[20, 40, 60, 80] if name in ("age", "kg") else [] for name in NAMES],
        bends=_RNG.normal(size=8),
        reach=np.full(P, 5.0),
        features=NAMES,
    ),
    "products": tt.Products(
        *(_SLOPES, 3.0),
        pairs=list(product(range(2), range(2))),
        bends=_RNG.normal(size=4),
        center=PEOPLE.context.mean(axis=0),
        size=PEOPLE.context.std(axis=0),
        features=NAMES,
    ),
    "tree": tt.Tree([0, 2], [41.3, 0.5], [-1, -2], [1, -3], [10.0, 20.0, 31.4], features=NAMES),
    "linear tree": tt.LinearTree(
        *([0, 2], [41.3, 0.5], [-1, -2], [1, -3], [10.0, 20.0, 31.4]),
        slopes=0.1 * np.abs(np.stack([_SLOPES, 0.0 * _SLOPES, _SLOPES])),
        lower=[5.0, 20.0, 31.0],
        upper=[15.0, 20.0, 36.0],
        features=NAMES,
    ),
    "bumps": tt.RBF(
        PEOPLE.context[:4], _RNG.normal(size=4), scale=30.0, intercept=3.0, features=NAMES
    ),
}


def row_of(i: int) -> dict[str, object]:
    """The columns of a person as a form takes them; what is missing is None."""
    row = TABLE.iloc[i].to_dict()
    return {name: None if pd.isna(value) else value for name, value in row.items()}


def evaluated(formula, row):
    """What nested lists say, by the letter."""
    if not isinstance(formula, list):
        return formula
    kind, *parts = formula
    if kind == "Column":
        return row[parts[0]]
    of_several = {"Sum": sum, "Product": math.prod, "Largest": max, "Smallest": min}
    if kind in of_several:
        return of_several[kind]([evaluated(one, row) for one in parts[0]])
    if kind == "Choice":
        return evaluated(parts[1] if holds(parts[0], row) else parts[2], row)
    if kind == "Within":
        low, high = (end if end is not None else side for end, side in
                     zip(parts[1:], (-math.inf, math.inf), strict=True))  # fmt: skip
        return min(max(evaluated(parts[0], row), low), high)
    plain = {
        "Unless": lambda v: v,
        "Ratio": lambda v: v / parts[1],
        "Exponential": math.exp,
        "Floor": math.floor,
        "Stairs": lambda v: parts[2][sum(start <= v for start in parts[1])],
    }
    return plain[kind](evaluated(parts[0], row))


def holds(test, row):
    kind, of, *by = test
    if kind == "AtMost":
        return evaluated(of, row) <= by[0]
    if kind == "Above":
        return evaluated(of, row) > evaluated(by[0], row)
    value = row[of[1]]
    return value == by[0] if kind == "Reads" else value is None


@pytest.mark.parametrize("name", RULES)
def test_the_data_are_the_rule(name):
    policy = RULES[name]
    found = json.loads(json.dumps(person(policy, PEOPLE, 1.0)))
    wanted = policy(PEOPLE.context)
    for i in range(0, len(PEOPLE), 5):
        row = row_of(i)
        assert not any(holds(test, row) for test in (*found["needed"], *found["impossible"]))
        doses = [evaluated(dose, row) for dose in found["stages"][-1]["doses"]]
        np.testing.assert_allclose(doses, np.atleast_1d(wanted[i]), rtol=1e-12)


def test_the_page_knows_whom_the_limits_leave_no_dose():
    policy = tt.policies.InLimits(_LINEAR, at_least=30.0, at_most="kg")
    found = json.loads(json.dumps(person(policy, PEOPLE, 1.0)))
    (test,) = found["impossible"]
    for kg, none in ((29.0, True), (30.0, False)):
        assert holds(test, {**row_of(3), "kg": kg}) is none
    free = tt.policies.InLimits(_LINEAR, at_least=30.0, at_most=40.0)
    assert person(free, PEOPLE, 1.0)["impossible"] == []


# A kind that the page does not know would stop all of its scripts.
def test_the_page_knows_every_kind_of_formula():
    script = files(titrant.reporting).joinpath("templates", "page.js").read_text("utf-8")
    for kind in get_args(Formula):
        assert kind is Number or f'case "{kind.__name__}":' in script
    for kind in get_args(Test):
        assert kind is IsMissing or f'kind === "{kind.__name__}"' in script


def test_steps_and_limits_are_told_in_their_order():
    found = person(RULES["rounded and clipped"], PEOPLE, 1.0)
    said = [stage["words"] for stage in found["stages"]]
    assert said == ["by the rule", "rounded to steps of 2.5", "at most 61"]
    linear = person(RULES["linear"], PEOPLE, 1.0)
    row = row_of(3)
    parts = [evaluated(term["adds"], row) for term in linear["terms"]]
    assert 20.0 + sum(parts) == pytest.approx(_LINEAR(PEOPLE.context)[3])


def test_fields_ask_for_columns_not_for_what_was_made_of_them():
    fields = {field["column"]: field for field in person(_LINEAR, PEOPLE, 1.0)["fields"]}
    assert list(fields) == ["age", "kg", "sex", "carrier"]
    assert fields["age"]["missing"]
    assert fields["sex"]["kind"] == "text"
    assert fields["sex"]["start"] == TABLE["sex"].mode()[0]
    assert fields["carrier"]["levels"] == ["0", "1"]
    assert fields["kg"]["low"] == TABLE["kg"].min()
    assert fields["kg"]["low"] <= fields["kg"]["start"] <= fields["kg"]["high"]


def test_people_are_counted_once_by_their_contexts_and_doses():
    near = person(_LINEAR, PEOPLE, 2.0)["near"]
    counts = np.array(near["counts"])
    assert counts.sum() == len(PEOPLE) == near["rows"]
    cell = np.zeros(len(PEOPLE), dtype=int)
    for one in near["contexts"]:
        x = PEOPLE.context[:, NAMES.index(one["context"])]
        part = np.array([sum(cut < value for cut in one["cuts"]) for value in x])
        assert len(one["words"]) == len(one["cuts"]) + 1
        cell = cell * (len(one["cuts"]) + 1) + part
    np.testing.assert_array_equal(counts.sum(axis=1), np.bincount(cell, minlength=len(counts)))


def test_what_has_no_formula_has_no_form():
    assert person(tt.Constant(3.0), PEOPLE, 1.0) is None
    assert person(tt.Clipped(lambda x: x[:, 0], 0.0, 1.0), PEOPLE, 1.0) is None
