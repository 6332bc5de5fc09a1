"""Policies in words: the formula, the coefficients, the document."""

from __future__ import annotations

import re

import numpy as np
import pytest

import titrant as tt
from titrant.policies import StatusQuo, doses, policy_from_dict
from titrant.reporting.rules import LISTED, MOVED, readable, rule

NAMES = ("weight", "age")
SD = np.array([15.0, 20.0])
LINEAR = tt.Linear([0.35, -0.2], 19.0, features=NAMES)


def log_of(names=NAMES, d=1, n=60, seed=0):
    """A log with contexts of these names; names of texts are 0 or 1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(20.0, 90.0, (n, len(names)))
    for j, name in enumerate(names):
        if "=" in name or name.endswith(" is missing") or name == "carrier":
            x[:, j] = rng.integers(0, 2, n)
    t = rng.normal(35.0, 10.0, (n, d))
    return tt.LoggedData(x, t[:, 0] if d == 1 else t, np.zeros(n), names=names)


def ruled(policy, treatments=("dose",), names=NAMES, sd=SD, **how):
    return rule("p", policy, treatments, log_of(names, len(treatments)), sd=sd, **how)


@pytest.mark.parametrize(
    ("policy", "formula"),
    [
        (tt.Constant(35.0), "dose = 35"),
        (tt.Constant(-2.5), "dose = −2.5"),
        (LINEAR, "dose = 19 + 0.35 · weight − 0.2 · age"),
        (tt.Linear([0.0, 2.0], -1.0), "dose = −1 + 2 · age"),
        (
            tt.Clipped(LINEAR, 5.0, 75.0),
            "dose = 19 + 0.35 · weight − 0.2 · age, kept within 5 … 75",
        ),
        (tt.Clipped(tt.Constant(3.0), 0.0), "dose = 3, at least 0"),
        (tt.Clipped(tt.Constant(3.0), None, 9.0), "dose = 3, at most 9"),
        (tt.Rounded(tt.Constant(36.2), 2.5), "dose = 36.2, rounded to steps of 2.5"),
        (tt.Rounded(tt.Constant(36.2), 2.0, 1.0), "dose = 36.2, rounded to steps of 2 from 1"),
        (
            tt.RBF(np.zeros((4, 2)), np.ones(4), scale=2.0, intercept=3.0),
            "dose = 3 + a sum of 4 bumps of width 2",
        ),
        (StatusQuo(), "dose as it was given"),
    ],
)
def test_the_formula(policy, formula):
    assert ruled(policy).formulas == (formula,)


@pytest.mark.parametrize(
    ("policy", "lines"),
    [
        (
            tt.Additive([0.1, 2.0], 5.0, knots=[[0, 1, 2], []], bends=[0, 1, 0], reach=[1, 0]),
            # At weight 1, its middle, the curve is 1 and the line .1.
            ("dose = 6.1 + 2 · age + curve(weight)",),
        ),
        (
            tt.Products(
                [1.0, 0.0],
                2.0,
                pairs=[(0, 1), (1, 1)],
                bends=[0.5, -1],
                center=[5, -1],
                size=[2, 1],
            ),
            (
                "dose = 2 + 1 · weight + 0.5 · u(weight)·u(age) − 1 · u(age)²",
                "u(weight) = (weight − 5)/2, held within ±3",
                "u(age) = (age + 1)/1, held within ±3",
            ),
        ),
        (
            tt.Products(
                *([0.0, 0.0], 2.0),
                pairs=[(0, 1)],
                bends=[0.5],
                center=[0.5, 3],
                size=[0.5, 2],
                features=["site=B", "kg"],
            ),
            (
                "dose = 2 + 0.5 · u(site=B)·u(kg)",
                "u(site=B) = (site=B − 0.5)/0.5, held within ±3",
                "u(kg) = (kg − 3)/2, held within ±3",
            ),
        ),
        (
            tt.Tree([0, 1], [50.0, 0.5], [-1, -2], [1, -3], [1, 2, 3], features=["kg", "sex=f"]),
            (
                "dose = the dose of one of 3 groups",
                "kg ≤ 50: 1",
                "kg > 50, sex is not f: 2",
                "kg > 50, sex is f: 3",
            ),
        ),
        (
            tt.LinearTree(
                *([1, 0], [0.5, 50.0], [1, -3], [-1, -2], [12.0, 3.0, 4.0]),
                slopes=[[0.5, 0.0], [0.0, 0.0], [-0.25, 2.0]],
                lower=[5.0, 1.0, 2.0],
                upper=[40.0, 9.0, 8.0],
                features=["kg", "site=B"],
            ),
            (
                "dose = the line of one of 3 groups",
                "site is not B, kg ≤ 50: 4 − 0.25 · kg + 2 if site is B, kept within 2 … 8",
                "site is not B, kg > 50: 3",
                "site is B: 12 + 0.5 · kg, kept within 5 … 40",
            ),
        ),
        (
            tt.Personal([[0.0]], [[1, 0, 1]], grid=[0, 1, 2], scale=[1], nearest=1),
            ("dose = the dose with the least mean loss of the 1 of 1 people who are most alike",),
        ),
    ],
    ids=["additive", "products", "products of a text", "tree", "linear tree", "personal"],
)
def test_rules_of_more_than_a_line(policy, lines):
    names = policy.features or NAMES
    found = ruled(policy, names=names)
    assert found.formulas == lines
    clipped = ruled(tt.Clipped(policy, 0.0, 9.0), names=names)
    assert clipped.formulas == (f"{lines[0]}, kept within 0 … 9", *lines[1:])


@pytest.mark.parametrize(
    ("name", "term"),
    [
        ("age=20–29", "+ 57.8 if age is 20–29"),
        ("income is missing", "+ 57.8 if income is missing"),
        ("carrier", "+ 57.8 if carrier = 1"),
        ("weight", "+ 57.8 · weight"),
    ],
)
def test_a_category_reads_as_one(name, term):
    policy = tt.Linear([57.8], 1.0, features=[name])
    assert ruled(policy, names=(name,), sd=np.ones(1)).formulas == (f"dose = 1 {term}",)


def test_labels_stand_in_formulas():
    def called(name):
        return {"weight": "Weight, kg", "age": "Age"}[name]

    (formula,) = ruled(LINEAR, called=called).formulas
    assert formula == "dose = 19 + 0.35 · Weight, kg − 0.2 · Age"


RNG = np.random.default_rng(1)
LONG = {
    "constant": tt.Constant(35.123456789),
    "linear": tt.Linear([0.123456789, -0.0987654321], 12.3456789, features=NAMES),
    "far from zero": tt.Linear([1.23456789, 0.000123456], -12345.6789, features=NAMES),
    "clipped": tt.Clipped(tt.Linear([0.123456789, 0.1], 2.0, features=NAMES), 9.75294, 60.0324),
    "rounded": tt.Rounded(tt.Linear([0.123456789, 0.31234567], 2.3456789, features=NAMES), 5.0),
    "additive": tt.Additive(
        [0.123456, 0.2], 5.0123, knots=[[20, 50, 80], []], bends=RNG.normal(size=3), reach=[9, 0]
    ),
    "products": tt.Products(
        *([0.1234567, 0.0], 2.0123456),
        pairs=[(0, 1)],
        bends=[0.5123456],
        center=[50.123, 51.0],
        size=[20.123, 20.0],
    ),
    "tree": tt.Tree([0, 1], [51.23456, 43.21987], [-1, -2], [1, -3], RNG.normal(35, 9, 3)),
    "linear tree": tt.LinearTree(
        *([0, 1], [51.23456, 43.21987], [-1, -2], [1, -3], RNG.normal(35, 9, 3)),
        slopes=0.01 * RNG.normal(size=(3, 2)),
        lower=[20.123456, 20.0, 30.0],
        upper=[40.0, 40.123456, 35.0],
    ),
    "within limits": tt.InLimits(
        tt.Clipped(tt.Linear([0.123456789, 0.31234567], 2.3456789, features=NAMES), 9.75294),
        steps=2.5,
        at_most="weight",
    ),
    "two doses": tt.Linear(RNG.normal(size=(2, 2)), RNG.normal(size=2), features=NAMES),
}


@pytest.mark.parametrize("name", LONG)
def test_rounding_a_rule_moves_nobody_by_more_than_a_hundredth_of_an_sd(name):
    policy, d = LONG[name], 2 if name == "two doses" else 1
    log = log_of(d=d, n=400)
    shown = readable(policy, log)
    before, after = (doses(p, log.context, d, log.names) for p in (policy, shown))
    assert (np.abs(after - before) <= MOVED * log.doses.std(axis=0)).all()


def test_a_long_rule_is_written_in_few_digits():
    (formula,) = rule("p", LONG["linear"], ["dose"], log_of(n=400), sd=SD).formulas
    assert formula == "dose = 12.35 + 0.1235 · weight − 0.0988 · age"


def test_a_rule_within_limits_is_written_in_as_many_digits_as_leave_all_on_their_steps():
    log = log_of(n=400)
    found = rule("p", LONG["within limits"], ["dose"], log, sd=SD)
    assert found.formulas[0].endswith(", at least 9.753, in steps of 2.5, at most weight")
    numbers = re.findall(r"\d+\.\d+", found.formulas[0])
    assert max(len(text.partition(".")[2]) for text in numbers) <= 6
    shown = readable(LONG["within limits"], log)
    np.testing.assert_array_equal(shown.of_rows(log), LONG["within limits"].of_rows(log))


def test_numbers_that_are_short_are_written_as_they_are():
    log = log_of()
    for policy in (tt.Constant(35.25), LINEAR, tt.Clipped(LINEAR, 5.0, 75.125)):
        assert readable(policy, log) == policy


def test_a_cut_is_the_shortest_number_between_two_logged_values():
    x = np.array([[10.0], [51.2], [51.9], [80.0]])
    log = tt.LoggedData(x, np.arange(4.0), np.zeros(4), names=["kg"])
    tree = tt.Tree([0], [51.5371], [-1], [-2], [1.0, 2.0], features=["kg"])
    assert readable(tree, log).cuts.tolist() == [51.5]


def test_a_function_has_no_formula_and_no_document():
    found = ruled(tt.Clipped(lambda x: x[:, 0], 0.0, 1.0))
    assert "has no formula" in found.formulas[0]
    assert found.document is None
    assert found.intercept is None


def test_coefficients_are_on_the_scale_of_the_user_and_per_sd():
    found = ruled(tt.Clipped(LINEAR, 5.0, 75.0))
    assert found.intercept == (19.0,)
    assert [(c.context, c.values) for c in found.coefficients] == [
        ("weight", (0.35,)),
        ("age", (-0.2,)),
    ]
    # One sd of weight is 15, of age 20.
    assert [c.per_sd for c in found.coefficients] == [
        (pytest.approx(5.25),),
        (pytest.approx(-4.0),),
    ]


def test_each_dose_has_its_formula():
    policy = tt.Linear([[1.0, 2.0], [0.0, -3.0]], [4.0, 5.0], features=NAMES)
    found = ruled(tt.Clipped(policy, 0.0, [9.0, 8.0]), ("a", "b"))
    assert found.formulas == (
        "a = 4 + 1 · weight, kept within 0 … 9",
        "b = 5 + 2 · weight − 3 · age, kept within 0 … 8",
    )
    assert found.intercept == (4.0, 5.0)
    assert found.coefficients[0].values == (1.0, 2.0)


def test_the_document_reads_back_as_the_policy():
    policy = tt.Clipped(LINEAR, 5.0, 75.0)
    assert policy_from_dict(ruled(policy).document) == policy


def test_many_contexts_are_cut_to_the_largest():
    names = tuple(f"x{j}" for j in range(800))
    slopes = np.linspace(0.001, 0.8, 800)
    found = ruled(tt.Linear(slopes, 0.0, features=names), names=names, sd=np.ones(800))
    assert len(found.coefficients) == LISTED
    assert found.left_out == 800 - LISTED
    assert found.coefficients[-1].context == "x799"
    assert found.formulas[0].endswith("+ … (788 more in the table)")
    assert found.formulas[0].startswith("dose = 0 + 0.789 · x788")


def test_what_a_formula_has_no_room_for_is_in_the_table():
    names = tuple(f"x{j}" for j in range(8))
    pairs = [(j, k) for j in range(8) for k in range(j, 8)]
    factors = np.linspace(0.1, 3.6, 36)
    policy = tt.Products(
        *(np.zeros(8), 1.0),
        pairs=pairs,
        bends=factors,
        center=np.zeros(8),
        size=np.ones(8),
        features=names,
    )
    found = ruled(policy, names=names, sd=np.ones(8))
    assert "(24 more in the table)" in found.formulas[0]
    # Of 44 terms, 8 of them nothing, the table has 30.
    assert len(found.coefficients) == LISTED
    assert found.coefficients[-1].context == "u(x7)²"
    assert found.coefficients[-1].values == (pytest.approx(3.6),)
    curves = tt.Additive(
        np.linspace(0.1, 2.0, 20),
        knots=[[20, 40, 60], *[[]] * 19],
        bends=[0.0, 1.0, 0.0],
        reach=np.ones(20),
    )
    names = tuple(f"x{j}" for j in range(20))
    found = ruled(curves, names=names, sd=np.ones(20))
    assert "(7 more in the table)" in found.formulas[0]
    assert [c.context for c in found.coefficients] == list(names[1:])


def test_a_document_too_large_for_a_page_is_left_out():
    assert ruled(tt.RBF(np.full((300, 2), 1 / 3), np.full(300, 1 / 3), scale=2.0)).document is None
    assert ruled(tt.RBF(np.full((30, 2), 1 / 3), np.ones(30), scale=2.0)).document is not None


class Steeper(tt.Linear):
    """Twice the dose that its coefficients say."""

    def __call__(self, X):
        return 2.0 * tt.Linear.__call__(self, X)


@pytest.mark.parametrize("policy", [Steeper([1.0], 2.0), tt.Clipped(Steeper([1.0], 2.0), 0, 9)])
def test_a_class_of_ones_own_is_not_described_by_the_formula_of_its_base(policy):
    found = ruled(policy, names=("x",), sd=np.ones(1))
    assert found.formulas[0].startswith("dose = Steeper")
    assert found.coefficients == ()
