"""Policies in words: the formula, the coefficients, the document."""

from __future__ import annotations

import numpy as np
import pytest

import titrant as tt
from titrant.policies import StatusQuo, policy_from_dict
from titrant.report.rules import LISTED, rule

NAMES = ("weight", "age")
SD = np.array([15.0, 20.0])
LINEAR = tt.Linear([0.35, -0.2], 19.0, features=NAMES)


def ruled(policy, treatments=("dose",), names=NAMES, sd=SD):
    return rule("p", policy, treatments, names, sd)


@pytest.mark.parametrize(
    ("policy", "formula"),
    [
        (tt.Constant(35.0), "dose = 35"),
        (tt.Constant(-2.5), "dose = −2.5"),
        (LINEAR, "dose = 19 + 0.35 · weight − 0.2 · age"),
        (tt.Linear([0.0, 2.0], -1.0), "dose = −1 + 2 · age"),
        (tt.Linear([1.5], 0.0, features=["co-dose"]), "dose = 0 + 1.5 · co-dose"),
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
            ("dose = 5 + 2 · age + curve(weight)", "curve(weight): 0 at 0, 1.1 at 1, 0.2 at 2"),
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
            tt.Tree([0, 1], [50.0, 0.5], [-1, -2], [1, -3], [1, 2, 3], features=["kg", "sex=f"]),
            (
                "dose = the dose of one of 3 groups",
                "kg ≤ 50: 1",
                "kg > 50, not sex=f: 2",
                "kg > 50, sex=f: 3",
            ),
        ),
        (
            tt.Personal([[0.0]], [[1, 0, 1]], grid=[0, 1, 2], scale=[1], nearest=1),
            ("dose = the dose with the least mean loss of the 1 of 1 people who are most alike",),
        ),
    ],
    ids=["additive", "products", "tree", "personal"],
)
def test_rules_of_more_than_a_line(policy, lines):
    found = ruled(policy)
    assert (*found.formulas, *found.details) == lines
    clipped = ruled(tt.Clipped(policy, 0.0, 9.0))
    assert clipped.details == found.details
    assert clipped.formulas == (f"{lines[0]}, kept within 0 … 9",)


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


def test_a_rule_on_other_columns_than_the_log_has_no_sd():
    found = ruled(tt.Linear([1.0], 0.0, features=["bmi"]))
    assert found.coefficients[0].per_sd is None


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


def test_a_document_too_large_for_a_page_is_left_out():
    assert ruled(tt.RBF(np.full((300, 2), 1 / 3), np.full(300, 1 / 3), scale=2.0)).document is None
    assert ruled(tt.RBF(np.full((30, 2), 1 / 3), np.ones(30), scale=2.0)).document is not None


class Steeper(tt.Linear):
    """Twice the dose that its coefficients say."""

    def __call__(self, X):
        return 2.0 * tt.Linear.__call__(self, X)


@pytest.mark.parametrize("policy", [Steeper([1.0], 2.0), tt.Clipped(Steeper([1.0], 2.0), 0, 9)])
def test_a_class_of_ones_own_is_not_described_by_the_formula_of_its_base(policy):
    found = rule("own", policy, ("dose",), ("x",), np.ones(1))
    assert found.formulas[0].startswith("dose = Steeper")
    assert found.coefficients == ()
