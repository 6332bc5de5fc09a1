"""Keys of groups: the same for the same id, wherever and however it is read."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from titrant import LoggedData
from titrant.data.keys import group_keys
from titrant.errors import DataError

IDS = [12, 7, 12, 3]
N = len(IDS)


@pytest.mark.parametrize(
    "ids",
    [
        IDS,
        np.array(IDS, dtype=np.int8),
        np.array(IDS, dtype=float),
        [str(i) for i in IDS],
        np.array([str(i) for i in IDS], dtype=object),
        [12, "7", 12.0, 3],
        np.array(IDS)[:, None],
        pd.Series(IDS),
        pd.Series(IDS, dtype="category"),
        pl.Series(IDS),
    ],
    ids=lambda ids: f"{type(ids).__name__} {getattr(ids, 'dtype', '')}",
)
def test_an_id_has_one_key_in_any_form(ids):
    np.testing.assert_array_equal(group_keys(ids), group_keys(IDS))


def test_keys_differ_and_are_not_negative():
    keys = group_keys(np.arange(100_000))
    assert len(np.unique(keys)) == 100_000
    assert keys.min() >= 0
    assert keys.dtype == np.int64


def test_keys_are_these():
    """They are in results of clusters and checkpoints: a release must not change them."""
    assert group_keys(["a", 12]).tolist() == [4681665781835383343, 7744513373483970787]


@pytest.mark.parametrize(
    "bad", [[1, None], [1.0, np.nan], ["a", pd.NA], np.ma.array([1, 2], mask=[0, 1])]
)
def test_every_row_has_an_id(bad):
    with pytest.raises(DataError, match="an id in every row"):
        group_keys(bad)


def test_empty_texts_and_tables_of_ids_are_refused():
    with pytest.raises(DataError, match="empty text"):
        group_keys(["a", " "])
    with pytest.raises(DataError, match="one id a row"):
        group_keys(np.ones((3, 2)))


TABLE = {
    "t": [1.0, 2, 3, 4],
    "y": [0.0, 1, 0, 1],
    "x": [1.0, 2, 3, 5],
    "who": ["b", "a", "b", "c"],
    "w": [1.0, 2, 0, 3],
}


@pytest.mark.parametrize(
    "make", [dict, pd.DataFrame, pl.DataFrame, pa.table, lambda t: pl.DataFrame(t).lazy()]
)
def test_tables_bring_groups_and_weights(make):
    log = LoggedData.from_frame(
        make(TABLE), treatment="t", outcome="y", context="x", weights="w", groups="who"
    )
    np.testing.assert_array_equal(log.groups, group_keys(TABLE["who"]))
    np.testing.assert_array_equal(log.weights, TABLE["w"])
    assert (
        repr(log)
        == "LoggedData(4 rows of 3 groups; dose 1 … 4; context x; no propensity; weighted)"
    )
    some = log.rows([2, 0])
    np.testing.assert_array_equal(some.groups, log.groups[[2, 0]])
    np.testing.assert_array_equal(some.weights, [0, 1])
    assert log.grouped
    assert log.weighted


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ([1, 2, -1, 0], "≥ 0"),
        ([0, 0, 0, 0], "all be 0"),
        ([1, np.nan, 1, 1], "finite"),
        ([1, 2], "same number"),
    ],
)
def test_weights_that_cannot_be(weights, says):
    with pytest.raises(DataError, match=says):
        LoggedData(np.ones((4, 1)), [1, 2, 3, 4], [0, 1, 0, 1], weights=weights)


def test_missing_ids_of_a_table():
    with pytest.raises(DataError, match="groups column `who` must be an id in every row"):
        LoggedData.from_frame(
            pa.table(TABLE | {"who": ["a", None, "b", "c"]}),
            treatment="t",
            outcome="y",
            context="x",
            groups="who",
        )
