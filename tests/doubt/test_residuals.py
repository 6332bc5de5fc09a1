"""ψ, its cut-off and the signed weight: bounds by hand, by loops and by linear programming."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import naive
from titrant.doubt.benchmarks import blocks, weighted_quantile
from titrant.doubt.residuals import Cutoffs, Doubt, SignedWeight, psi
from titrant.estimators import Question, Rows, SelfNormalized
from titrant.estimators.joint import ask
from titrant.kernels import Scale, Uniform

ROUNDING = 1e-12  # sums of tens of numbers of size one
numbers = st.floats(-5, 5).map(lambda v: round(v, 3))


def bound(w, e, gamma, *, up=True):
    """Σ|w|·ψ(±e) with the sign of w, c the quantile."""
    order = np.argsort(np.where(w < 0, -e, e), kind="stable")
    cutoffs = Cutoffs(np.where(w < 0, -e, e)[order], np.cumsum(np.abs(w)[order]))
    sign = np.where(w < 0, -1.0, 1.0) * (1 if up else -1)
    return float(w @ (sign * psi(sign * e, gamma, cutoffs.at(gamma, up=up))))


def test_three_rows_by_hand():
    """e = −3, 0, 3 with weights 1/3, Γ = 2: p = 2/3 and c = 0, the second of three.

    ψ(e) = e/2 + 1/2·(0 + 3·max(e, 0)) = −1.5, 0, 1.5 + 4.5 = 6, with mean 1.5. By λ: 2 for the
    third row leaves 1 for the other two, 1/2 each: (−3/2 + 0 + 6)/3 = 1.5.
    """
    e, w = np.array([-3.0, 0.0, 3.0]), np.full(3, 1 / 3)
    assert psi(e, 2.0, 0.0).tolist() == [-1.5, 0.0, 6.0]
    assert bound(w, e, 2.0) == pytest.approx(1.5, abs=ROUNDING)
    assert bound(w, e, 2.0, up=False) == pytest.approx(-1.5, abs=ROUNDING)


def test_three_rows_through_the_estimator():
    """y = 0, 3, 6 at doses within h of τ, f = 1: value 3, bounds 1.5 and 4.5 at Γ = 2."""
    rows = Rows(
        tau=np.zeros((3, 1)),
        t=np.array([[0.1], [0.0], [-0.1]]),
        y=np.array([0.0, 3.0, 6.0]),
        q=np.ones(3),
        center=3.0,
    )
    question = Question(SelfNormalized(kernel=Uniform()), 0, Scale.of(1.0, 1))
    point = ask([question], lambda statistic: statistic([rows]))
    signed = SignedWeight.of(point)
    cutoffs = Cutoffs.of(signed, {0: rows})
    found = []
    for up in (False, True):
        doubt = Doubt(signed, 2.0, cutoffs.at(2.0, up=up), up)
        found.append(ask([question], lambda s, d=doubt: s(d([rows]))).values[0])
    assert point.values[0] == 3.0
    assert found == pytest.approx([1.5, 4.5], abs=ROUNDING)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12), st.floats(1.0, 10.0))
def test_the_bound_is_the_naive_maximum(pairs, gamma):
    w, e = np.array(pairs).T
    size = np.abs(w) @ np.abs(e) * gamma + 1.0
    # upper: the largest Σwλe over all λ that are allowed; lower: the negative of that of −e
    assert abs(bound(w, e, gamma) - naive.hidden_cause(w, e, gamma)) < 1e-9 * size
    lower = bound(w, e, gamma, up=False)
    assert abs(lower + naive.hidden_cause(w, -e, gamma)) < 1e-9 * size


def test_the_bound_is_that_of_linear_programming():
    rng = np.random.default_rng(0)
    w, e, gamma = rng.random(30), rng.normal(size=30), 1.7
    solved = linprog(
        -w * e, A_eq=[w], b_eq=[w.sum()], bounds=[(1 / gamma, gamma)] * 30, method="highs"
    )
    assert bound(w, e, gamma) == pytest.approx(-solved.fun, abs=1e-9)  # the solver's own tolerance


@given(st.lists(numbers, min_size=2, max_size=12), st.floats(1.0, 10.0), numbers)
def test_any_other_cutoff_is_wider(e, gamma, c):
    e = np.array(e)
    w = np.full(len(e), 1 / len(e))
    assert w @ psi(e, gamma, c) >= bound(w, e, gamma) - 1e-9


@given(st.lists(numbers, min_size=1, max_size=12), numbers)
def test_without_a_hidden_cause_nothing_changes(e, c):
    e = np.array(e)
    assert psi(e, 1.0, c).tolist() == e.tolist()


def test_weighted_quantile():
    # of 1, 2, 3 with weights 1, 1, 2 half the weight lies up to 2, and three quarters up to 3
    values, weight = np.array([3.0, 1.0, 2.0]), np.array([2.0, 1.0, 1.0])
    assert weighted_quantile(values, weight, 0.5) == 2.0
    assert weighted_quantile(values, weight, 0.75) == 3.0
    assert np.isnan(weighted_quantile(values, np.zeros(3), 0.5))


def test_contexts_of_one_column_are_one_block():
    names = ["age", "age is missing", "sex=m", "sex=f", "visit.month", "visit.year", "a.b", ".hour"]
    assert blocks(names) == {
        "age": ("age", "age is missing"),
        "sex": ("sex=m", "sex=f"),
        "visit": ("visit.month", "visit.year"),
        "a.b": ("a.b",),
        ".hour": (".hour",),
    }
