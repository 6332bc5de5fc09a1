"""Laws of every policy: shape, rows by themselves, gradient, exact saving, immutability."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from policies.examples import EXAMPLES, PARAMETRIC, contexts
from titrant.policies import POLICIES, doses, load_policy, policy_from_dict

# A central difference at step 1e-6 of a function with third derivatives near 1: error 1e-12 from
# the step, 1e-10 from rounding.
GRADIENT = 1e-8
# Matrix products of other row counts may add in another order.
ROUNDING = 1e-13

each = pytest.mark.parametrize("policy", EXAMPLES.values(), ids=EXAMPLES.keys())
each_parametric = pytest.mark.parametrize("policy", PARAMETRIC.values(), ids=PARAMETRIC.keys())


def test_every_class_has_an_example():
    assert {type(policy) for policy in EXAMPLES.values()} == set(POLICIES)


@each
def test_one_dose_or_d_doses_per_row(policy):
    tau = policy(contexts())
    assert tau.shape in {(40,), (40, 2)}
    dimension = 2 if tau.ndim == 2 else 1
    np.testing.assert_array_equal(doses(policy, contexts(), dimension), tau.reshape(40, -1))
    assert policy(contexts()[:0]).shape == (0, *tau.shape[1:])


@each
def test_rows_are_dosed_by_themselves(policy):
    # The doses of some rows are some rows of the doses.
    X, rows = contexts(), [7, 3, 3, 21]
    np.testing.assert_allclose(policy(X[rows]), policy(X)[rows], rtol=ROUNDING, atol=ROUNDING)


@each_parametric
def test_gradient_is_that_of_finite_differences(policy):
    # vjp(X, g) = d/dβ Σ g·τ_β(X)
    X = contexts()
    g = np.random.default_rng(1).normal(size=policy(X).shape)
    beta, eps = policy.params, 1e-6
    expected = [
        np.sum(g * (policy.with_params(beta + step)(X) - policy.with_params(beta - step)(X)))
        / (2 * eps)
        for step in eps * np.eye(len(beta))
    ]
    np.testing.assert_allclose(policy.vjp(X, g), expected, rtol=GRADIENT, atol=GRADIENT)


@each_parametric
def test_parameters_go_in_and_out(policy):
    assert policy.with_params(policy.params) == policy
    assert policy.with_params(policy.params + 1.0) != policy
    new = policy.params * 2.0 + 0.25
    np.testing.assert_array_equal(policy.with_params(new).params, new)
    assert policy.with_params(new).features == policy.features


@each_parametric
@pytest.mark.parametrize("wrong", [[], [np.nan], [[1.0]]])
def test_wrong_parameters_are_refused(policy, wrong):
    with pytest.raises(ValueError, match="The `params` of"):
        policy.with_params(np.array(wrong))


@each
def test_saved_and_loaded_it_is_the_same_bit_for_bit(policy, tmp_path):
    policy.save(tmp_path / "policy.json")
    loaded = load_policy(tmp_path / "policy.json")
    assert loaded == policy
    assert loaded.features == policy.features
    assert loaded.to_dict() == policy.to_dict()
    np.testing.assert_array_equal(loaded(contexts()), policy(contexts()))
    assert policy_from_dict(policy.to_dict()) == policy


@each
def test_a_copy_is_equal_and_the_repr_is_one_line(policy):
    assert copy.deepcopy(policy) == policy
    assert pickle.loads(pickle.dumps(policy)) == policy  # noqa: S301  # processes exchange policies
    assert "\n" not in repr(policy)
    assert repr(policy).startswith(type(policy).__name__)


@each
def test_it_cannot_be_changed(policy):
    for name in policy.__slots__:
        with pytest.raises(AttributeError):
            setattr(policy, name, None)
        value = getattr(policy, name)
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[...] = 0.0


def test_policies_of_different_classes_or_numbers_differ():
    policies = list(EXAMPLES.values())
    assert [[a == b for a in policies] for b in policies] == np.eye(len(policies)).tolist()
