"""Policies that change the logged dose: what they are, apart from any log."""

from __future__ import annotations

import numpy as np
import pytest

from titrant import (
    Clipped,
    Constant,
    InvalidArgument,
    Limited,
    Linear,
    Moved,
    Multiply,
    Randomized,
    Shift,
    StatusQuo,
    Tilt,
    load_policy,
)
from titrant.errors import DataError
from titrant.policies import MOVES, policy_from_dict

NONE = np.empty((5, 0))
T = np.array([-2.0, 0.0, 0.5, 3.0, 40.0])
EXAMPLES = [
    Shift(-5.0),
    Shift(2.0, low=0.0, high=9.0),
    Multiply(0.9, high=100.0),
    Limited(0.0, 40.0),
    Limited(high=3.0),
    Tilt(-0.25),
    Randomized(Linear([0.5, 1.0], 2.0, features=["age", "bmi"]), 2.0),
]
ROUNDING = 1e-12
"""Of sums and products of a few numbers."""


def test_every_kind_has_an_example():
    assert {type(policy) for policy in EXAMPLES} == set(MOVES)


@pytest.mark.parametrize("policy", EXAMPLES, ids=repr)
def test_saved_and_loaded(policy, tmp_path):
    # Law: what was saved is read back equal, and as the same document.
    assert policy_from_dict(policy.to_dict()) == policy
    policy.save(tmp_path / "policy.json")
    assert load_policy(tmp_path / "policy.json").to_dict() == policy.to_dict()


@pytest.mark.parametrize("policy", EXAMPLES, ids=repr)
def test_contexts_alone_have_no_dose(policy):
    with pytest.raises(InvalidArgument, match="changes the dose that was given"):
        policy(np.zeros((3, 2)))
    with pytest.raises(InvalidArgument, match="changes the dose that was given"):
        Clipped(policy, 0.0, 1.0)(np.zeros((3, 2)))


@pytest.mark.parametrize(
    "policy",
    [
        Shift(1.5),
        Multiply(0.8),
        Moved(lambda x, t: np.sinh(t / 20), lambda x, t: 20 * np.arcsinh(t)),  # noqa: ARG005
        Moved(lambda x, t: -t, lambda x, t: -t, lambda x, t: -np.ones(len(t))),  # noqa: ARG005
    ],
    ids=["shift", "multiply", "sinh", "mirror"],
)
def test_origin_is_the_inverse(policy):
    to = policy.moved(NONE, T)
    s, slope = policy.origin(NONE, to)
    # Law: d⁻¹(d(t)) = t,
    np.testing.assert_allclose(s, T, atol=1e-9)
    # and |∂d⁻¹/∂t| is the finite difference of d⁻¹.
    above, below = (policy.origin(NONE, to + step)[0] for step in (1e-4, -1e-4))
    np.testing.assert_allclose(slope, np.abs(above - below) / 2e-4, rtol=1e-6)


def test_known_doses():
    np.testing.assert_array_equal(Shift(2.0).moved(NONE, T), [0.0, 2.0, 2.5, 5.0, 42.0])
    np.testing.assert_array_equal(Multiply(2.0).moved(NONE, T), [-4.0, 0.0, 1.0, 6.0, 80.0])
    np.testing.assert_array_equal(Limited(0.0, 3.0).moved(T), [0.0, 0.0, 0.5, 3.0, 3.0])


def test_contexts_of_a_function():
    x = np.array([[1.0], [2.0]])
    policy = Moved(lambda x, t: t + x[:, 0], lambda x, t: t - x[:, 0], features=["age"])
    assert policy.features == ("age",)
    np.testing.assert_array_equal(policy.moved(x, np.array([1.0, 1.0])), [2.0, 3.0])
    with pytest.raises(InvalidArgument, match="cannot be saved"):
        policy.to_dict()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Shift(np.nan), "`by` of `Shift` must be a finite number"),
        (lambda: Multiply(0.0), "`by` of `Multiply` must be a finite number > 0"),
        (lambda: Shift(1.0, low=3.0, high=2.0), "`high` of `Shift` must be above `low` = 3"),
        (Limited, "`high` of `Limited` must be a number where `low` is none"),
        (lambda: Tilt(np.inf), "`strength` of `Tilt` must be a finite number"),
        (lambda: Randomized(Constant(3.0), 0.0), "`sd` of `Randomized` must be"),
        (lambda: Randomized(StatusQuo(), 1.0), "`policy` of `Randomized` must be"),
        (lambda: Randomized(Shift(1.0), 1.0), "`policy` of `Randomized` must be"),
        (lambda: Moved(3.0, 4.0), "`function` of `Moved` must be a function"),
        (
            lambda: Moved(np.add),
            "`inverse` of `Moved` must be a function .* that becomes t; got None",
        ),
    ],
)
def test_refusals(make, sentence):
    with pytest.raises(InvalidArgument, match=sentence):
        make()


def test_an_inverse_that_leads_elsewhere_is_refused():
    policy = Moved(lambda x, t: t + 1.0, lambda x, t: t - 2.0)  # noqa: ARG005
    with pytest.raises(DataError, match=r"does not lead back to the dose in 5 of 5 rows"):
        policy.moved(NONE, T)
    two = Moved(lambda x, t: np.stack([t, t], 1), lambda x, t: t)  # noqa: ARG005
    with pytest.raises(DataError, match="one number a row"):
        two.moved(NONE, T)
