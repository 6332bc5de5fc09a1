"""The one place that phrases errors of parameters: what passes, what does not, in which words."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

from titrant import _check
from titrant.errors import InvalidArgument, TitrantError

NOT_NUMBERS = [True, False, None, "0.5", [0.5], 1 + 0j, np.bool_(True), np.complex128(1)]  # noqa: FBT003
NOT_FINITE = [math.nan, math.inf, -math.inf, np.float64("nan"), 10**400, -(10**400)]


def test_the_sentence():
    with pytest.raises(InvalidArgument) as error:
        _check.positive(0.0, "bandwidth", "SelfNormalized")
    sentence = "The `bandwidth` of `SelfNormalized` must be a finite number > 0; got 0.0."
    assert str(error.value) == sentence


def test_the_sentence_shows_numpy_numbers_as_numbers():
    with pytest.raises(InvalidArgument, match=r"; got 0\.0\.$"):
        _check.positive(np.float64(0.0), "bandwidth", "SelfNormalized")
    with pytest.raises(InvalidArgument, match=r"; got -3\.$"):
        _check.count(np.int64(-3), "folds", "DoublyRobust")


def test_the_sentence_shows_the_beginning_of_an_array():
    with pytest.raises(InvalidArgument) as error:
        _check.number(np.arange(300.0), "at_most", "Limits")
    assert len(str(error.value)) < 300
    assert "got array([ 0., 1., 2.," in str(error.value)


def test_errors_are_both_ours_and_value_errors():
    error = _check.invalid("a", "B", "c", 1)
    assert isinstance(error, TitrantError)
    assert isinstance(error, ValueError)


RULES = {
    _check.number: "a finite number",
    _check.positive: "a finite number > 0",
    _check.nonnegative: "a finite number ≥ 0",
    _check.probability: "a number strictly between 0 and 1",
}


@pytest.mark.parametrize(
    ("check", "accepted", "refused"),
    [
        (_check.number, [-1e300, -2, 0, 0.5, np.float32(0.25), np.int8(3)], []),
        (_check.positive, [5e-324, 0.5, 3, np.float32(0.25), np.uint8(3)], [0, -0.0, -1, -1e-9]),
        (_check.nonnegative, [0, 0.0, -0.0, 5e-324, 3, np.int64(0)], [-1, -5e-324]),
        (_check.probability, [1e-12, 0.5, np.float64(0.95), 1 - 1e-12], [0, 1, 1.0, 0.0, -0.1, 95]),
    ],
    ids=["number", "positive", "nonnegative", "probability"],
)
def test_numbers(check, accepted, refused):
    for value in accepted:
        result = check(value, "level", "Owner")
        assert type(result) is float
        assert result == float(value)
    for value in [*refused, *NOT_NUMBERS, *NOT_FINITE, Decimal("0.5")]:
        with pytest.raises(InvalidArgument) as error:
            check(value, "level", "Owner")
        assert str(error.value).startswith(f"The `level` of `Owner` must be {RULES[check]}; got ")


def test_counts():
    for value in (1, 7, np.int32(4), np.uint8(2)):
        result = _check.count(value, "folds", "Owner")
        assert type(result) is int
        assert result == value
    assert _check.count(0, "seed", "Owner", at_least=0) == 0
    for value in (0, -1, 2.0, 2.5, math.nan, "3", None, True, np.bool_(True), np.float64(2)):  # noqa: FBT003
        with pytest.raises(InvalidArgument, match="must be a whole number ≥ 1; got"):
            _check.count(value, "folds", "Owner")
    with pytest.raises(InvalidArgument, match="must be a whole number ≥ 2; got 1"):
        _check.count(1, "bins", "Owner", at_least=2)


def test_finite_array_returns_contiguous_floats():
    strided = np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::2]
    result = _check.finite_array(strided, "coef", "Linear", ndim=2)
    assert result.dtype == np.float64
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result, [[0, 2], [4, 6], [8, 10]])
    assert _check.finite_array(3, "intercept", "Linear", ndim=(0, 1)).shape == ()
    assert _check.finite_array([3], "intercept", "Linear", ndim=(0, 1)).shape == (1,)


@pytest.mark.parametrize(
    "value",
    [[1, math.nan], [math.inf], "abc", [[1], [1, 2]], [None], [[1.0]], 1.0, {"a": 1}],
    ids=repr,
)
def test_finite_array_refuses(value):
    sentence = "The `coef` of `Linear` must be 1-dimensional and made of finite numbers; got "
    with pytest.raises(InvalidArgument) as error:
        _check.finite_array(value, "coef", "Linear", ndim=1)
    assert str(error.value).startswith(sentence)


def test_finite_array_names_every_shape_it_takes():
    with pytest.raises(InvalidArgument, match="must be 0-dimensional or 1-dimensional and"):
        _check.finite_array([[1.0]], "intercept", "Linear", ndim=(0, 1))
