"""LoggedData: what it keeps, in which shape, and that nothing changes it afterwards."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from titrant.data import Columns, LoggedData
from titrant.errors import DataError, InvalidArgument

X = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0], [5.0, 50.0]])
T = np.array([0.5, 1.5, 2.5, 3.5, 4.5])
Y = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
Q = np.array([0.1, 0.2, 0.3, 0.4, 0.5])


def log_of(*, d=1, bounds=None, q=Q):
    treatment = T if d == 1 else np.column_stack([T + j for j in range(d)])
    return LoggedData(X, treatment, Y, q, bounds=bounds, names=["age", "bmi"])


def arrays_of(log):
    parts = [log.context, log.treatment, log.outcome, log.lower, log.upper, log.doses]
    return parts if log.propensity is None else [*parts, log.propensity]


# ── what it keeps ────────────────────────────────────────────────────────────────────────────────
def test_a_log_keeps_what_it_was_given():
    log = log_of()
    np.testing.assert_array_equal(log.context, X)
    np.testing.assert_array_equal(log.treatment, T)
    np.testing.assert_array_equal(log.outcome, Y)
    np.testing.assert_array_equal(log.propensity, Q)
    assert (len(log), log.dimension, log.first_row, log.names) == (5, 1, 0, ("age", "bmi"))
    assert not log.bounded


def test_defaults():
    log = LoggedData(X, T, Y)
    assert log.propensity is None
    assert log.names == ("x0", "x1")
    assert np.all(log.lower == -np.inf)
    assert np.all(log.upper == np.inf)
    assert log.lower.shape == log.upper.shape == (5, 1)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_doses_are_a_view_with_one_column_per_dimension(d):
    log = log_of(d=d)
    assert log.dimension == d
    assert log.doses.shape == (5, d)
    assert log.treatment.shape == ((5,) if d == 1 else (5, d))
    assert np.shares_memory(log.doses, log.treatment)


def test_one_column_may_come_flat_or_as_a_matrix():
    flat = LoggedData(X[:, 0], T, Y, Q)
    tall = LoggedData(X[:, :1], T[:, None], Y[:, None], Q[:, None])
    assert flat.context.shape == tall.context.shape == (5, 1)
    assert tall.treatment.shape == tall.outcome.shape == tall.propensity.shape == (5,)
    for a, b in zip(arrays_of(flat), arrays_of(tall), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_context_may_have_no_columns():
    log = LoggedData(np.empty((5, 0)), T, Y)
    assert log.context.shape == (5, 0)
    assert log.names == ()
    assert "no context" in repr(log)


MESSY = {
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(map(tuple, a.tolist())) if a.ndim == 2 else tuple(a.tolist()),
    "float32": lambda a: a.astype(np.float32),
    "float16": lambda a: a.astype(np.float16),
    "long double": lambda a: a.astype(np.longdouble),
    "big-endian": lambda a: a.astype(">f8"),
    "Fortran order": np.asfortranarray,
    "read-only": lambda a: np.frombuffer(a.tobytes()).reshape(a.shape),
    "every other row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "backwards": lambda a: a[::-1].copy()[::-1],
    "Python objects": lambda a: a.astype(object),
    "decimals": np.vectorize(Decimal, otypes=[object]),
    "fractions": np.vectorize(Fraction, otypes=[object]),
    "masked without a mask": np.ma.MaskedArray,
}


@pytest.mark.parametrize("messy", MESSY.values(), ids=MESSY)
def test_messy_input_gives_the_same_bits(messy):
    # All numbers of the log have exact half, single and double precision, but for q.
    q = np.array([0.125, 0.25, 0.5, 1.0, 2.0])
    clean = LoggedData(X, T, Y, q, bounds=(0, 5))
    log = LoggedData(messy(X), messy(T), messy(Y), messy(q), bounds=(0, 5))
    for a, b in zip(arrays_of(log), arrays_of(clean), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int64, ">i4"])
def test_integer_doses_are_cast(dtype):
    log = LoggedData(X, np.array([1, 2, 3, 4, 5], dtype=dtype), Y)
    assert log.treatment.dtype == np.float64
    np.testing.assert_array_equal(log.treatment, [1.0, 2.0, 3.0, 4.0, 5.0])


def test_booleans_are_zero_and_one():
    carrier = np.array([True, False, True, True, False])
    log = LoggedData(carrier, T, Y)
    np.testing.assert_array_equal(log.context[:, 0], [1.0, 0.0, 1.0, 1.0, 0.0])
    mixed = np.array([[np.True_, 1], [False, 2], [True, 3], [True, 4], [False, 5]], dtype=object)
    np.testing.assert_array_equal(LoggedData(mixed, T, Y).context[:, 0], [1, 0, 1, 1, 0])


# ── it never changes ─────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("d", [1, 2])
def test_arrays_are_contiguous_float64_and_read_only(d):
    log = log_of(d=d, bounds=(0, np.arange(5.0) + 9) if d == 1 else (0, [9, 10]))
    pieces = [log, log.rows(slice(1, 4)), log.rows(slice(None, None, 2)), log.rows([3, 1])]
    for piece in pieces:
        for array in arrays_of(piece):
            assert array.dtype == np.float64
            assert not array.flags.writeable
        for array in (piece.context, piece.treatment, piece.outcome, piece.propensity):
            assert array.flags.c_contiguous


def test_contiguous_float64_is_not_copied_and_stays_writeable_for_its_owner():
    x, t, y, q = X.copy(), T.copy(), Y.copy(), Q.copy()
    log = LoggedData(x, t, y, q)
    for mine, its in zip((x, t, y, q), (log.context, log.treatment, log.outcome, log.propensity),
                         strict=True):  # fmt: skip
        assert np.shares_memory(mine, its)
        assert mine.flags.writeable


def test_a_log_is_frozen():
    log = log_of()
    with pytest.raises(dataclasses.FrozenInstanceError):
        log.outcome = Y
    with pytest.raises(ValueError, match="read-only"):
        log.outcome[0] = 7.0


@pytest.mark.parametrize("through", [copy.copy, copy.deepcopy,
                                     lambda log: pickle.loads(pickle.dumps(log))])  # noqa: S301 # fmt: skip
def test_a_copy_is_the_same_log_and_still_read_only(through):
    log = log_of(bounds=(0, None)).rows(slice(1, 4))
    other = through(log)
    for a, b in zip(arrays_of(log), arrays_of(other), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
        assert not b.flags.writeable
    assert (other.names, other.first_row, other.bounded) == (log.names, 1, True)


def test_shared_bounds_cost_no_memory_per_row():
    n = 10_000
    rng = np.random.default_rng(0)
    log = LoggedData(np.empty((n, 0)), rng.random(n), rng.random(n), bounds=(0, 1))
    assert log.lower.shape == (n, 1)
    assert log.lower.strides[0] == 0
    # Two columns of n floats and little else travel to another process.
    assert len(pickle.dumps(log)) < 2 * 8 * n + 2_000


# ── bounds ───────────────────────────────────────────────────────────────────────────────────────
INF = np.inf
SCALAR_BOUNDS = {
    "none": (None, [-INF] * 5, [INF] * 5),
    "nothing on either side": ((None, None), [-INF] * 5, [INF] * 5),
    "lower": ((0, None), [0.0] * 5, [INF] * 5),
    "both": ((0, 9.5), [0.0] * 5, [9.5] * 5),
    "a list": ([0, 9.5], [0.0] * 5, [9.5] * 5),
    "by row": ((T - 1, T + 2), T - 1, T + 2),
    "by row, one column": ((T[:, None] - 1, None), T - 1, [INF] * 5),
    "by row with gaps": (([0, None, 0, None, 0], None), [0, -INF, 0, -INF, 0], [INF] * 5),
    "at the edge": ((0.5, 4.5), [0.5] * 5, [4.5] * 5),
}


@pytest.mark.parametrize(("bounds", "lower", "upper"), SCALAR_BOUNDS.values(), ids=SCALAR_BOUNDS)
def test_bounds_of_a_scalar_dose(bounds, lower, upper):
    log = log_of(bounds=bounds)
    np.testing.assert_array_equal(log.lower[:, 0], lower)
    np.testing.assert_array_equal(log.upper[:, 0], upper)
    assert log.bounded == bool(np.isfinite(lower).any() or np.isfinite(upper).any())


VECTOR_BOUNDS = {
    "one number": ((0, None), [[0, 0]] * 5, [[INF, INF]] * 5),
    "by dimension": (([0, 1], [9, 10]), [[0, 1]] * 5, [[9, 10]] * 5),
    "by dimension with a gap": (((0, None), (None, 10)), [[0, -INF]] * 5, [[INF, 10]] * 5),
    "by row and dimension": ((np.column_stack([T, T]) - 1, None), np.column_stack([T, T]) - 1,
                             [[INF, INF]] * 5),
}  # fmt: skip


@pytest.mark.parametrize(("bounds", "lower", "upper"), VECTOR_BOUNDS.values(), ids=VECTOR_BOUNDS)
def test_bounds_of_a_vector_dose(bounds, lower, upper):
    log = log_of(d=2, bounds=bounds)
    np.testing.assert_array_equal(log.lower, lower)
    np.testing.assert_array_equal(log.upper, upper)


# ── rows and batches ─────────────────────────────────────────────────────────────────────────────
SELECTIONS = {
    "slice": slice(1, 4),
    "open slice": slice(2, None),
    "slice from the end": slice(-2, None),
    "every other": slice(0, 5, 2),
    "backwards": slice(None, None, -1),
    "nothing": slice(3, 3),
    "mask": np.array([True, False, True, False, True]),
    "numbers": np.array([4, 0, 0]),
    "list": [1, 3],
    "empty list": [],
}


@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS)
@pytest.mark.parametrize("d", [1, 2])
def test_rows_selects_the_same_rows_of_every_array(selection, d):
    per_row = np.arange(5.0) + 9
    log = log_of(d=d, bounds=(0, per_row if d == 1 else np.column_stack([per_row, per_row])))
    chosen = np.arange(5)[selection] if len(np.atleast_1d(selection)) else np.array([], dtype=int)
    part = log.rows(selection)
    assert len(part) == len(chosen)
    assert part.names == log.names
    for whole, cut in zip(arrays_of(log), arrays_of(part), strict=True):
        np.testing.assert_array_equal(cut, whole[chosen], strict=True)


def test_consecutive_rows_share_memory_and_remember_their_place():
    log = log_of()
    part = log.rows(slice(1, 4)).rows(slice(1, None))
    assert part.first_row == 2
    assert np.shares_memory(part.context, log.context)
    assert log.rows(slice(0, 5, 2)).first_row == log.rows([3, 4]).first_row == 0


@given(st.integers(1, 7))
def test_batches_put_together_are_the_log(size):
    log = log_of(d=2, bounds=(0, None))
    parts = list(log.batches(size))
    assert [part.first_row for part in parts] == list(range(0, 5, size))
    assert all(len(part) == size for part in parts[:-1])
    joined = [np.concatenate(pieces) for pieces in zip(*map(arrays_of, parts), strict=True)]
    for whole, together in zip(arrays_of(log), joined, strict=True):
        np.testing.assert_array_equal(together, whole, strict=True)


@pytest.mark.parametrize("size", [0, -1, 2.0, True])
def test_batches_refuse_a_size_at_once(size):
    with pytest.raises(InvalidArgument, match=r"`size` of `LoggedData\.batches`"):
        log_of().batches(size)


def test_batches_of_one_row_and_of_one_dose_are_allowed():
    assert [len(part) for part in log_of().batches(1)] == [1] * 5
    assert log_of().rows([2, 2]).treatment.tolist() == [2.5, 2.5]


# ── with another propensity, with other bounds ───────────────────────────────────────────────────
def test_with_propensity_replaces_and_removes():
    log = log_of(bounds=(0, None)).rows(slice(1, 5))
    doubled = log.with_propensity(2 * log.propensity)
    np.testing.assert_array_equal(doubled.propensity, 2 * Q[1:])
    np.testing.assert_array_equal(log.propensity, Q[1:])
    assert (doubled.first_row, doubled.bounded, doubled.names) == (1, True, ("age", "bmi"))
    assert log.with_propensity(None).propensity is None
    assert log.rows(slice(0, 1)).with_propensity([0.3]).propensity.tolist() == [0.3]


@pytest.mark.parametrize(("q", "sentence"), [
    (Q[:4], "got outcome 5, propensity 4"),
    ([0.1, 0.2, 0.0, 0.4, 0.5], "1 of 5 rows at or below 0"),
    ([0.1, np.nan, 0.3, 0.4, 0.5], "1 of 5 rows"),
])  # fmt: skip
def test_with_propensity_checks_it(q, sentence):
    log = log_of()
    with pytest.raises(DataError, match=sentence):
        log.with_propensity(q)


def test_with_bounds_replaces_removes_and_checks():
    log = log_of(bounds=(0, None))
    assert log.with_bounds((0, 9)).upper.max() == 9.0
    assert not log.with_bounds(None).bounded
    with pytest.raises(DataError, match="2 of 5 rows outside"):
        log.with_bounds((0, 3))


# ── as text and as columns ───────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(("log", "text"), [
    (log_of(), "LoggedData(5 rows; dose 0.5 … 4.5; context age, bmi; propensity known)"),
    (log_of(d=2, bounds=(None, 9), q=None),
     "LoggedData(5 rows; 2 doses 0.5 … 5.5 within -∞ … 9; context age, bmi; no propensity)"),
    (log_of().rows([]), "LoggedData(0 rows; dose none; context age, bmi; propensity known)"),
    (LoggedData(np.tile(T[:, None], 8), T, Y, Q), ("LoggedData(5 rows; dose 0.5 … 4.5; "
     "context x0, x1, x2, x3, x4, x5 and 2 more; propensity known)")),
])  # fmt: skip
def test_repr_is_one_readable_line(log, text):
    assert repr(log) == text


def test_columns_of_a_log_make_the_log_again():
    log = log_of(d=2)
    table = log.to_columns(treatment="dose", outcome="loss")
    assert list(table) == ["age", "bmi", "dose_0", "dose_1", "loss", "propensity"]
    again = LoggedData.from_frame(table, treatment=["dose_0", "dose_1"], outcome="loss",
                                  context=["age", "bmi"], propensity="propensity")  # fmt: skip
    for a, b in zip(arrays_of(log), arrays_of(again), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
    assert list(log_of(q=None).to_columns()) == ["age", "bmi", "treatment", "outcome"]
    with pytest.raises(DataError, match="`age` as treatment and as context"):
        log_of().to_columns(treatment="age")


# ── Columns ──────────────────────────────────────────────────────────────────────────────────────
def test_columns_are_hashable_and_list_what_they_need():
    one = Columns(treatment="dose", outcome="loss", context=["age", "bmi"], propensity="q")
    assert one.needed == ("dose", "loss", "q", "age", "bmi")
    assert one == Columns(treatment="dose", outcome="loss", context=("age", "bmi"), propensity="q")
    assert len({one, one}) == 1
    vector = Columns(treatment=["a", "b"], outcome="y", context="x")
    assert (vector.doses, vector.features) == (("a", "b"), ("x",))
    assert Columns(treatment="t", outcome="y", context=[]).features == ()


def test_columns_take_a_numpy_array_of_names():
    names = np.array(["age", "bmi"])
    assert Columns(treatment="dose", outcome="loss", context=names).features == ("age", "bmi")
