"""Policies that bend, split or look up: what they say at points worked out by hand."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import titrant as tt
from policies.examples import EXAMPLES
from titrant.policies import Policy, policy_from_dict
from titrant.policies.bent import cardinal
from titrant.policies.lookup import least_dose

EXACT = 1e-12

KNOTS = np.array([-1.0, 0.2, 1.0, 2.5])
HEIGHTS = np.array([0.3, -1.0, 0.7, 0.1])
BENT = tt.Additive([0.5, 2.0], 1.0, knots=[KNOTS, []], bends=HEIGHTS, reach=[0.5, 0.0])


def test_a_curve_is_the_natural_spline_through_its_points():
    # Between the outer knots scipy's natural spline says the same.
    x = np.linspace(-1.0, 2.5, 41)
    natural = CubicSpline(KNOTS, HEIGHTS, bc_type="natural")
    np.testing.assert_allclose(cardinal(KNOTS, x) @ HEIGHTS, natural(x), atol=EXACT)
    np.testing.assert_allclose(cardinal(KNOTS, KNOTS), np.eye(4), atol=EXACT)


def test_beyond_its_knots_a_curve_is_a_line_and_then_stays():
    natural = CubicSpline(KNOTS, HEIGHTS, bc_type="natural")
    x = np.array([-1.3, -1.5, -9.0, 2.8, 3.0, 50.0])
    outside = np.clip(x, -1.5, 3.0)
    ends = np.clip(x, -1.0, 2.5)
    wanted = 0.5 * x + natural(ends) + natural(ends, 1) * (outside - ends)
    np.testing.assert_allclose(BENT.curve(0, x), wanted, atol=EXACT)
    np.testing.assert_allclose(BENT.curve(1, x), 2.0 * x, atol=EXACT)
    # The dose is the intercept and the curves.
    X = np.column_stack([x, x[::-1]])
    np.testing.assert_allclose(BENT(X), 1.0 + BENT.curve(0, x) + BENT.curve(1, x[::-1]))


def test_a_curve_whose_points_lie_on_a_line_is_that_line():
    x = np.linspace(-9.0, 9.0, 7)
    np.testing.assert_allclose(cardinal(KNOTS, x) @ (2.0 - 3.0 * KNOTS), 2.0 - 3.0 * x, atol=1e-11)


def test_products_by_hand():
    # u = ((7 − 5)/2, 3 held from (10 − 0)/1) = (1, 3); 2 + 7·1 + .5·1·3 + .25·3² = 12.75
    rule = tt.Products(
        [1.0, 0.0], 2.0, pairs=[(0, 1), (1, 1)], bends=[0.5, 0.25], center=[5, 0], size=[2, 1]
    )
    np.testing.assert_allclose(rule(np.array([[7.0, 10.0]])), [12.75], rtol=EXACT)


def test_a_tree_by_hand():
    # age ≤ 50? yes: dose 1. no: weight ≤ 70? yes: dose 2, no: dose 3. At a cut: yes.
    rule = tt.Tree([0, 1], [50.0, 70.0], [-1, -2], [1, -3], [1.0, 2.0, 3.0])
    X = np.array([[50.0, 99.0], [51.0, 70.0], [51.0, 70.1]])
    np.testing.assert_array_equal(rule(X), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(rule.leaves(X), [0, 1, 2])
    assert list(rule.paths()) == [
        (((0, True),), 0),
        (((0, False), (1, True)), 1),
        (((0, False), (1, False)), 2),
    ]


def test_a_tree_with_lines_by_hand():
    # At site B 12 + .5·age, at most 40; elsewhere 10. At 30 years 27, at 80 it would be 52.
    rule = EXAMPLE
    X = np.array([[30.0, 0.0], [30.0, 1.0], [80.0, 1.0]])
    np.testing.assert_array_equal(rule(X), [10.0, 27.0, 40.0])
    # The gradient in (doses, slopes of leaf 0, slopes of leaf 1): only row two is free in leaf 1.
    np.testing.assert_array_equal(rule.vjp(X, np.ones(3)), [1, 1, 30, 0, 30, 1])
    np.testing.assert_array_equal(rule.moved(-1.0)(X), rule(X) - 1.0)


def test_a_tree_saved_before_there_were_lines_in_leaves_is_read():
    old = {"format": "titrant-policy", "version": 1, "class": "Tree", "columns": [0]}
    old |= {"cuts": [50.0], "below": [-1], "above": [-2], "doses": [3.0, 5.0], "features": None}
    assert policy_from_dict(old) == tt.Tree([0], [50.0], [-1], [-2], [3.0, 5.0])


LINES = {"lower": [5.0, 5.0], "upper": [20.0, 40.0]}
EXAMPLE = tt.LinearTree(
    [1], [0.5], [-1], [-2], [10.0, 12.0], slopes=[[0.0, 0.0], [0.5, 0.0]], **LINES
)


def tree_with(**changed):
    return tt.LinearTree([0], [1.0], [-1], [-2], [1.0, 2.0], **changed)


def test_a_parabola_has_its_vertex():
    # (g − 1.3)² and (g − 2)² + 5 on a grid; at an end the end itself.
    grid = np.linspace(0.0, 3.0, 7)
    curves = np.stack([(grid - 1.3) ** 2, (grid - 2.0) ** 2 + 5, grid, -grid, 0.0 * grid])
    np.testing.assert_allclose(least_dose(grid, curves), [1.3, 2.0, 0.0, 3.0, 0.0], atol=EXACT)


def test_a_personal_dose_is_that_of_a_loop():
    rng = np.random.default_rng(1)
    people, curves, grid = rng.normal(size=(30, 2)), rng.normal(size=(30, 9)), np.arange(9.0)
    rule = tt.Personal(people, curves, grid=grid, scale=[1.0, 3.0], nearest=4)
    X = rng.normal(size=(12, 2))
    for x, dose in zip(X, rule(X), strict=True):
        far = [((x[0] - a) / 1.0) ** 2 + ((x[1] - b) / 3.0) ** 2 for a, b in people]
        near = sorted(range(30), key=far.__getitem__)[:4]
        assert dose == least_dose(grid, curves[near].mean(axis=0)[None])[0]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: tt.Additive([1.0], knots=[[0, 1]], bends=[0, 1], reach=[1]), "at least 3"),
        (lambda: tt.Additive([1.0], knots=[[0, 2, 1]], bends=[0, 1, 2], reach=[1]), "that grow"),
        (lambda: tt.Additive([1.0], knots=[[]], bends=[1.0], reach=[1]), "for each knot"),
        (lambda: tt.Additive([1.0], knots=[[]], bends=[], reach=[-1]), "numbers ≥ 0"),
        (lambda: tt.Additive([1.0], knots=[[], []], bends=[], reach=[1]), "1 lists of numbers"),
        (
            lambda: tt.Products([1.0], pairs=[(0, 1)], bends=[1], center=[0], size=[1]),
            "from 0 to 0",
        ),
        (lambda: tt.Products([1.0], pairs=[], bends=[], center=[0], size=[0]), "numbers > 0"),
        (lambda: tt.Tree([0], [1.0], [-1], [-1], [1.0, 2.0]), "one way to each"),
        (lambda: tt.Tree([0, 0], [1.0, 2.0], [0, -2], [-1, -3], [1, 2, 3]), "one way to each"),
        (lambda: tt.Tree([1], [1.0], [-1], [-2], [1, 2], features=["a"]), "from 0 to 0"),
        (lambda: tt.Tree([0.5], [1.0], [-1], [-2], [1, 2]), "whole numbers"),
        (lambda: tt.Tree([0], [], [], [], [1]), "at least one entry"),
        (lambda: tree_with(slopes=[[1.0]], **LINES), "2 rows, one for each leaf"),
        (lambda: tree_with(slopes=[[1.0], [0.0]], lower=[1], upper=[2, 3]), "2 numbers"),
        (lambda: tree_with(slopes=[[1.0], [0.0]], lower=[1, 4], upper=[2, 3]), "at least `lower`"),
        (
            lambda: tree_with(slopes=[[1.0], [0.0]], **LINES, features=["a", "b"]),
            "a number for each context",
        ),
        (
            lambda: tt.Personal([[0.0]], [[1, 2, 3]], grid=[0, 1, 3], scale=[1], nearest=1),
            "evenly spaced",
        ),
        (
            lambda: tt.Personal([[0.0]], [[1, 2, 3]], grid=[0, 1, 2], scale=[1], nearest=2),
            "at most 1",
        ),
    ],
)
def test_what_is_refused(made, said):
    with pytest.raises(tt.InvalidArgument, match=said):
        made()


@pytest.mark.parametrize("wrong", [None, 3, "text", [["a"]], {}, [[1.0, 2.0], [3.0]], True])
@pytest.mark.parametrize("name", ["additive", "products", "tree", "linear tree", "personal"])
def test_a_wrong_file_is_refused_field_by_field(name, wrong):
    right = EXAMPLES[name].to_dict()
    for field in right.keys() - {"format", "version", "class", "features"}:
        # A wrong value may be right for another field, such as 3 for `nearest`; nothing else fails.
        with contextlib.suppress(tt.PolicyFileError):
            assert isinstance(policy_from_dict({**right, field: wrong}), Policy)


def test_what_a_curve_adds_is_0_at_its_middle():
    # The middle knot is 1.0; the next round number that stays between the outer ones is itself.
    assert BENT.middle(0) == 1.0
    assert BENT.middle(1) == 0.0
    x = np.linspace(-3.0, 4.0, 15)
    assert BENT.added(0, np.array([1.0])) == 0.0
    # The start is the dose there, and the dose is the start with what is added.
    np.testing.assert_allclose(BENT.start, BENT(np.array([[1.0, 0.0]])), atol=EXACT)
    X = np.column_stack([x, x[::-1]])
    added = BENT.added(0, X[:, 0]) + BENT.added(1, X[:, 1])
    np.testing.assert_allclose(BENT.start + added, BENT(X), atol=EXACT)


@pytest.mark.parametrize(
    ("knots", "middle"),
    [
        ([20.3, 49.83, 79.6], 50.0),
        ([54.9, 74.6, 95.1], 75.0),
        ([-1.6, 0.04, 1.7], 0.0),
        # The nearer outer knot is .2 away: .05 is fine enough.
        ([0.3, 0.5217, 10.0], 0.5),
        ([1990.2, 2003.7, 2021.0], 2004.0),
    ],
)
def test_the_middle_of_a_curve_is_a_round_number_near_its_middle_knot(knots, middle):
    rule = tt.Additive([0.0], knots=[knots], bends=[0.0, 1.0, 0.0], reach=[0.0])
    assert rule.middle(0) == middle


def test_a_curve_is_drawn_with_its_knots():
    ax = BENT.plot(0)
    zero, beyond, line, points = ax.get_lines()
    np.testing.assert_array_equal(zero.get_ydata(), 0.0)
    for drawn in (beyond, line):
        np.testing.assert_array_equal(drawn.get_ydata(), BENT.added(0, drawn.get_xdata()))
    np.testing.assert_array_equal(points.get_xdata(), KNOTS)
    assert ax.get_xlabel() == "0"
    assert BENT.plot(1, ax) is ax
    with pytest.raises(
        tt.InvalidArgument, match=r"`context` of `Additive.plot` must be one of 0, 1"
    ):
        BENT.plot("age")
