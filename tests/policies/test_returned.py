"""What a policy returns is checked like the column of a log, whoever wrote it and wraps it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import titrant as tt
from evaluation.logs import smooth_log
from titrant.policies import Clipped, Function, Policy, Rounded, doses
from titrant.policies.calling import recommended

X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
LOG = smooth_log(60)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Own(Policy):
    """A policy of a user's own class that returns what it is told to."""

    value: Any

    def __call__(self, X):
        return self.value(X) if callable(self.value) else self.value


WRAPPED = {
    "own class": Own,
    "function": lambda value: Function(Own(value).__call__),
    "clipped": lambda value: Clipped(Own(value), -100.0, 100.0),
    "rounded": lambda value: Rounded(Own(value), 1.0),
    "nested": lambda value: Rounded(Clipped(Function(Own(value).__call__), None, 100.0), 1.0),
}
each_wrapping = pytest.mark.parametrize("wrapped", WRAPPED.values(), ids=WRAPPED)

REFUSED = {
    "masked": (np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]), "missing or not finite in 1 of 3"),
    "masked whole": (np.ma.masked_array([1, 2, 3], [0, 1, 1]), "missing or not finite in 2 of 3"),
    "complex": (np.array([1 + 2j, 2, 3]), "must be numeric; got values of type complex128"),
    "complex objects": ([1 + 2j, 2, 3], "must be numeric; got values of type complex"),
    "dates": (np.array(["2020-01-01"] * 3, "M8[D]"), r"type datetime64\[D\]"),
    "Python dates": ([dt.date(2020, 1, 1)] * 3, "must be numeric; got values of type date"),
    "durations": (np.array([1, 2, 3], "m8[h]"), r"type timedelta64\[h\]"),
    "text": (["low", "high", "low"], "type text, first 'low' in row 0"),
    "numbers as text": (["1", "2", "3"], "convert the column to a numeric type"),
    "categories": (pd.Series(["a", "b", "a"], dtype="category"), "type text, first 'a'"),
    "objects": (np.array([1.0, 2.0, {}], object), "type dict, first {} in row 2"),
    "too short": ([1.0, 2.0], r"one dose per row, shape \(3,\) or \(3, d\); got \(2,\)"),
    "a number": (3.0, r"got \(\). For the same dose in every row use `Constant`"),
    "nothing": (None, r"got \(\)"),
    "a dict": ({"dose": [1.0, 2.0, 3.0]}, "type dict"),
    "no column": (np.ones((3, 0)), r"got \(3, 0\)"),
    "three axes": (np.ones((3, 1, 1)), r"got \(3, 1, 1\)"),
    "ragged": ([[1.0], [1.0, 2.0], [1.0]], "rows of one length"),
    "NaN": ([1.0, np.nan, 2.0], r"not finite in 1 of 3 rows \(first: row 1\)"),
    "infinite": ([1.0, 2.0, -np.inf], r"not finite in 1 of 3 rows \(first: row 2\)"),
    "None": (np.array([None, 1.0, 2.0], object), "missing or not finite in 1 of 3"),
    "pandas NA": (pd.Series([1, None, 2], dtype="Int64"), "missing or not finite in 1 of 3"),
    "polars null": (pl.Series([1, None, 2]), "missing or not finite in 1 of 3"),
}
TAKEN = {
    "list": [1, 2, 3],
    "whole numbers": np.array([1, 2, 3], np.int8),
    "half precision": np.array([1, 2, 3], np.float16),
    "decimals": [Decimal(1), Decimal(2), Decimal(3)],
    "objects": np.array([1, 2.0, np.float32(3)], object),
    "nothing masked": np.ma.masked_array([1.0, 2.0, 3.0], [0, 0, 0]),
    "pandas": pd.Series([1.0, 2.0, 3.0]),
    "pandas, shuffled index": pd.Series([1.0, 2.0, 3.0], index=[2, 0, 1]),  # by position
    "pandas nullable": pd.Series([1, 2, 3], dtype="Int64"),
    "polars": pl.Series([1.0, 2.0, 3.0]),
    "arrow": pa.array([1.0, 2.0, 3.0]),
}


