"""`titrant curve`, `subgroups` and `outcomes` print what the library says of a log."""

from __future__ import annotations

import csv
import json
from pathlib import Path

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


def test_an_interval_of_a_share_that_reaches_beyond_it_is_said_not_to_be_cut(call, csv_log, plain):
    # Hardly any loss exceeds 14, and few rows are near the policy: the interval reaches below 0.
    rare = ("--functional", "exceeds:14", "--bandwidth", "3", "--allow-untrusted")
    said = call("evaluate", csv_log, *plain, *POLICY, *rare)
    assert said.code == 0, said.err
    told = " ".join(said.out.split())
    assert "beyond 0 … 1, where no share can be: intervals are not cut there" in told
    often = call("evaluate", csv_log, *plain, *POLICY, "--functional", "exceeds:4", *NARROW)
    assert "no share can be" not in often.out


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


# ── curves ───────────────────────────────────────────────────────────────────────────────────────

NARROW = ("--bandwidth", "8")


def test_a_curve_is_that_of_the_library(call, csv_log, log, plain):
    files = ("--json", "curve.json", "--out-csv", "curve.csv", "--out", "curve.html")
    asked = ("--at", "25:45:10", "--level", "0.8")
    said = call("curve", csv_log, *plain, *NARROW, *asked, *files)
    assert said.code == 0, said.err
    settings = {"estimator": tt.SelfNormalized(), "bandwidth": 8.0}
    same = tt.curve(log, tt.Constant, [25.0, 35.0, 45.0], **settings)
    assert json.loads(Path("curve.json").read_text(encoding="utf-8")) == same.to_dict(0.8)
    assert "80% CI" in said.out
    best = same.parameters[same.values.argmin()]
    assert f"Outcome: a loss, lower is better. Best at dose {best:g}: " in said.out
    with Path("curve.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["dose"]) for row in rows] == [25.0, 35.0, 45.0]
    assert [float(row["value"]) for row in rows] == same.values.tolist()
    ends = same.band(0.8)[1].tolist()
    assert [float(rows[1]["band_low"]), float(rows[1]["band_high"])] == ends
    page = Path("curve.html").read_text(encoding="utf-8")
    assert "<title>Mean loss over dose</title>" in page
    assert page.count("<svg") == 1
    assert "<script" not in page


def test_the_usual_points_are_those_of_the_page(call, csv_log, plain):
    said = call("curve", csv_log, *plain, *NARROW, "--json", "-")
    points = json.loads(said.out)["parameters"]
    assert len(points) > 8
    assert all(point % 1 == 0 for point in points)


@pytest.mark.parametrize(
    ("family", "points"),
    [(tt.Shift, [-2.0, 0.0, 2.0]), (tt.Multiply, [0.9, 1.0]), (tt.Tilt, [-0.01, 0.0])],
)
def test_curves_of_changes_of_the_logged_dose(  # noqa: PLR0917  (fixtures)
    call, csv_log, log, plain, family, points
):
    over = family.__name__.lower()
    model = ("--propensity-model", "linear-gaussian")
    at = ("--at", ",".join(map(str, points)))
    said = call("curve", csv_log, *plain, *model, "--over", over, *at, "--json", "-")
    assert said.code == 0, said.err
    settings = {"estimator": tt.SelfNormalized(), "propensity": tt.LinearGaussian()}
    assert (
        json.loads(said.out)["values"] == tt.curve(log, family, points, **settings).values.tolist()
    )


def test_a_rule_that_is_followed_in_part(call, csv_log, log, plain):
    rule = ("--policy", "linear:intercept=15,weight=0.3")
    at = ("--over", "strength", "--at", "0,1")
    said = call("curve", csv_log, *plain, *NARROW, *rule, *at, "--json", "-")
    settings = {"estimator": tt.SelfNormalized(), "bandwidth": 8.0}
    ends = (tt.Constant(float(log.treatment.mean())), tt.Linear([0.3, 0.0, 0.0], 15.0))
    values = [tt.evaluate(log, policy, **settings).value for policy in ends]
    assert json.loads(said.out)["values"] == pytest.approx(values, rel=1e-9)


def test_a_rule_is_followed_from_not_at_all_to_wholly(call, csv_log, plain):
    rule = ("--policy", "linear:intercept=15,weight=0.3", "--over", "strength", "--json", "-")
    points = json.loads(call("curve", csv_log, *plain, *NARROW, *rule).out)["parameters"]
    assert points == [k / 8 for k in range(9)]  # as the help of --over says


def test_points_that_are_about_as_good_as_the_best(call, csv_log, log, plain):
    said = call("curve", csv_log, *plain, *NARROW, "--at", "20:50:2")
    settings = {"estimator": tt.SelfNormalized(), "bandwidth": 8.0}
    found = tt.curve(log, tt.Constant, range(20, 51, 2), **settings)
    compared, best = found.comparison, found.best()
    gaps = compared.simultaneous_contrasts(f"{best}", 0.95)
    tied = [float(name) for name, (low, _) in gaps.items() if low <= 0]
    # Both sides of the best dose, which no sentence calls the best alone.
    assert min(tied) < best < max(tied)
    runs = f"{min(tied):g} … {best - 2:g} and {best + 2:g} … {max(tied):g}"
    assert f"{runs} are not clearly worse." in " ".join(said.out.split())
    far = call("curve", csv_log, *plain, *NARROW, "--at", "20,32")
    assert "Every other point is clearly worse." in " ".join(far.out.split())


def test_a_curve_without_a_best_point(call, csv_log, plain):
    said = call("curve", csv_log, *plain, *NARROW, "--at", "33,33.5")
    assert "No other point is clearly worse." in " ".join(said.out.split())
    alone = call("curve", csv_log, *plain, *NARROW, "--at", "33")
    assert "clearly" not in alone.out


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_curve_as_a_picture(call, csv_log, plain, ending):
    drawn = ("--at", "30,35", "--out", f"curve.{ending}")
    for _ in range(2):
        assert call("curve", csv_log, *plain, *NARROW, *drawn).code == 0
    begins = {"svg": b"<?xml", "png": b"\x89PNG"}[ending]
    assert Path(f"curve.{ending}").read_bytes().startswith(begins)


def test_points_that_the_log_cannot_answer_are_told(call, csv_log, plain):
    said = call("curve", csv_log, *plain, "--bandwidth", "2", "--at", "35,75", "--out-csv", "-")
    assert said.code == 0, said.err
    assert said.out.splitlines()[-1].startswith("75.0,")
    assert "Refused (75): " in said.err
    alone = call("curve", csv_log, *plain, "--bandwidth", "2", "--at", "75")
    assert alone.code == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--at", "a"), "'a' is neither numbers such as 20,30,40 nor from:to:step"),
        (("--at", "1:2"), "nor from:to:step"),
        (("--at", "0:1:0"), "nor from:to:step"),
        (("--at", "0:9:1e-9"), "of 1,000 points at most"),
        (("--over", "strength"), "takes one policy"),
        (("--policy", "35"), "the other curves take none"),
        (("--over", "strength", "--policy", "shift:2"), "follows a rule of the contexts in part"),
        (("--out", "curve.pdf"), "must end in .svg, .png, .html"),
        (("--treatment", "weight"), "A curve is over one dose."),
    ],
)
def test_curves_that_cannot_be_drawn(call, csv_log, plain, options, words):
    said = call("curve", csv_log, *plain, *options)
    assert said.code == 2
    assert words in said.err


