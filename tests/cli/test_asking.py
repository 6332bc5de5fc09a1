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


QUICK = ("--bandwidth", "8", "--json", "-")


BOTH = ("--policy", "constant:35", "--policy", "status-quo", "--bandwidth", "8")


def by_two_outcomes(plain):
    columns = [text.replace("weight,age,carrier", "age,carrier") for text in plain]
    columns[columns.index("loss")] = "loss,weight"
    return columns


def test_outcomes_are_those_of_the_library(call, csv_log, log, plain):
    said = call("outcomes", csv_log, *by_two_outcomes(plain), *BOTH, "--json", "out.json")
    assert said.code == 0, said.err
    assert "constant:35 − status-quo" in said.out
    assert "95% at once" in said.out
    assert "each gives something up" in said.out or "is beaten by" in said.out
    with open("out.json", encoding="utf-8") as file:  # noqa: PTH123
        found = json.load(file)
    assert list(found["outcomes"]) == ["loss", "weight"]
    value = found["outcomes"]["weight"]["estimates"]["status-quo"]["value"]
    assert value == pytest.approx(log.context[:, 0].mean())


def test_a_page_of_several_outcomes(call, csv_log, plain):
    said = call("outcomes", csv_log, *by_two_outcomes(plain), *BOTH, "--html", "page.html")
    assert said.code == 0, said.err
    with open("page.html", encoding="utf-8") as file:  # noqa: PTH123
        page = file.read()
    assert "All outcomes at once" in page
    assert "constant:35 − status-quo" in page
    data = page.partition('id="titrant-result">')[2].partition("</script>")[0]
    tables = json.loads(data)["trade_offs"]
    assert tables["differences"][1][0] == "constant:35 − status-quo"


@pytest.mark.parametrize(
    "said_wrong",
    [
        ("loss", (), "takes several outcomes"),
        ("loss,weight", ("--rewards", "joy"), "`joy` is none of the outcomes"),
    ],
)
def test_outcomes_that_are_no_several(call, csv_log, plain, said_wrong):
    outcome, more, words = said_wrong
    columns = by_two_outcomes(plain)
    columns[columns.index("loss,weight")] = outcome
    said = call("outcomes", csv_log, *columns, *BOTH, *more)
    assert said.code == 2
    assert words in said.err


def test_functionals_margins_and_populations(call, csv_log, log, plain):
    two = ("--policy", "a=constant:35", "--policy", "b=constant:33")
    said = call("compare", csv_log, *plain, *two, "--functional", "quantile:0.5", *QUICK)
    assert said.code == 0, said.err
    settings = {"estimator": tt.SelfNormalized(), "bandwidth": 8.0}
    same = tt.evaluate(log, tt.Constant(35.0), functional=tt.Quantile(0.5), **settings)
    found = json.loads(said.out)["estimates"]["a"]
    assert found["value"] == pytest.approx(same.value)
    assert found["method"]["functional"] == "Quantile(probability=0.5)"
    said = call("compare", csv_log, *plain, *two, "--margin", "9", "--bandwidth", "8")
    assert "a is not worse than b by more than 9" in said.out
    said = call("evaluate", csv_log, *plain, *POLICY, "--population", csv_log, *QUICK)
    assert said.code == 0, said.err
    assert json.loads(said.out)["method"]["population"]["rows"] == len(log)


@pytest.mark.parametrize("text", ["quantile", "median:1", "quantile:x"])
def test_what_is_no_functional(call, csv_log, plain, text):
    said = call("evaluate", csv_log, *plain, *POLICY, "--functional", text)
    assert said.code == 2
    assert "It must be quantile:P" in said.err


def test_a_page_is_of_means(call, csv_log, plain):
    options = ("--functional", "quantile:0.5", "--html", "page.html")
    said = call("evaluate", csv_log, *plain, *POLICY, *options)
    assert said.code == 2
    assert "mean outcomes" in said.err
