"""`titrant subgroups` prints what the library says of parts of a log."""

from __future__ import annotations

import json

import pytest

import titrant as tt

POLICY = ("--policy", "constant:35")


def test_parts_are_those_of_the_library(call, csv_log, log, plain):
    by = ("--by", "carrier", "--by", "age:3", "--bandwidth", "8")
    said = call("subgroups", csv_log, *plain, *POLICY, *by, "--json", "out.json")
    assert said.code == 0, said.err
    for text in ("carrier = 1", "all rows", "F(2, ", "95% CI"):
        assert text in said.out
    with open("out.json", encoding="utf-8") as file:  # noqa: PTH123
        found = json.load(file)
    settings = {"estimator": tt.SelfNormalized(), "bandwidth": 8.0}
    same = tt.subgroups(log, tt.Constant(35.0), by={"carrier": None, "age": 3}, **settings)
    for one, part in zip(found["parts"], same, strict=True):
        assert one["label"] == part.label
        assert one["difference"] == pytest.approx(part.difference, rel=1e-6)
        assert one["interval"]["low"] == pytest.approx(part.interval()[0])


def test_against_another_policy(call, csv_log, plain):
    other = ("--against", "low=constant:30", "--by", "age:40,60", "--json", "-")
    said = call("subgroups", csv_log, *plain, *POLICY, *other)
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert (found["policy"], found["against"]) == ("constant:35", "low")
    assert [part["label"] for part in found["parts"]] == ["age ≤ 40", "40 < age ≤ 60", "age > 60"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--by", "age:x"), "neither a number of parts"),
        (("--by", "age:3", "--by", "age:4"), "given twice"),
        (("--by", "nope"), "There is no context `nope`"),
        (("--by", "age", "--policy", "constant:3"), "takes one policy"),
    ],
)
def test_what_cannot_be_asked(call, csv_log, plain, options, words):
    said = call("subgroups", csv_log, *plain, *POLICY, *options)
    assert said.code == 2
    assert words in said.err
