"""Laws of names: the order of columns changes no dose, nor does a column that is not asked for."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import titrant as tt
from policies.examples import EXAMPLES, FEATURES, NAMED, TABLES, contexts
from titrant.policies import Clipped, Constant, Function, Linear, Rounded, doses
from titrant.policies.calling import recommended

X = contexts()
COLUMNS = {name: X[:, j] for j, name in enumerate(FEATURES)}
ORDERS = list(permutations(range(3)))

each = pytest.mark.parametrize("policy", NAMED.values(), ids=NAMED)
each_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
knowing = pytest.mark.parametrize(
    "policy",
    [p for p in NAMED.values() if p.features],
    ids=[k for k, p in NAMED.items() if p.features],
)


def test_every_example_with_contexts_knows_them():
    assert {name for name, policy in NAMED.items() if policy.features != FEATURES} == {
        "constant",
        "constant vector",
    }


@each
@each_table
def test_the_columns_of_a_table_go_by_name(policy, table):
    # In another order, amid columns that the policy does not know, one of them text.
    others = {"id": [f"a{i}" for i in range(len(X))], "zzz": np.full(len(X), np.nan)}
    shuffled = {"id": others["id"], **dict(reversed(COLUMNS.items())), "zzz": others["zzz"]}
    np.testing.assert_array_equal(policy(table(shuffled)), policy(X))
    np.testing.assert_array_equal(recommended(policy, table(shuffled)), policy(X))


@each
@pytest.mark.parametrize("order", ORDERS)
def test_the_columns_of_a_log_go_by_name(policy, order):
    dimension = 1 if policy(X).ndim == 1 else 2
    names = [FEATURES[j] for j in order]
    wide = np.column_stack([X[:, order], X[:, :1] * 7.0])
    expected = policy(X).reshape(len(X), -1)
    np.testing.assert_array_equal(doses(policy, X[:, order], dimension, names), expected)
    np.testing.assert_array_equal(doses(policy, wide, dimension, [*names, "other"]), expected)


@knowing
@each_table
def test_a_column_that_a_table_lacks_is_named(policy, table):
    some = {name: column for name, column in COLUMNS.items() if name != "bmi"}
    with pytest.raises(tt.DataError, match="The context column `bmi` is not in the table"):
        policy(table(some))
    with pytest.raises(tt.DataError, match="did you mean `BMI`"):
        policy(table({**some, "BMI": COLUMNS["bmi"]}))


@knowing
def test_the_columns_that_a_log_lacks_are_named(policy):
    with pytest.raises(tt.DataError, match=r"uses the contexts `age`, `sex`, which the log lacks"):
        doses(policy, X, 1, ["x0", "x1", "bmi"])
    with pytest.raises(tt.DataError, match=r"the context `sex`, .* did you mean `Sex`\? .*names="):
        doses(policy, X, 1, ["age", "bmi", "Sex"])


@knowing
def test_a_bare_array_is_in_the_order_of_the_policy(policy):
    expected = policy(COLUMNS)
    np.testing.assert_array_equal(policy(X), expected)
    np.testing.assert_array_equal(policy(X.tolist()), expected)
    # Columns that are only numbered have no names: the table is an array.
    np.testing.assert_array_equal(policy(pd.DataFrame(X)), expected)


@pytest.mark.parametrize(
    "policy", [p for p in EXAMPLES.values() if p.features is None], ids=lambda p: type(p).__name__
)
def test_a_policy_without_names_takes_columns_as_they_come(policy):
    np.testing.assert_array_equal(policy(pd.DataFrame(COLUMNS)), policy(X))
    dimension = 1 if policy(X).ndim == 1 else 2
    tau = doses(policy, X, dimension, ["some", "other", "names"])
    np.testing.assert_array_equal(tau, policy(X).reshape(len(X), -1))


def test_a_function_gets_an_array_in_the_order_of_the_log_or_of_its_features():
    seen = []

    def rule(x):
        seen.append(x)
        return x[:, 0]

    doses(Function(rule), X, 1, ["c", "b", "a"])
    doses(Function(rule, features=["b", "c"]), X, 1, ["c", "b", "a"])
    Clipped(Function(rule, features=["sex"]), 0)(pd.DataFrame(COLUMNS))
    for x, places in zip(seen, ([0, 1, 2], [1, 0], [2]), strict=True):
        assert isinstance(x, np.ndarray)
        np.testing.assert_array_equal(x, X[:, places])


@each_table
def test_the_indicator_of_a_text_is_made_of_its_column(table):
    policy = Rounded(Linear([1.0, 10.0], features=["age", "sex=male"]), 1.0)
    rows = {"sex": ["female", "male", "male"], "age": [1.0, 2.0, 3.0]}
    np.testing.assert_array_equal(policy(table(rows)), [1.0, 12.0, 13.0])
    lacking = (
        "`sex=male` is not in the table, nor is the column `sex` of which it is made; did you "
    )
    with pytest.raises(tt.DataError, match=f"{lacking}mean `Sex`"):
        policy(table({"age": [1.0, 2.0, 3.0], "Sex": [0, 1, 1]}))


@each_table
def test_missing_values_and_text_are_refused_by_name(table):
    policy = Linear([1.0, 2.0], features=["age", "bmi"])
    with pytest.raises(tt.DataError, match="context column `bmi`: 1; row 1"):
        policy(table({"bmi": [1.0, None, 2.0], "age": [1.0, 2.0, 3.0]}))
    with pytest.raises(tt.DataError, match=r"context column `bmi` must be numeric.* text"):
        policy(table({"bmi": ["a", "b", "c"], "age": [1.0, 2.0, 3.0]}))


def test_repeated_names_are_refused():
    twice = pd.DataFrame(X, columns=["age", "bmi", "bmi"])
    with pytest.raises(tt.DataError, match="`bmi` 2 times"):
        Linear([1.0], features=["age"])(twice)


@each_table
def test_one_dose_for_all_counts_the_rows(table):
    np.testing.assert_array_equal(Constant(3.0)(table(COLUMNS)), np.full(len(X), 3.0))


def test_a_series_is_one_column():
    policy = Linear([2.0], features=["age"])
    np.testing.assert_array_equal(policy(pd.DataFrame(COLUMNS)["age"]), 2.0 * X[:, 0])
    with pytest.raises(tt.DataError, match="`age` is not in the table"):
        policy(pd.DataFrame(COLUMNS)["bmi"])


@pytest.mark.parametrize("values", [np.ma.masked_array(X, X > 1.0), X.astype(complex) + 1j])
def test_the_context_is_read_like_that_of_a_log(values):
    # What lies under a mask is no context, and no part of a number is dropped.
    with pytest.raises(tt.DataError, match=r"not finite|must be numeric"):
        recommended(NAMED["linear"], values)


# ── logs from tables ─────────────────────────────────────────────────────────────────────────────


@each_table
def test_a_log_keeps_the_names_of_its_table(table):
    t, y = X[:, 0] + 1.0, X[:, 1]
    log = tt.LoggedData(table(COLUMNS), t, y)
    assert log.names == FEATURES
    np.testing.assert_array_equal(log.context, X)


def test_the_names_of_a_table_are_its_own():
    t, y, frame = X[:, 0] + 1.0, X[:, 1], pd.DataFrame(COLUMNS)
    assert tt.LoggedData(frame, t, y, names=FEATURES).names == FEATURES
    with pytest.raises(tt.DataError, match="Leave `names` out"):
        tt.LoggedData(frame, t, y, names=("bmi", "age", "sex"))
    assert tt.LoggedData(frame["bmi"], t, y).names == ("bmi",)
    assert tt.LoggedData(pd.DataFrame(X), t, y).names == ("x0", "x1", "x2")
    with pytest.raises(tt.DataError, match="must be text; got 7"):
        tt.LoggedData(frame.rename(columns={"bmi": 7}), t, y)
    with pytest.raises(tt.DataError, match="context column `bmi` must be numeric"):
        tt.LoggedData(frame.assign(bmi="a"), t, y)


@pytest.mark.parametrize(
    "columns", [[1, 0], [("x", "b"), ("x", "a")]], ids=["numbered", "in two levels"]
)
def test_columns_without_names_are_not_matched_by_position(columns):
    rule = Linear([1.0, 0.0], features=["a", "b"])
    table = pd.DataFrame([[10.0, 1.0]], columns=["b", "a"])
    assert rule(table).tolist() == [1.0]
    nameless = table.copy()
    two = isinstance(columns[0], tuple)
    nameless.columns = pd.MultiIndex.from_tuples(columns) if two else columns
    for policy in (rule, Clipped(rule, 0, 99), Rounded(rule, 0.5)):
        with pytest.raises(
            tt.DataError, match=r"by name \(a, b\).*numbered or named in several levels"
        ):
            policy(nameless)
    # A policy that knows no names takes the columns as they come.
    assert Linear([1.0, 0.0])(nameless.to_numpy()).tolist() == [10.0]