@each_wrapping
@pytest.mark.parametrize(("value", "message"), REFUSED.values(), ids=REFUSED)
def test_no_dose_is_guessed(wrapped, value, message):
    for call in (recommended, lambda policy, x: doses(policy, x, 1)):
        with pytest.raises(tt.DataError, match=message):
            call(wrapped(value), X)


@each_wrapping
@pytest.mark.parametrize("value", TAKEN.values(), ids=TAKEN)
def test_doses_go_to_rows_by_position(wrapped, value):
    tau = recommended(wrapped(value), X)
    assert type(tau) is np.ndarray
    assert tau.dtype == np.float64
    np.testing.assert_array_equal(tau, [1.0, 2.0, 3.0])


@each_wrapping
def test_booleans_are_0_and_1_as_in_a_log(wrapped):
    np.testing.assert_array_equal(recommended(wrapped([True, False, True]), X), [1.0, 0.0, 1.0])


def masked(x):
    """Doses with every tenth one masked; what lies under the mask looks like a dose."""
    return np.ma.masked_array(x[:, 0], np.arange(len(x)) % 10 == 0)


def turned(x):
    return x[:, 0] + 0.1j


@pytest.mark.parametrize(
    ("value", "message"), [(masked, "missing or not finite"), (turned, "complex128")]
)
@each_wrapping
def test_wherever_a_policy_is_called(wrapped, value, message):
    policy = wrapped(value)
    uses = (
        lambda: tt.evaluate(LOG, policy, estimator=tt.SelfNormalized()),
        lambda: tt.compare(LOG, {"a": tt.Constant(0.5), "b": policy}),
        lambda: tt.check(LOG, policy, estimator=tt.SelfNormalized()),
        lambda: tt.curve(LOG, lambda _: policy, [1.0], estimator=tt.SelfNormalized()),
        lambda: tt.bandwidth_path(LOG, policy, estimator=tt.SelfNormalized()),
        lambda: tt.PolicyLearner(
            procedure=tt.CPO(restarts=1), grade=tt.SelfNormalized(), against={"b": policy}
        ).fit(LOG),
        lambda: tt.PolicyLearner(procedure=tt.CPO(restarts=1, start=policy), honest=False).fit(LOG),
    )
    for use in uses:
        with pytest.raises(tt.DataError, match=message):
            use()


def writes(x):
    x[:, 0] = 0.0
    return x[:, 0]


def divides(x):
    return x[:, 0] * (1 / 0)


@pytest.mark.parametrize(
    ("rule", "raised", "said"),
    [
        (writes, ValueError, r"ValueError .*read-only.*change a copy, `X.copy\(\)`"),
        (divides, ZeroDivisionError, "ZeroDivisionError division by zero"),
    ],
)
@pytest.mark.parametrize("wrap", [tt.Function, lambda rule: tt.Clipped(tt.Function(rule), 0)])
def test_what_a_function_raises_is_told_with_its_name(rule, raised, said, wrap):
    expected = f"The policy function `{rule.__name__}` failed: {said}"
    with pytest.raises(tt.DataError, match=expected) as caught:
        tt.evaluate(LOG, wrap(rule), estimator=tt.SelfNormalized())
    assert type(caught.value.__cause__) is raised


def test_a_function_of_a_table_too():
    policy = tt.TablePolicy(lambda _: 1 / 0)
    with pytest.raises(tt.DataError, match="failed: ZeroDivisionError division by") as caught:
        tt.evaluate(LOG, policy, estimator=tt.SelfNormalized())
    assert type(caught.value.__cause__) is ZeroDivisionError


def test_what_another_try_may_mend_stays_what_it_is():
    def lost(_):
        raise OSError("lost")

    with pytest.raises(OSError, match="lost"):
        recommended(tt.Function(lost), X)