# ── tables for spreadsheets ──────────────────────────────────────────────────────────────────────


def table(call, *arguments):
    said = call(*arguments, "--out-csv", "-")
    assert said.code == 0, said.err
    return list(csv.DictReader(said.out.splitlines()))


def test_values_and_differences_with_all_digits(call, csv_log, log, plain):
    rows = table(call, "compare", csv_log, *plain, *NARROW, "--policy", "30", "--policy", "35")
    settings = {"estimator": tt.SelfNormalized(), "bandwidth": 8.0}
    same = tt.compare(log, {"30": tt.Constant(30.0), "35": tt.Constant(35.0)}, **settings)
    assert [(row["policy"], row["minus"]) for row in rows] == [("30", ""), ("35", ""), ("30", "35")]
    numbers = [same["30"].value, same["35"].value, same.contrast("30", "35").difference]
    assert [float(row["value"]) for row in rows] == numbers
    assert float(rows[2]["low"]) == same.contrast("30", "35").interval()[0]


def test_every_table_can_be_written(call, csv_log, plain):
    one = (*plain, *NARROW, *POLICY)
    parts = table(call, "subgroups", csv_log, *one, "--by", "carrier")
    assert [part["label"] for part in parts] == ["carrier = 0", "carrier = 1"]
    assert {r["verdict"] for r in table(call, "check", csv_log, *one)} <= {"ok", "warn"}
    doubted = table(call, "sensitivity", csv_log, *one, "--no-benchmarks", "--gamma", "1,2")
    assert [float(row["gamma"]) for row in doubted] == [1.0, 2.0]
    columns = ("--treatment", "dose", "--outcome", "loss", "--context", "weight,age")
    assert len(table(call, "describe", csv_log, *columns)) == 4
