"""Doses worked out by hand, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from titrant.errors import DataError, InvalidArgument
from titrant.policies import RBF, Clipped, Constant, Function, Linear, Rounded, as_policy, doses

# Three contexts: (0, 0), (1, 2), (−1, 4).
X = np.array([[0.0, 0.0], [1.0, 2.0], [-1.0, 4.0]])
# Sums of two or three products.
ROUNDING = 1e-14


def test_constant():
    np.testing.assert_array_equal(Constant(35)(X), [35.0, 35.0, 35.0])
    np.testing.assert_array_equal(Constant([1, 2])(X), [[1.0, 2.0]] * 3)


def test_linear():
    # 10 + 3·x₀ − 0.5·x₁: 10, 10 + 3 − 1 = 12, 10 − 3 − 2 = 5.
    np.testing.assert_allclose(Linear([3, -0.5], 10)(X), [10, 12, 5], rtol=ROUNDING)
    # A second dose 1 + x₁: 1, 3, 5.
    both = Linear([[3, 0], [-0.5, 1]], [10, 1])
    np.testing.assert_allclose(both(X), [[10, 1], [12, 3], [5, 5]], rtol=ROUNDING)
    # One intercept for both doses; parameters are the intercepts and then the rows of coef.
    shared = Linear([[3, 0], [-0.5, 1]], 10)
    np.testing.assert_array_equal(shared.params, [10, 10, 3, 0, -0.5, 1])


def test_rbf():
    # Centers (0, 0) and (1, 2), scale 1. Squared distances: 0, 5; 5, 0; 17, 8.
    # τ = 1 + 2·exp(−d₁/2) − exp(−d₂/2).
    policy = RBF([[0, 0], [1, 2]], [2, -1], scale=1.0, intercept=1.0)
    e = math.exp
    expected = [3 - e(-2.5), 2 * e(-2.5), 1 + 2 * e(-8.5) - e(-4.0)]
    np.testing.assert_allclose(policy(X), expected, rtol=ROUNDING)
    # ‖τ − 1‖² = 2² + (−1)² + 2·2·(−1)·exp(−5/2).
    assert policy.norm() == pytest.approx(math.sqrt(5 - 4 * e(-2.5)), rel=ROUNDING)
    both = RBF([[0, 0], [1, 2]], [[2, 0], [-1, 3]], scale=1.0)
    np.testing.assert_allclose(both.norm(), [policy.norm(), 3.0], rtol=ROUNDING)


def test_rbf_far_from_the_origin_keeps_its_digits():
    # Moving contexts and centers together changes nothing: 2^27 is exact in floating point.
    far = 2.0**27
    near = RBF([[0, 0], [1, 2]], [2, -1], scale=1.0)(X)
    moved = RBF([[far, far], [1 + far, 2 + far]], [2, -1], scale=1.0)(X + far)
    np.testing.assert_allclose(moved, near, rtol=ROUNDING)


def test_rbf_in_blocks_is_rbf_at_once(monkeypatch):
    policy = RBF([[0, 0], [1, 2]], [2, -1], scale=1.0)
    whole, gradient = policy(X), policy.vjp(X, np.ones(3))
    monkeypatch.setattr("titrant.policies.rbf.BLOCK", 2)
    np.testing.assert_allclose(policy(X), whole, rtol=ROUNDING)
    np.testing.assert_allclose(policy.vjp(X, np.ones(3)), gradient, rtol=ROUNDING)


def test_clipped():
    # Doses 10, 12, 5 within [6, 11].
    inner = Linear([3, -0.5], 10)
    policy = Clipped(inner, 6, 11)
    np.testing.assert_allclose(policy(X), [10, 11, 6], rtol=ROUNDING)
    # Only the first row moves with the parameters: 1·(1, 0, 0).
    np.testing.assert_array_equal(policy.vjp(X, np.array([1.0, 5.0, 7.0])), [1, 0, 0])
    np.testing.assert_allclose(Clipped(inner, upper=11)(X), [10, 11, 5], rtol=ROUNDING)
    np.testing.assert_allclose(Clipped(inner, 6)(X), [10, 12, 6], rtol=ROUNDING)
    both = Clipped(Constant([1, 9]), [2, None], [None, 8])
    np.testing.assert_array_equal(both(X), [[2, 8]] * 3)


def test_exactly_at_a_bound_the_gradient_is_zero():
    np.testing.assert_array_equal(Clipped(Constant(3.0), 3.0, 9.0).vjp(X, np.ones(3)), [0.0])


def test_clipping_a_function_has_no_parameters():
    policy = Clipped(lambda x: x[:, 0], 0, 1)
    np.testing.assert_array_equal(policy(X), [0, 1, 0])
    assert not policy.parametric
    with pytest.raises(InvalidArgument, match="`Function` has none"):
        _ = policy.params


def test_rounded():
    # In steps of 2.5 from 1: 1, 3.5, 6, 8.5, …; the halves 2.25 and 4.75 go up.
    values = np.array([[0.9], [2.25], [4.75], [5.0], [-0.25]])
    policy = Rounded(Linear([1.0]), 2.5, 1)
    np.testing.assert_allclose(policy(values), [1, 3.5, 6, 6, 1], rtol=ROUNDING)
    assert not policy.parametric


def test_function():
    policy = as_policy(lambda x: x[:, 0] + 1)
    np.testing.assert_array_equal(policy(X), [1, 2, 0])
    assert as_policy(policy) is policy
    np.testing.assert_array_equal(as_policy(lambda x: x.astype(int))(X), X)  # two doses, whole
    with pytest.raises(InvalidArgument, match="cannot be saved"):
        policy.to_dict()
    with pytest.raises(InvalidArgument, match="cannot be saved"):
        Clipped(policy, 0).to_dict()


def test_a_failed_save_leaves_the_old_file_and_no_litter(tmp_path):
    Constant(1.0).save(tmp_path / "p.json")
    with pytest.raises(InvalidArgument):
        as_policy(lambda x: x[:, 0]).save(tmp_path / "p.json")
    with pytest.raises(OSError, match="directory"):
        Constant(1.0).save(tmp_path / "missing" / "p.json")
    assert [path.name for path in tmp_path.iterdir()] == ["p.json"]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (3.0, r"one dose per row, shape \(3,\) or \(3, d\); got \(\)"),
        ([1.0, 2.0], r"got \(2,\)"),
        (np.ones((3, 2, 1)), r"got \(3, 2, 1\)"),
        (np.ones((3, 0)), r"got \(3, 0\)"),
        ([1.0, np.nan, np.inf], r"not finite in 2 of 3 rows \(first: row 1\)"),
        (["a", "b", "c"], "must be numeric; got values of type text, first 'a' in row 0"),
        (None, r"got \(\)"),
    ],
)
def test_what_a_function_returns_is_checked(returned, message):
    with pytest.raises(DataError, match=message) as caught:
        as_policy(lambda _: returned)(X)
    assert "policy function `" in str(caught.value)


@pytest.mark.parametrize("wrong", ["linear", None, True, Linear, np.ones(3)])
def test_what_is_no_policy_is_refused(wrong):
    with pytest.raises(InvalidArgument, match="A policy must be a policy of titrant, a number"):
        as_policy(wrong)
    with pytest.raises(InvalidArgument):
        Function(wrong)


def test_doses_name_the_mismatch():
    with pytest.raises(DataError, match=r"gives 2 dose\(s\) per row, but the log has 1"):
        doses(Constant([1, 2]), X, 1)
    with pytest.raises(DataError, match=r"gives 1 dose\(s\) per row, but the log has 3"):
        doses(Constant(1), X, 3)
    with pytest.raises(DataError, match="not finite in 1 of 3 rows"):
        doses(Linear([1.0, 0.0]), np.array([[0, 0], [np.nan, 0], [1, 1]]), 1)


@pytest.mark.parametrize("template", [Linear(), RBF([[0, 0]], scale=1.0)])
def test_a_template_says_so(template):
    for use in (lambda: template(X), lambda: template.params, lambda: template.vjp(X, X[:, 0])):
        with pytest.raises(InvalidArgument, match="is a template"):
            use()


def test_a_context_of_other_columns_is_refused():
    policy = Linear([1, 2, 3], features=["age", "bmi", "sex"])
    with pytest.raises(DataError, match=r"3 columns \(age, bmi, sex\).*\(3, 2\)"):
        policy(X)
    with pytest.raises(DataError, match=r"got an array of shape \(2,\)"):
        RBF([[0, 0]], [1], scale=1)(X[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(np.nan), "The `dose` of `Constant` must be a finite number"),
        (lambda: Constant("3"), "`dose`"),
        (lambda: Constant(None), "`dose`"),
        (lambda: Constant([]), "at least one entry"),
        (lambda: Constant([1, np.inf]), "`dose`"),
        (lambda: Constant([[1], [1, 2]]), "`dose`"),
        (lambda: Linear([1, np.nan]), "`coef`"),
        (lambda: Linear(3.0), "`coef`"),
        (lambda: Linear([1, 2], [1, 2]), r"beside `coef` of shape \(2,\)"),
        (lambda: Linear([[1, 2]], [1, 2, 3]), "a number or 2 numbers"),
        (lambda: Linear([1, 2], features=["a"]), "a list of 2 distinct names"),
        (lambda: Linear([1, 2], features=["a", "a"]), "distinct names"),
        (lambda: Linear([1, 2], features="ab"), "distinct names"),
        (lambda: Linear(features=[1]), "distinct names"),
        (lambda: RBF([1, 2], [1], scale=1), "`centers`"),
        (lambda: RBF([[1, 2]], [1, 2], scale=1), "1 rows, one for each center"),
        (lambda: RBF([[1, 2]], [1], scale=0), "The `scale` of `RBF` must be a finite number > 0"),
        (lambda: Clipped(Constant(1), 3, 3), "The `upper` of `Clipped` must be above"),
        (lambda: Clipped(Constant(1), np.nan), "`lower`"),
        (lambda: Clipped(Constant(1), "a"), "`lower`"),
        (lambda: Clipped(Constant(1), np.inf), "`lower`"),
        (lambda: Clipped(Constant(1), ["a"]), "`lower`"),
        (lambda: Clipped(Constant(1), [-np.inf, np.nan]), "`lower`"),
        (lambda: Clipped(Constant(1), [1, 2], [3, 4, 5]), "as long as"),
        (lambda: Clipped("3.0"), "A policy must be"),
        (lambda: Rounded(Constant(1), 0), "The `step` of `Rounded` must be"),
        (lambda: Rounded(Constant(1), [1, -1]), "numbers > 0"),
        (lambda: Rounded("x", 1), "A policy must be"),
    ],
)
def test_bad_fields_are_refused(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()


def test_bounds_and_steps_must_fit_the_doses():
    with pytest.raises(DataError, match=r"`lower` of `Clipped` has 2 entries.* 1 dose"):
        Clipped(Constant(1), [0, 0])(X)
    with pytest.raises(DataError, match=r"`step` of `Rounded` has 3 entries.* 2 dose"):
        Rounded(Constant([1, 2]), [1, 1, 1])(X)
    np.testing.assert_array_equal(Clipped(Constant(1), [2])(X), [2, 2, 2])


def test_changing_the_given_array_does_not_change_the_policy():
    coef = np.array([1.0, 2.0])
    policy = Linear(coef)
    coef[:] = 0.0
    np.testing.assert_array_equal(policy.coef, [1, 2])


def test_a_dose_may_be_a_numpy_scalar():
    assert (
        Constant(np.float32(2)).dose == Constant(np.array(2.0)).dose == Constant(np.int64(2)).dose
    )
